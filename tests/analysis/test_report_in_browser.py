"""The report in headless Chromium, with real clicks and keys."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import PHONE, open_page
from threeup_agents import evaluation

pytestmark = [pytest.mark.slow, pytest.mark.part]
DESK = (1280, 800)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    evaluation.run(evaluation.Config(deals=20, num_players=3, out=folder))
    return folder / "report.html"


def column(browser: Any, table: str, index: int) -> list[str]:
    cells = browser.find_elements("css selector", f"[aria-label={table}] td:nth-child({index})")
    return [cell.text for cell in cells]


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_it_fits_the_screen_and_follows_the_scheme(
    browser: Any, report: Path, size: tuple[int, int], colours: str
) -> None:
    open_page(browser, report, size, colours)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    body = browser.find_element("tag name", "body")
    paper = {"light": "rgba(255, 255, 255, 1)", "dark": "rgba(21, 24, 30, 1)"}[colours]
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(232, 235, 241)"}[colours]
    assert body.value_of_css_property("background-color") == paper
    drawn = browser.find_element("css selector", "#ratings svg text")
    assert drawn.value_of_css_property("fill") == ink
    # On a phone a table is wider than the screen, and its box scrolls with the keys too.
    box = browser.find_element("css selector", "[aria-label=standings]")
    beyond = browser.execute_script(
        "return arguments[0].scrollWidth > arguments[0].clientWidth", box
    )
    assert beyond is (size == PHONE)
    assert box.get_attribute("tabindex") == "0"
    if path := os.environ.get("THREEUP_SCREENSHOTS"):
        browser.save_screenshot(str(Path(path) / f"report-{size[0]}-{colours}.png"))
    assert not browser.get_log("browser")


def test_tables_sort_by_click_and_key(browser: Any, report: Path) -> None:
    from selenium.webdriver import Keys

    open_page(browser, report, DESK)
    shares = column(browser, "standings", 2)
    assert shares == sorted(shares, key=float, reverse=True)
    heads = browser.find_elements("css selector", "[aria-label=standings] th")
    button = heads[1].find_element("tag name", "button")
    button.click()
    assert heads[1].get_attribute("aria-sort") == "descending"
    button.send_keys(Keys.ENTER)
    assert heads[1].get_attribute("aria-sort") == "ascending"
    assert column(browser, "standings", 2) == shares[::-1]
    heads[0].find_element("tag name", "button").send_keys(Keys.SPACE)
    assert column(browser, "standings", 1) == ["careful", "greedy", "random"]
    assert heads[1].get_attribute("aria-sort") is None


def test_the_command_is_copied(browser: Any, report: Path) -> None:
    at = open_page(browser, report, DESK)
    at("copy").click()
    assert at("copy").text == "Copied"
    assert browser.execute_script("return getSelection().toString()") == at("command").text


def test_a_pairing_leads_to_its_games(browser: Any, report: Path) -> None:
    open_page(browser, report, DESK)
    browser.find_element("link text", "longest").click()
    assert browser.title.startswith("3UP 3DOWN: ")
    assert browser.find_element("id", "step").text.startswith("0 / ")


def test_the_games_of_every_pairing_open_from_a_folder_that_was_moved(
    browser: Any, report: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(report.parent, moved)
    open_page(browser, moved / "report.html", DESK)
    links = browser.find_elements("css selector", "[aria-label=pairings] td a")
    assert [link.text for link in links] == ["typical", "longest", "closest"] * 6
    pages = [link.get_attribute("href") for link in links]
    for path in pages:
        assert path.startswith(moved.as_uri())
        browser.get(path)
        assert browser.find_element("id", "step").text.startswith("0 / ")
        assert not browser.get_log("browser")
