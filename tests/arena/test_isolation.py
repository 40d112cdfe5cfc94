import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.arena.broken_agents import BREAKS, Breaks, Counts
from threeup_agents.arena import isolation
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.isolation import Isolated
from threeup_agents.arena.play import Entrant, play_block
from threeup_agents.arena.referee import AgentError
from threeup_agents.arena.run_folder import Folder
from threeup_agents.arena.terms import Terms
from threeup_agents.arena.tournament import Settings, play_tournament
from threeup_agents.evaluation import AGENT_LEFT, main

ROOT = Path(__file__).parents[2]
ISOLATED = Terms(isolate=True, patience=20.0)


@pytest.fixture(autouse=True, scope="module")
def no_process_is_left() -> Any:
    """Ends what the tests have kept."""
    yield
    isolation.end_idle()


def games_of(line_ups: Sequence[Sequence[Entrant]], terms: Terms, limit: float) -> list[Any]:
    """Play each line-up's games; what an agent did wrong stands in their place."""
    found: list[Any] = []
    for line_up in line_ups:
        try:
            found.append(play_block(line_up, draw_deals(3, len(line_up)), limit=limit, terms=terms))
        except AgentError as error:
            found.append(error)
    return found


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        pytest.param("sys.exit", "raised SystemExit: 3", id="sys.exit"),
        pytest.param("os._exit", "its process ended with exit code 5", id="os._exit"),
        pytest.param("segfault", "its process was ended by SIGSEGV", id="segfault"),
        pytest.param("killed", "its process was ended by SIGKILL", id="killed"),
        pytest.param("memory", "raised .*MemoryError: Unable to allocate", id="memory"),
        pytest.param("raises", "raised KeyError: 'WEIGHTS'", id="raises"),
    ],
)
def test_an_isolated_agent_that_breaks_is_named_and_the_others_play_on(
    how: str, reason: str
) -> None:
    terms = Terms(isolate=True, memory=3 * 2**29)
    broken: Entrant = partial(make_broken, how)
    line_ups: list[list[Entrant]] = [
        [broken, "greedy", "greedy"],
        ["greedy", broken, broken],
        ["greedy", "random", "random"],
    ]
    first, second, others = games_of(line_ups, terms, 1.0)
    assert re.search(reason, first.reason)
    assert re.search(reason, second.reason)
    for error in (first, second):
        assert error.where["deal"] in range(3)
        assert error.where["rotation"] in range(3)
        assert error.where["step"] >= 4  # four calls have been answered
    assert others.num_deals == 3


def make_broken(how: str, seed: int) -> Breaks:
    """A factory that a process of its own can import."""
    return Breaks(how)


@pytest.mark.parametrize("how", ["loop", "compiled loop", "shrug"])
def test_an_isolated_agent_that_hangs_costs_its_time_and_no_more(how: str) -> None:
    Isolated("warm", partial(make_broken, how, 0)).try_out(60)  # imports, and their first compiling
    isolation._idle[os.getpid(), "make_broken"] = isolation._idle.pop((os.getpid(), "warm"))
    start = time.monotonic()
    terms = Terms(isolate=True, patience=2.0)
    line_ups: list[list[Entrant]] = [[named(how), "greedy"], ["greedy", "random"]]
    broken, others = games_of(line_ups, terms, 0.05)
    assert time.monotonic() - start < 60
    spent = float(broken.reason.split("; got ")[1].split(" s ")[0])
    assert 2.0 <= spent < 6.0
    assert others.num_deals == 3


def named(how: str) -> Entrant:
    """A factory that is called `make_broken`."""
    maker: Any = partial(make_broken, how)
    maker.name = "make_broken"
    return maker  # type: ignore[no-any-return]


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_isolated_agents_play_the_same_games(num_players: int) -> None:
    decks = draw_deals(8, num_players)
    line_up = ["careful", "random", "policy:net", "greedy", "flat:2", "random"][:num_players]
    games = [play_block(line_up, decks, seed=3, terms=Terms(isolate)) for isolate in (False, True)]
    assert (games[0].course == games[1].course).all()
    assert (games[0].decisions == games[1].decisions).all()


def test_what_an_isolated_agent_prints_does_no_harm(tmp_path: Path) -> None:
    terms = Terms(isolate=True, logs=tmp_path)
    match = play_block([named("prints"), "greedy"], draw_deals(2), terms=terms)
    assert match.num_deals == 2
    assert (tmp_path / "make_broken.log").read_text() == "a word on standard output\n"


