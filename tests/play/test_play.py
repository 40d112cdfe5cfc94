import asyncio
import html
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("textual", reason="pip install 'threeup[play]'")
from textual.pilot import Pilot

from tests.play.test_session import state_of
from threeup_agents.play import __main__ as play
from threeup_agents.play.session import Session
from threeup_agents.play.terminal import KEYS, Terminal, free_path
from threeup_agents.replay.recording import Recording
from threeup_env import ACTION_NAMES, action_id
from threeup_env.engine.determinize import determinize

Drive = Callable[[Pilot[str]], Awaitable[None]]
SMALL, LARGE, TINY = (80, 24), (140, 45), (40, 10)
NEVER = 3600.0


def drive(app: Terminal, steps: Drive, size: tuple[int, int] = SMALL) -> Terminal:
    """Show the app on a terminal that isn't there and act as a person does."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await steps(pilot)

    asyncio.run(run())
    return app


async def settle(pilot: Pilot[str]) -> None:
    """Wait until the others have acted and all is drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def press(pilot: Pilot[str], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def screen(app: Any) -> str:
    """All that is to be read, a line a row."""
    found = re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', app.export_screenshot())
    rows: dict[float, str] = {}
    for y, words in found:
        rows[float(y)] = rows.get(float(y), "") + html.unescape(words).replace("\xa0", " ")
    return "\n".join(rows[y] for y in sorted(rows))


def session(*args: Any, **options: Any) -> Session:
    settings: dict[str, Any] = {"hint": "greedy", "seed": 3} | options
    return Session(*args, **settings)


def final_state(recording: Recording) -> Any:
    *_, (batch, _) = recording.play()
    return batch.states[0].copy()


@pytest.mark.parametrize(
    ("variant", "size"),
    [
        ("mini", SMALL),
        ("mini", LARGE),
        ("mini", TINY),
        pytest.param("standard", SMALL, marks=pytest.mark.slow),
    ],
)
def test_a_whole_game_is_played_with_keys(
    variant: str, size: tuple[int, int], tmp_path: Path
) -> None:
    mine = session(variant=variant)

    async def steps(pilot: Pilot[str]) -> None:
        while not mine.is_over:
            action = mine.ask()
            key = KEYS[mine.choices.index(action)]
            assert f" {key}  {ACTION_NAMES[action]} " in screen(pilot.app)
            await press(pilot, key)
        assert " won after " in screen(pilot.app) or size == TINY

    app = drive(Terminal(mine, tmp_path / "game.json", pause=0), steps, size)
    assert app.saved == [tmp_path / "game.json"]
    assert Recording.load(app.saved[0]) == mine.recording


def test_turns_are_played_with_the_mouse_through_all_sizes(tmp_path: Path) -> None:
    mine = session(["greedy", "random"], 3, seat=1)
    sizes = [TINY, LARGE, (200, 60), (60, 20)]

    async def steps(pilot: Pilot[str]) -> None:
        turn = 0
        while not mine.is_over and turn < len(sizes):
            await pilot.resize_terminal(*sizes[turn])
            await settle(pilot)
            taken = mine.choices[turn % len(mine.choices)]
            x, y = place_of(pilot.app, taken)
            before = mine.num_actions
            await pilot.click(offset=(x, y))
            await settle(pilot)
            assert mine.recording.actions[before] == taken
            turn += 1

    drive(Terminal(mine, tmp_path / "game.json", pause=0), steps)


def place_of(app: Any, action: int) -> tuple[int, int]:
    """Where the label of an action stands on the screen."""
    widget = app.query_one("#actions")
    for y in range(widget.size.height):
        x = 0
        for segment in widget.render_line(y):
            if (segment.style and segment.style.meta.get("@click")) == f"app.choose({action})":
                return widget.region.x + x, widget.region.y + y
            x += segment.cell_length
    raise AssertionError(f"{ACTION_NAMES[action]} is not on the screen\n{screen(app)}")


def test_resizing_keeps_everything(tmp_path: Path) -> None:
    mine = session(["greedy"], 4)

    async def steps(pilot: Pilot[str]) -> None:
        await press(pilot, "1", "1", "1", "h")
        before, state = screen(pilot.app), state_of(mine)
        for size in (TINY, LARGE, SMALL):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert "★" in screen(pilot.app)
        assert screen(pilot.app) == before
        assert state_of(mine) == state

    drive(Terminal(mine, tmp_path / "game.json", pause=0), steps)


def test_wrong_keys_change_nothing_and_are_explained(tmp_path: Path) -> None:
    mine = session()

    async def steps(pilot: Pilot[str]) -> None:
        before = state_of(mine)
        for key in ("z", "n", "u", "left", "f5", "tab", "enter", "[", "0"):
            await press(pilot, key)
            assert state_of(mine) == before
        last = KEYS[len(mine.choices) - 1]
        assert f"'0' does nothing now; 1 to {last} act" in screen(pilot.app)
        await press(pilot, "n")
        assert "this game goes on: q leaves it" in screen(pilot.app)
        await press(pilot, "u")
        assert "can't undo: nothing has been played yet" in screen(pilot.app)

    assert drive(Terminal(mine, tmp_path / "game.json", pause=0), steps).saved == []


def test_a_mis_click_is_taken_back_while_the_next_seat_waits(tmp_path: Path) -> None:
    mine = session(seat=0)
    # To a turn without cards to draw, in which what is played shows the person nothing.
    while not mine.is_over and (mine.table.draw_pile_size or not mine.choices):
        mine.play(mine.ask())
    before, length = state_of(mine), mine.num_actions

    async def steps(pilot: Pilot[str]) -> None:
        await pilot.press("1")
        await pilot.pause()
        assert mine.num_actions == length + 1
        assert not mine.choices
        await pilot.press("x")
        await pilot.pause()
        assert "'x' does nothing now; another seat is to act" in screen(pilot.app)
        await pilot.press("u")
        await pilot.pause()
        assert state_of(mine) == before
        assert "taken back: " in screen(pilot.app)

    app = drive(Terminal(mine, tmp_path / "game.json", pause=NEVER), steps)
    assert Recording.load(app.saved[0]) == mine.recording


def test_a_hint_marks_a_legal_action(tmp_path: Path) -> None:
    mine = session(hint="search:20")
    expected = ACTION_NAMES[mine.ask()]

    async def steps(pilot: Pilot[str]) -> None:
        await press(pilot, "h")
        assert f"search:20 would {expected}" in screen(pilot.app)
        assert re.findall(r"(\S+ \S+) ★", screen(pilot.app)) == [expected]
        await press(pilot, "1")
        assert "★" not in screen(pilot.app)

    drive(Terminal(mine, tmp_path / "game.json", pause=0), steps)


@pytest.mark.parametrize("num_players", [2, 5])
def test_the_screen_is_the_same_for_all_that_the_seat_may_not_know(
    num_players: int, tmp_path: Path
) -> None:
    mine = session(num_players=num_players, seat=1)
    app = Terminal(mine, tmp_path / "game.json", pause=0)

    async def steps(pilot: Pilot[str]) -> None:
        differs = False
        while not mine.is_over:
            app._show()
            await pilot.pause()
            expected, true = app.export_screenshot(), mine._batch.states.copy()
            observation = mine._batch.observe([mine.seat])
            worlds = determinize(observation, seed=mine.num_actions)
            for field in ("steps", "max_steps"):
                worlds[field] = true[field]
            differs |= bool((worlds["hand"] != true["hand"]).any())
            mine._batch.load(worlds[0])
            app._show()
            await pilot.pause()
            assert app.export_screenshot() == expected
            mine._batch.load(true)
            for _ in range(17):
                if not mine.is_over:
                    mine.play(mine.ask())
        assert differs

    drive(app, steps)


@pytest.mark.parametrize("keys", [("ctrl+c",), ("q", "1", "q", "q")])
def test_leaving_in_the_middle_loses_nothing(
    keys: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    apps = []

    async def steps(pilot: Pilot[str]) -> None:
        await press(pilot, "1", "1", "1", "1")
        for key in keys:
            assert pilot.app.is_running
            await press(pilot, key)

    monkeypatch.setattr(play, "start", lambda app: apps.append(drive(app, steps)))
    out = tmp_path / "deep" / "game.json"
    command = ["--opponents", "greedy", "random", "--num-players", "3", "--seed", "3"]
    command += ["--hint", "greedy", "--pause", "0"]
    assert play.main([*command, "--out", str(out)]) == 0
    mine = apps[0].session
    recording = Recording.load(out)
    state = final_state(recording)
    state["rng"] = state_of(mine)["rng"]
    assert state == state_of(mine)
    said = capsys.readouterr()
    assert f"unfinished after {len(recording.actions)} actions" in said.out
    assert f"recording: {out} " in said.out
    assert f"go on: threeup play --resume {out}" in said.out
    assert said.err == ""

    monkeypatch.setattr(play, "start", apps.append)
    assert play.main(["--resume", str(out), "--hint", "greedy"]) == 0
    assert apps[1].session.recording == recording


def test_a_game_that_can_not_be_saved_goes_on(tmp_path: Path) -> None:
    mine = session()

    async def steps(pilot: Pilot[str]) -> None:
        await press(pilot, "1")
        (tmp_path / "deep" / "game.json").unlink()
        (tmp_path / "deep").rmdir()
        await press(pilot, "1")
        assert "can't save the game: " in str(list(pilot.app._notifications))
        assert mine.num_actions == 2

    (tmp_path / "deep").mkdir()
    drive(Terminal(mine, tmp_path / "deep" / "game.json", pause=0), steps)


def test_the_next_game_has_a_file_of_its_own(tmp_path: Path) -> None:
    mine = session(variant="mini")

    async def steps(pilot: Pilot[str]) -> None:
        while not mine.is_over:
            await press(pilot, "1")
        await press(pilot, "1")
        assert "'1' does nothing now; the game has ended" in screen(pilot.app)
        await press(pilot, "n", "1", "q", "q")

    (tmp_path / "game.json").write_text("an earlier one")
    app = drive(Terminal(mine, tmp_path / "game.json", pause=0), steps)
    assert app.saved == [tmp_path / f"game-{i}.json" for i in (2, 3)]
    assert (tmp_path / "game.json").read_text() == "an earlier one"
    assert free_path(tmp_path / "other.json") == tmp_path / "other.json"
    won = [final_state(Recording.load(path))["winner"] >= 0 for path in app.saved]
    assert won == [True, False]


class Slow:
    """Thinks until it is let go."""

    name = "slow"

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def act(self, observations: Any, action_masks: Any) -> Any:
        """Choose the first legal action, in the end."""
        assert self.go_on.wait(60)
        return action_masks.argmax(axis=1)


def test_nothing_changes_while_an_agent_thinks(tmp_path: Path) -> None:
    slow = Slow()
    mine = session()
    mine._referee.agents = [slow, slow]

    async def steps(pilot: Pilot[str]) -> None:
        before = state_of(mine)
        await pilot.press("h")
        while not pilot.app._thinking:  # type: ignore[attr-defined]
            await pilot.pause()
        for key in ("1", "u", "h"):
            await pilot.press(key)
            await pilot.pause()
            assert state_of(mine) == before
            assert "greedy is thinking" in screen(pilot.app)
        slow.go_on.set()
        await settle(pilot)
        assert "★" in screen(pilot.app)

    drive(Terminal(mine, tmp_path / "game.json", pause=0), steps)


def test_an_agent_that_fails_ends_the_game_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong:
        name = "wrong"

        def act(self, observations: Any, action_masks: Any) -> Any:
            return np.full(len(observations), action_id("pick up"))

    def start(app: Terminal) -> str | None:
        app.session._referee.agents = [Wrong(), Wrong()]
        return drive(app, lambda pilot: press(pilot, "1", "1", "1")).return_value

    monkeypatch.setattr(play, "start", start)
    out = tmp_path / "game.json"
    assert play.main(["--seed", "1", "--hint", "greedy", "--pause", "0", "--out", str(out)]) == 3
    assert "threeup play: agent 'careful': expected one of 'lay" in capsys.readouterr().err
    assert len(Recording.load(out).actions) == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--opponents", "greedy", "random"], "opponents: expected 1 for 2 players; got 2"),
        (["--seat", "2"], "seat: expected one in 0..1; got 2"),
        (["--pause", "-1"], "pause: expected at least 0; got -1.0"),
        (["--opponents", "chess"], "agent: expected one of"),
        (["--variant", "mini", "--num-players", "3"], "num_players: expected 2"),
        (["--resume", "none.json"], "none.json: expected a file or folder; got none"),
        ([], "expected a terminal"),
    ],
)
def test_the_command_says_what_is_wrong(
    options: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert play.main([*options, "--hint", "greedy"]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    ("library", "modules", "options", "face"),
    [
        ("textual", ["textual"], [], "terminal"),
        ("textual-serve", ["textual_serve", "textual_serve.server"], ["--browser"], "browser"),
    ],
)
def test_a_missing_extra_is_named(
    library: str,
    modules: list[str],
    options: list[str],
    face: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"threeup_agents.play.{face}", raising=False)
    assert play.main(options) == 2
    expected = f"threeup play: threeup play needs {library}: pip install 'threeup[play]'\n"
    assert capsys.readouterr().err == expected


def test_a_served_game_leaves_the_standard_output_to_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    monkeypatch.setattr(play, "start", lambda app: None)
    assert play.main(["--hint", "greedy", "--out", str(tmp_path / "game.json")]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("seed ")


def test_the_next_game_is_in_the_key_bar_only_after_the_end(tmp_path: Path) -> None:
    mine = session(variant="mini")

    async def steps(pilot: Pilot[str]) -> None:
        while not mine.is_over:
            assert "new game" not in screen(pilot.app)
            await press(pilot, "1")
        assert "n new game" in screen(pilot.app)
        path = tmp_path / "game.json"
        assert f"threeup page {path}" in screen(pilot.app).replace("\n", "")
        await press(pilot, "n")
        assert "new game" not in screen(pilot.app)

    drive(Terminal(mine, tmp_path / "game.json", pause=0), steps, LARGE)
