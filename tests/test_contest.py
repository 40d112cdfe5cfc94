"""Round robins from Python: what may be given, what comes out."""

import html
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import threeup_agents
from threeup_agents import evaluation, round_robin
from threeup_agents.arena.entrants import Given
from threeup_agents.contest import Result

Rows = npt.NDArray[np.int64]


class Counting:
    """Takes the first legal action, but each hundredth time the last."""

    def __init__(self, seed: int = 0) -> None:
        self.calls = seed % 100

    def act(self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]) -> Rows:
        """As `Agent.act`."""
        self.calls += 1
        actions: Rows = action_masks.argmax(axis=1)
        if self.calls % 100 == 0:
            actions = action_masks.shape[1] - 1 - action_masks[:, ::-1].argmax(axis=1)
        return actions


class Locked(Counting):
    """An agent that can't be pickled."""

    name = "locked"

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def lowest(observation: npt.NDArray[np.int8], mask: npt.NDArray[np.bool_]) -> int:
    return int(mask.argmax())


def factory(number: int) -> Counting:
    return Counting(number)


def untimed(result: Result) -> dict[str, Any]:
    return {name: found for name, found in result.results.items() if name != "timing"}


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (lambda observation, mask: int(np.flatnonzero(mask)[0]), "lambda"),
        (lowest, "lowest"),
        (factory, "factory"),
        (lambda: Counting(3), "lambda"),
        (Counting, "Counting"),
        (Counting(), "Counting"),
        (Locked(), "locked"),
        (("mine", lowest), "mine"),
        (threeup_agents.make("careful"), "careful"),
        ("own name=random", "own name"),
    ],
)
def test_whatever_stands_for_an_agent_plays(agent: Any, name: str) -> None:
    result = round_robin([agent, "greedy"], deals=3)
    assert set(result.standings["agent"]) == {name, "greedy"}
    assert result.failures == []


def test_the_tables_are_those_of_the_results_and_the_games(tmp_path: Path) -> None:
    result = round_robin(
        {"mine": lowest, "greedy": "greedy", "r": "random"}, 20, num_players=3, out=tmp_path
    )
    kept = json.loads((tmp_path / "results.json").read_text())
    for name in ("standings", "pairings", "ratings", "differences"):
        assert getattr(result, name).to_dict("records") == kept[name]
    written = pd.read_csv(tmp_path / "games.csv", dtype={"course": np.uint64})
    pd.testing.assert_frame_equal(result.games, written, check_dtype=False, check_column_type=False)
    first = result.games.iloc[0]
    assert {first["agent_0"], first["agent_1"], first["agent_2"]} <= {"mine", "greedy", "r"}
    assert repr(result).startswith("Result(3 players, 20 deals, ")
    assert repr(result).count("\n") == 0


def test_a_function_asked_row_by_row_plays_the_games_of_the_agent_that_it_asks() -> None:
    def greedy_again(observation: npt.NDArray[np.int8], mask: npt.NDArray[np.bool_]) -> int:
        return int(threeup_agents.make("greedy").act(observation[None], mask[None])[0])

    found = round_robin([("g", greedy_again), "random"], deals=10)
    assert found.games.equals(round_robin(["g=greedy", "random"], deals=10).games)


def test_it_is_the_run_of_the_command_line(tmp_path: Path) -> None:
    """Folder and numbers are the same, byte for byte where no time is measured."""
    options = ["--agents", "random", "greedy", "--deals", "20", "--seed", "4"]
    assert evaluation.main([*options, "--out", str(tmp_path / "shell")]) == 0
    result = round_robin(["random", "greedy"], deals=20, seed=4, out=tmp_path / "python")
    texts = [(tmp_path / name / "games.csv").read_bytes() for name in ("shell", "python")]
    assert texts[0] == texts[1]
    kept = json.loads((tmp_path / "shell" / "results.json").read_text())
    del kept["timing"]
    assert json.loads(json.dumps(untimed(result))) == kept


def test_the_report_has_no_hash_of_what_cannot_be_pickled() -> None:
    shown = round_robin([Locked(), "greedy"], deals=3)._repr_html_()
    assert "<code>-</code>" in html.unescape(shown)


def test_objects_have_no_command_that_gives_the_results_again() -> None:
    results = round_robin([("mine", lowest), "greedy"], deals=3).results
    assert results["command"] == "threeup_agents.round_robin(...), with objects of Python: mine"
    assert results["agents"][0]["about"] == "an object given in Python"


def test_a_notebook_shows_the_report_in_a_frame_of_its_own() -> None:
    shown = round_robin([("</iframe><script>", lowest), "greedy"], deals=4)._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" ')
    (page,) = re.findall(r'srcdoc="([^"]*)"></iframe>$', shown)
    assert html.unescape(page).lstrip().lower().startswith("<!doctype html>")
    assert "<script>" not in shown
    assert shown.count("<iframe") == shown.count("</iframe>") == 1


def test_an_object_plays_the_same_games_with_any_number_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from threeup_agents.arena import play

    monkeypatch.setattr(play, "BLOCK_GAMES", 8)
    agents = [Counting(50), ("f", lambda view, mask: int(np.flatnonzero(mask)[-1])), "random"]
    one, two = (untimed(round_robin(agents, deals=12, workers=workers)) for workers in (1, 2))
    assert one == two
    assert vars(agents[0]) == {"calls": 50}  # copies of it have played