def test_a_process_is_kept_from_block_to_block_and_its_agent_made_anew() -> None:
    def number() -> int:
        (found,) = [child for (_, name), child in isolation._idle.items() if name == "random"]
        return found._process.pid

    decks = draw_deals(4)
    first = play_block(["random", "greedy"], decks, terms=ISOLATED)
    process = number()
    again = play_block(["random", "greedy"], decks, terms=ISOLATED)
    assert number() == process
    assert (first.course == again.course).all()


def test_no_more_processes_are_kept_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "IDLE", 1)
    play_block(["random", "greedy"], draw_deals(1), terms=ISOLATED)
    assert len(isolation._idle) == 1


def test_an_agent_that_broke_leaves_no_process() -> None:
    with pytest.raises(AgentError, match="process") as error:
        play_block([lambda seed: Counts(), "greedy"], draw_deals(1), terms=ISOLATED)
    process = int(str(error.value).split("process ")[1].split()[0])
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_an_object_that_cant_be_pickled_is_refused_before_any_game() -> None:
    class Open:
        """Holds what no other process can have."""

        name = "open"

        def __init__(self) -> None:
            self.lock = threading.Lock()

        def act(self, observations: Any, action_masks: Any) -> Any:
            """As `Agent.act`."""
            return action_masks.argmax(axis=1)

    agent = Open()
    decks, steps = draw_deals(1), []
    with pytest.raises(ValueError, match="agent 'open': expected one that can be sent"):
        play_block([agent, "greedy"], decks, watch=lambda *_: steps.append(1), terms=ISOLATED)
    assert steps == []
    assert play_block([agent, "greedy"], draw_deals(1)).num_deals == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_isolated_round_robin_gives_the_same_games_on_any_number_of_workers(
    workers: int,
) -> None:
    settings = Settings(("careful", "random"), num_players=3, deals=4)
    plain = play_tournament(settings, Folder(None, {}))
    apart = Settings(**vars(settings) | {"isolate": True})
    isolated = play_tournament(apart, Folder(None, {}), workers)
    for here, there in zip(plain.matches, isolated.matches, strict=True):
        assert (here.course == there.course).all()
    assert not isolation._idle


def test_from_the_command_line_isolated_agents_play(tmp_path: Path) -> None:
    arguments = ["--agents", "greedy", "careful", "--deals", "4", "--isolate"]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 0


def test_the_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = f"""
        import os, sys, time
        sys.path[:0] = {[str(ROOT), str(ROOT / "agents")]!r}
        from functools import partial
        from tests.arena.broken_agents import Breaks
        from threeup_agents.arena import isolation
        hanging = isolation.Isolated("loop", partial(Breaks, "compiled loop"))
        idle = isolation.Isolated("idle", partial(Breaks, "loop"))
        for agent in (hanging, idle):
            agent.open()
        print(hanging._child._process.pid, idle._child._process.pid, flush=True)
        import numpy as np
        for _ in range(5):
            hanging.act(np.zeros((1, 9), np.int8), np.ones((1, 94), np.bool_))
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    numbers = [int(word) for word in parent.stdout.readline().split()]
    time.sleep(1.0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    stop = time.monotonic() + 30
    while any(is_alive(number) for number in numbers) and time.monotonic() < stop:
        time.sleep(0.1)
    assert len(numbers) == 2
    assert not [number for number in numbers if is_alive(number)]


def is_alive(number: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    status = Path(f"/proc/{number}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_every_way_to_break_is_tried() -> None:
    hangs = {"loop", "compiled loop", "shrug"}
    ends = {"sys.exit", "os._exit", "segfault", "killed", "memory", "raises"}
    assert hangs | ends | {"prints"} == set(BREAKS)


def test_broken_agents_leave_a_run_of_the_command_and_the_others_play_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path(__file__).with_name("broken_agents.py")
    broken = [f"{how}={file}:Breaks?how={how}" for how in ("segfault", "os._exit", "raises")]
    options = ["--isolate", "--num-players", "3", "--deals", "4", "--agents"]
    assert main([*options, *broken, "greedy", "random"]) == AGENT_LEFT
    shown = capsys.readouterr()
    for how, words in (
        ("segfault", "its process was ended by SIGSEGV"),
        ("os._exit", "its process ended with exit code 5"),
        ("raises", "raised KeyError: 'WEIGHTS'"),
    ):
        line = next(line for line in shown.err.splitlines() if f"agent {how!r}" in line)
        assert words in line
        assert "deal 0, rotation" in line
        assert "step" in line
    assert "greedy" in shown.out
    assert "12 games a pairing" in shown.out
