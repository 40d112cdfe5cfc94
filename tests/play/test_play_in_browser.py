"""`threeup play --browser` in headless Chromium, with real clicks."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import LAPTOP, PHONE, resize
from threeup_agents.replay.recording import Recording

pytest.importorskip("textual_serve", reason="pip install 'threeup[play]'")
pytestmark = [pytest.mark.slow, pytest.mark.part]

GAME = ["--variant", "mini", "--opponents", "greedy", "--hint", "greedy", "--pause", "0.1"]
LISTEN = """
window.heard = "";
window.size = null;
const Socket = window.WebSocket, utf8 = new TextDecoder();
window.WebSocket = class extends Socket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", event => {
      if (typeof event.data !== "string") window.heard += utf8.decode(event.data, { stream: true });
    });
  }
  send(words) {
    const [kind, size] = JSON.parse(words);
    if (kind === "resize") window.size = size;
    super.send(words);
  }
};
"""
"""What comes to the terminal, and its size: it draws on a canvas, which no test can read."""
MOVE, OTHER = r"\x1b\[(\d+);(\d+)H", r"\x1b\[[^a-zA-Z]*[a-zA-Z]"


class Screen:
    """The terminal in the page as a person sees it: rows of words, and a place to click."""

    def __init__(self, browser: Any, address: str, size: tuple[int, int]) -> None:
        self.browser = browser
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": LISTEN})
        resize(browser, size)
        browser.get(address)

    def rows(self) -> list[str]:
        """The screen, row by row, from what the terminal was told."""
        size = self.browser.execute_script("return window.size") or {"width": 0, "height": 0}
        cells = [[" "] * size["width"] for _ in range(size["height"])]
        heard, x, y = self.browser.execute_script("return window.heard"), 0, 0
        for move in re.finditer(rf"{MOVE}|{OTHER}|.", heard):
            if move[1]:
                y, x = int(move[1]) - 1, int(move[2]) - 1
            elif len(move[0]) == 1 and move[0].isprintable():
                if y < size["height"] and x < size["width"]:
                    cells[y][x] = move[0]
                x += 1
        return ["".join(row) for row in cells]

    def wait(self, pattern: str, seconds: float = 120) -> str:
        """Wait until it can be read; what was found."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, "\n".join(self.rows()))):
            assert time.monotonic() < end, f"{pattern}\n" + "\n".join(self.rows())
            time.sleep(0.05)
        return found[0]

    def settled(self) -> str:
        """What can be read once it stays as it is."""
        before = None
        while (seen := "\n".join(self.rows())) != before:
            before = seen
            time.sleep(0.5)
        return seen

    def click(self, words: str) -> None:
        """Click in the middle of these words."""
        from selenium.webdriver import ActionChains

        rows = self.rows()
        y = next(y for y, row in enumerate(rows) if words in row)
        x = rows[y].index(words) + len(words) // 2
        canvas = self.browser.find_element("css selector", ".xterm-screen")
        width, height = canvas.size["width"], canvas.size["height"]
        right = width * ((x + 0.5) / len(rows[0]) - 0.5)
        down = height * ((y + 0.5) / len(rows) - 0.5)
        ActionChains(self.browser).move_to_element_with_offset(
            canvas, right, down
        ).click().perform()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def address(kept: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "threeup_agents", "play", *GAME, "--out", "games/game.json"]
    command += ["--browser", "--port", str(port)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, cwd=kept, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert next(server.stdout).startswith("seed ")
        assert next(server.stdout) == f"play at http://localhost:{port} (ctrl+c ends it)\n"
        yield f"http://localhost:{port}"
        server.send_signal(signal.SIGINT)
        (kept / "said").write_text(server.stdout.read())
    assert server.returncode == 0


def play_to_the_end(screen: Screen) -> None:
    """Click the first of the actions shown until the game has ended."""
    while " won after " not in screen.settled():
        screen.click(screen.wait(r" 1 {2}((lay|play) \S+|draw|flip|pick up) "))


@pytest.mark.parametrize("size", [PHONE, LAPTOP])
def test_a_game_is_played_to_its_end_with_clicks(
    browser: Any, address: str, kept: Path, size: tuple[int, int]
) -> None:
    before = set(kept.glob("games/*"))
    screen = Screen(browser, address, size)
    screen.wait("q leave")
    assert "new game" not in screen.settled()
    shot(browser, f"play-begin-{size[0]}")
    play_to_the_end(screen)
    (path,) = set(kept.glob("games/*")) - before
    recording = Recording.load(path)
    *_, (batch, _) = recording.play()
    assert batch.states["winner"][0] >= 0
    screen.wait(f"after {len(recording.actions)} actions")
    screen.wait(f"threeup page {path.relative_to(kept)} makes")
    shot(browser, f"play-end-{size[0]}")
    screen.click("new game")
    screen.wait(r" 1  \w+ ")
    assert "new game" not in screen.settled()
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    screen.click("leave")
    again = browser.find_element("id", "again")
    end = time.monotonic() + 30
    while not again.is_displayed():
        assert time.monotonic() < end
        time.sleep(0.05)
    shot(browser, f"play-left-{size[0]}")
    again.click()
    screen.wait("you are seat 0")


def test_each_page_is_a_game_of_its_own(browser: Any, address: str) -> None:
    seen = []
    for _ in range(2):
        screen = Screen(browser, address, LAPTOP)
        screen.wait(r" 1  \w+ ")
        seen.append(screen.rows())
        browser.switch_to.new_window("tab")
    assert seen[0] != seen[1]


def test_a_page_of_another_site_gets_no_game(address: str) -> None:
    asked = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    asked |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "http://example.org"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{address}/ws", headers=asked))
    assert refused.value.code == 403
    assert refused.value.read() == b"expected a page of this server"


def shot(browser: Any, name: str) -> None:
    if path := os.environ.get("THREEUP_SCREENSHOTS"):
        time.sleep(0.5)
        browser.save_screenshot(str(Path(path) / f"{name}.png"))