def test_what_cannot_be_pickled_needs_one_worker_and_no_folder(tmp_path: Path) -> None:
    said = "expected 1 with agent 'locked', which can't be pickled .*lock"
    with pytest.raises(ValueError, match=said):
        round_robin([Locked(), "greedy"], deals=2, workers=2)
    with pytest.raises(ValueError, match=r"'locked' can't be pickled\. Play without a folder"):
        round_robin([Locked(), "greedy"], deals=2, out=tmp_path)
    assert not list(tmp_path.glob("games/*"))


def test_a_folder_goes_on_with_the_same_object_and_refuses_another(tmp_path: Path) -> None:
    first = untimed(round_robin([("c", Counting(1)), "greedy"], deals=6, out=tmp_path))
    again = untimed(round_robin([("c", Counting(1)), "greedy"], deals=6, out=tmp_path))
    assert again == first
    with pytest.raises(ValueError, match="holds a run with agent c "):
        round_robin([("c", Counting(2)), "greedy"], deals=6, out=tmp_path)
    with pytest.raises(ValueError, match="holds a run with agent greedy "):
        round_robin([("c", Counting(1)), ("greedy", lowest)], deals=6, out=tmp_path)


SCRIPT = """
import numpy as np
from threeup_agents.arena.entrants import Given
from threeup_agents.arena.provenance import agent_hash

WEIGHTS = np.ones(94)

class Mine:
    def act(self, observations, action_masks):
        return (action_masks * WEIGHTS).argmax(axis=1)

def last(observation, mask):
    return int(np.flatnonzero(mask * WEIGHTS)[-1])

print(agent_hash(Given(Mine()), 2), agent_hash(Given(last), 2))
"""


def test_the_agents_of_a_script_have_the_same_hashes_when_it_is_run_again(tmp_path: Path) -> None:
    path = [str(Path(__file__).parents[1]), str(Path(threeup_agents.__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}

    def hashes(script: str) -> list[str]:
        (tmp_path / "script.py").write_text(script)
        command = [sys.executable, str(tmp_path / "script.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first = hashes(SCRIPT)
    assert len(set(first)) == 2
    assert hashes(SCRIPT) == first
    assert all(
        old != new for old, new in zip(first, hashes(SCRIPT.replace("94", "95")), strict=True)
    )


def test_what_a_function_refers_to_is_part_of_its_hash() -> None:
    from threeup_agents.arena.provenance import agent_hash

    def made(offset: int) -> Given:
        return Given(lambda view, mask: int(mask.argmax()) + offset)

    assert agent_hash(made(1), 2) == agent_hash(made(1), 2) != agent_hash(made(2), 2)


@pytest.mark.parametrize(
    ("agents", "options", "kind", "message"),
    [
        ([lowest], {}, ValueError, "agents: expected at least 2; got 1"),
        ([lowest, lowest], {}, ValueError, "'lowest' more than once. Other names .*name, agent"),
        ([("greedy", lowest), "greedy"], {}, ValueError, "'greedy' more than once"),
        ([("a=b", lowest), "greedy"], {}, ValueError, "name: expected one without =; got 'a=b'"),
        (
            [("a: b", "random"), "greedy"],
            {},
            ValueError,
            "expected one without = : . .* got 'a: b'",
        ),
        ([3, "greedy"], {}, ValueError, "agent 'int': expected an object with a method act, .*int"),
        ([lambda a, b, c: 0, "greedy"], {}, ValueError, "expected the arguments a, b, c too"),
        ([lambda seed: 3, "greedy"], {}, ValueError, "an object with act; got int"),
        (["greedy", "random"], {"deal": 3}, TypeError, "expected options among .*; got 'deal'"),
        (
            ["greedy", "random"],
            {"deals": 1},
            ValueError,
            "deals: expected an integer of at least 2; got 1",
        ),
    ],
)
def test_errors_say_what_would_have_been_right(
    agents: list[Any], options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        round_robin(agents, **options)


def test_an_agent_that_answers_wrongly_is_told_and_leaves() -> None:
    with pytest.warns(UserWarning, match="agent 'text': raised TypeError: .*got str 'play 3'"):
        result = round_robin([("text", lambda view, mask: "play 3"), "random", "greedy"], deals=3)
    assert [row["agent"] for row in result.failures] == ["text"]
    assert set(result.standings["agent"]) == {"random", "greedy"}
    assert "text left" in repr(result)


@pytest.mark.parametrize(
    "name", ["[/bad]", "$a_{$", "</b>&", "/*DATA*/", "{{ run }}", "{% x", "@b"]
)
def test_names_of_objects_are_shown_as_they_are(name: str, tmp_path: Path) -> None:
    result = round_robin({name: lowest, "greedy": "greedy"}, deals=3, out=tmp_path)
    assert set(result.games["agent_0"]) == {name, "greedy"}
    assert html.escape(name) in (tmp_path / "report.html").read_text()


def test_tables_name_the_extra_that_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    result = round_robin(["random", "greedy"], deals=3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'threeup\[notebooks\]'"):
        _ = result.standings
