"""The replay page in headless Chromium, with real clicks and keys."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import LAPTOP, PHONE, open_page
from tests.replay.test_replay import random_game
from threeup_agents.replay.judge import Judgement, judge
from threeup_agents.replay.page import page

pytestmark = [pytest.mark.slow, pytest.mark.part]


def select(element: Any) -> Any:
    from selenium.webdriver.support.ui import Select

    return Select(element)


def waiting(browser: Any, seconds: float) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, seconds)


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    page(random_game(3, seed=2, steps=20)).save(tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.parametrize("size", [PHONE, LAPTOP])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_control_works(
    browser: Any, page_file: Path, size: tuple[int, int], colours: str
) -> None:
    at = open_page(browser, page_file, size, colours)
    paper = browser.find_element("tag name", "body").value_of_css_property("background-color")
    assert paper == {"light": "rgba(244, 246, 245, 1)", "dark": "rgba(20, 25, 26, 1)"}[colours]
    for control, step in [("later", 1), ("later", 2), ("earlier", 1), ("last", 20), ("first", 0)]:
        at(control).click()
        assert at("step").text == f"{step} / 20"
    browser.execute_script(
        "const slider = arguments[0]; slider.value = 7; slider.dispatchEvent(new Event('input'));",
        at("slider"),
    )
    assert at("step").text == "7 / 20"
    drawn = at("table").get_attribute("innerHTML")
    for name in ("seat 1", "spectator", "open"):
        select(at("view")).select_by_visible_text(name)
        assert (at("table").get_attribute("innerHTML") == drawn) is (name == "open")
    if path := os.environ.get("THREEUP_SCREENSHOTS"):
        browser.save_screenshot(str(Path(path) / f"page-{size[0]}-{colours}.png"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert not browser.get_log("browser")


def test_keys_work(browser: Any, page_file: Path) -> None:
    at = open_page(browser, page_file, LAPTOP)
    from selenium.webdriver import Keys

    body = browser.find_element("tag name", "body")
    moves = [(Keys.ARROW_RIGHT, 1), (Keys.ARROW_RIGHT, 2), (Keys.ARROW_LEFT, 1), (Keys.END, 20)]
    for key, step in [*moves, (Keys.HOME, 0), (Keys.ARROW_LEFT, 0)]:
        body.send_keys(key)
        assert at("step").text == f"{step} / 20"
    body.send_keys("v")
    assert at("view").get_attribute("value") == "1"


def test_it_plays_to_the_end_and_pauses(browser: Any, page_file: Path) -> None:
    at = open_page(browser, page_file, LAPTOP)
    select(at("speed")).select_by_visible_text("fast")
    at("play").click()
    assert at("play").text == "Pause"
    waiting(browser, 5).until(lambda _: not at("step").text.startswith("0 "))
    at("play").click()
    assert at("play").text == "Play"
    at("play").click()
    waiting(browser, 20).until(lambda _: at("step").text == "20 / 20")
    assert at("play").text == "Play"


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Judgement]:
    recording = random_game(3, seed=2, steps=60)
    judgement = judge(recording, 50)
    page(recording, judgement=judgement).save(tmp_path / "judged.html")
    return tmp_path / "judged.html", judgement


def drawn(browser: Any, mark: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", f"#curve [{mark}]")
    return found


@pytest.mark.parametrize("size", [PHONE, LAPTOP])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_click_on_the_curve_goes_there(
    browser: Any, judged: tuple[Path, Judgement], size: tuple[int, int], colours: str
) -> None:
    from selenium.webdriver import ActionChains

    at = open_page(browser, judged[0], size, colours)
    assert len(drawn(browser, "data-seat")) == 3
    assert len(drawn(browser, "data-mistake")) == (judged[1].cost.round(3) >= 0.05).sum() > 0
    width = at("curve").size["width"]
    for share, step in [(0, 30), (-0.5, 0), (0.5, 60)]:
        right = share * (width - 4)
        ActionChains(browser).move_to_element_with_offset(at("curve"), right, 0).click().perform()
        assert at("step").text == f"{step} / 60"
        (marker,) = drawn(browser, "data-step")
        assert marker.get_attribute("data-step") == str(step)
    assert "a fair share is 0.33" in at("legend").text
    if path := os.environ.get("THREEUP_SCREENSHOTS"):
        browser.save_screenshot(str(Path(path) / f"odds-{size[0]}-{colours}.png"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert not browser.get_log("browser")


def test_the_best_action_stands_beside_the_one_played(
    browser: Any, judged: tuple[Path, Judgement]
) -> None:
    at = open_page(browser, judged[0], LAPTOP)
    found = judged[1]
    words = {}
    for i, step in enumerate(found.step.tolist()):
        browser.execute_script("go(arguments[0])", step)
        words[found.taken[i] == found.best[i]] = at("verdict").text
        assert at("verdict").text.startswith(f"seat {found.seat[i]} random: {found.taken[i]} (")
        assert (f"the best is {found.best[i]} (" in at("verdict").text) is (
            found.taken[i] != found.best[i]
        )
    assert set(words) == {False, True}
    browser.execute_script("go(60)")
    assert at("verdict").text == "No choice to weigh here."


def test_each_looker_sees_the_odds_that_it_may_know(
    browser: Any, judged: tuple[Path, Judgement]
) -> None:
    at = open_page(browser, judged[0], LAPTOP)
    for name, lines in [("seat 1", 1), ("spectator", 0), ("open", 3)]:
        select(at("view")).select_by_visible_text(name)
        assert at("odds").is_displayed() is (lines > 0)
        if lines:
            assert len(drawn(browser, "data-seat")) == lines
