"""A headless Chromium for the tests of pages."""

import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
SWITCHES = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
SWITCHES += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
PHONE, LAPTOP = (390, 844), (1366, 768)


def start(profile: Path) -> Any:
    """Start it with a profile of its own; a test that needs it is skipped where it isn't."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="needs selenium: pip install selenium"
    )
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in [*SWITCHES, f"--user-data-dir={profile}"]:
        options.add_argument(switch)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def resize(browser: Any, size: tuple[int, int], colours: str = "light") -> None:
    """Make the window a phone's or a desk's, in a colour scheme."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": colours}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def open_page(browser: Any, path: Path, size: tuple[int, int], colours: str = "light") -> Any:
    """Give a function from an element's id to the element."""
    resize(browser, size, colours)
    browser.get(path.as_uri())
    return lambda name: browser.find_element("id", name)
