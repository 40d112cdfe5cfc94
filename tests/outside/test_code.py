import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import threeup_agents
from threeup_agents import evaluation, specs
from threeup_agents.arena.play import play
from threeup_agents.arena.provenance import agent_hash
from threeup_agents.play.session import Session
from threeup_agents.replay import __main__ as pages
from threeup_agents.replay.recording import PERSON, record
from threeup_agents.training import __main__ as train
from threeup_env import Batch

MINE = """
import numpy as np
from numbers_of_mine import OFFSET

class Mine:
    def __init__(self, depth=1, name="mine", greedy=False, seed=None):
        self.depth, self.name, self.greedy, self.seed = depth, name, greedy, seed

    def act(self, observations, action_masks):
        return action_masks.argmax(axis=1) + OFFSET

def make_agent(seed):
    return Mine(seed=seed)

def last(observation, mask):
    return int(np.flatnonzero(mask)[-1])

def needs_depth(depth):
    return Mine(depth)

def gives_none():
    return None

ready = Mine(depth=9)
NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an agent's file and what that imports from beside it."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "numbers_of_mine.py").write_text("OFFSET = 0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(*agents: str, deals: int = 4, out: Path | None = None, workers: int = 1) -> int:
    folder = [] if out is None else ["--out", str(out)]
    numbers = ["--deals", str(deals), "--workers", str(workers)]
    return evaluation.main(["--agents", *agents, *numbers, *folder])


@pytest.mark.parametrize("name", ["Mine", "make_agent", "last", "ready", "Mine?depth=3&name=x"])
def test_code_in_a_file_plays_a_round_robin(name: str, folder: Path) -> None:
    assert evaluate(f"mine.py:{name}", "greedy", out=folder / "out") == 0
    results = json.loads((folder / "out" / "results.json").read_text())
    assert {row["agent"] for row in results["standings"]} == {f"mine.py:{name}", "greedy"}
    assert results["failures"] == []


def test_a_function_of_a_row_chooses_the_last_legal_action(folder: Path) -> None:
    batch = Batch(5, 3, seed=2)
    batch.reset()
    actions = threeup_agents.make("mine.py:last").act(batch.observations, batch.action_masks)
    assert actions.tolist() == [int(np.flatnonzero(mask)[-1]) for mask in batch.action_masks]


def test_arguments_are_read_as_numbers_truths_and_texts(folder: Path) -> None:
    agent: object = threeup_agents.make("mine.py:Mine?depth=3&name=a%20b&greedy=true", seed=5)
    assert vars(agent) == {"depth": 3, "name": "a b", "greedy": True, "seed": 5}
    given: object = threeup_agents.make("mine.py:Mine?seed=7&depth=.5&name=inf", seed=5)
    assert vars(given) == {"depth": 0.5, "name": "inf", "greedy": False, "seed": 7}


def test_a_module_is_found_in_the_current_folder(folder: Path) -> None:
    package = folder / "package_of_mine" / "inner"
    package.mkdir(parents=True)
    package.parent.joinpath("__init__.py").touch()
    package.joinpath("__init__.py").touch()
    package.joinpath("best.py").write_text("from .worst import Worst as Best\n")
    package.joinpath("worst.py").write_text(
        "class Worst:\n    def act(self, views, masks):\n        return masks.argmax(axis=1)\n"
    )
    spec = "package_of_mine.inner.best:Best"
    assert evaluate(spec, "greedy") == 0
    files = specs.source_files(spec) or []
    assert {"best.py", "worst.py", "__init__.py"} == {file.name for file in files}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none.py:Mine", "agent 'none.py:Mine': expected the Python file 'none.py'; there is none"),
        (
            "mine.py:Mime",
            "agent 'mine.py:Mime': expected one of Mine, make_agent, last, needs_depth, "
            "gives_none, ready in mine.py; got 'Mime'",
        ),
        (
            "broken.py:Mine",
            "agent 'broken.py:Mine': expected broken.py to import; got KeyError: 'no such thing'",
        ),
        ("wrong.py:Mine", "expected wrong.py to import; got SyntaxError: "),
        ("leaves.py:Mine", "expected leaves.py to import; got SystemExit: 3"),
        ("no_module_of_mine:Mine", "got ModuleNotFoundError: No module named 'no_module_of_mine'"),
        (
            "mine.py:NUMBER",
            "agent 'mine.py:NUMBER': expected an object with a method act, or a class or "
            "function that gives one; got int",
        ),
        ("mine.py:gives_none", "expected to be given an object with act; got NoneType"),
        ("mine.py:needs_depth", "expected the arguments depth too"),
        ("mine.py:Mine?dept=3", "expected arguments among depth, name, greedy, seed; got 'dept'"),
        ("mine.py:Mine?depth", "expected arguments such as ?depth=3&width=8; got 'depth'"),
        ("mine.py:Mine?depth=3&depth=4", "expected each argument once; got 'depth' again"),
        ("mine.py:ready?depth=3", "expected no arguments for an object; got depth"),
        ("greedy=mine.py:Mine", "expected a name that isn't an agent's; got 'greedy'"),
    ],
)
def test_errors_say_what_would_have_been_right(
    spec: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text("raise KeyError('no such thing')\n")
    (folder / "wrong.py").write_text("class\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    assert evaluate("random", spec) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_name_can_be_set_and_one_agent_then_plays_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["deep=mine.py:Mine?depth=3", "flat one=mine.py:Mine", "g=greedy"]
    assert evaluate(*both, out=folder / "out") == 0
    results = json.loads((folder / "out" / "results.json").read_text())
    assert {row["agent"] for row in results["ratings"]} == {"deep", "flat one", "g"}
    assert len({row["hash"] for row in results["agents"]}) == 3
    assert evaluate("a=greedy", "a=random") == 2
    assert "expected each one once; got 'a' more than once" in capsys.readouterr().err


def test_another_name_draws_from_another_stream_and_the_same_name_from_the_same(
    folder: Path,
) -> None:
    def course(spec: str) -> list[int]:
        found: list[int] = play([spec, "greedy"], deals=3).course.tolist()
        return found

    assert course("random") == course("random")
    assert course("other=random") != course("random")
    assert course("other=random") == course("other=random")
    assert play(["other=random", "greedy"], deals=3).line_up == ("other", "greedy")


def test_two_workers_import_a_file_each_and_play_the_same_games(folder: Path) -> None:
    for workers in (1, 2):
        out = folder / f"out{workers}"
        assert evaluate("mine.py:make_agent", "random", out=out, workers=workers) == 0
    one, two = ((folder / f"out{n}" / "games.csv").read_bytes() for n in (1, 2))
    assert one == two


def test_an_object_made_from_a_file_reaches_the_workers_too(folder: Path) -> None:
    agents = [("mine", threeup_agents.make("mine.py:Mine")), "random"]
    one, two = (threeup_agents.round_robin(agents, 4, workers=n) for n in (1, 2))
    assert one.games.equals(two.games)


def test_files_of_one_name_beside_two_agents_are_told_apart(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "mine.py").write_text(MINE)
    (other / "numbers_of_mine.py").write_text("OFFSET = 1000\n")
    masks = np.ones((1, 94), np.bool_)
    views = np.zeros((1, 136), np.int8)
    for _ in range(2):
        assert threeup_agents.make("mine.py:Mine").act(views, masks).tolist() == [0]
        assert threeup_agents.make(f"{other}/mine.py:Mine").act(views, masks).tolist() == [1000]
    assert "numbers_of_mine" not in sys.modules
    assert str(folder) not in sys.path


def test_what_lies_beside_a_file_does_not_stand_in_for_what_was_imported(folder: Path) -> None:
    (folder / "numpy").mkdir()  # not a package
    (folder / "json.py").write_text("raise ImportError\n")
    before = sys.modules["json"], sys.modules["threeup_env"], sys.modules["numpy"]
    threeup_agents.make("mine.py:Mine")
    assert (sys.modules["json"], sys.modules["threeup_env"], sys.modules["numpy"]) == before


def test_the_hash_is_that_of_the_file_of_what_it_imports_and_of_its_arguments(
    folder: Path,
) -> None:
    def hashed(spec: str = "mine.py:Mine") -> str | None:
        return agent_hash(spec, 2)

    first = hashed()
    assert hashed() == first == hashed("name=mine.py:Mine") == hashed(f"{folder}/mine.py:Mine")
    assert hashed("mine.py:Mine?depth=2") != first
    (folder / "numbers_of_mine.py").write_text("OFFSET = 1\n")
    second = hashed()
    assert second != first
    (folder / "mine.py").write_text(MINE + "\n")
    assert hashed() not in (first, second)
    (folder / "unrelated.py").write_text("")
    third = hashed()
    weights = folder / "weights.bin"
    weights.write_bytes(b"1")
    named = hashed("mine.py:Mine?name=weights.bin")
    weights.write_bytes(b"2")
    assert hashed("mine.py:Mine?name=weights.bin") != named
    assert hashed() == third


def test_a_changed_file_is_played_as_it_is_now(folder: Path) -> None:
    views, masks = np.zeros((1, 136), np.int8), np.ones((1, 94), np.bool_)
    assert threeup_agents.make("mine.py:Mine").act(views, masks).tolist() == [0]
    (folder / "numbers_of_mine.py").write_text("OFFSET = 2\n")
    os.utime(folder / "numbers_of_mine.py", (1, 1))
    assert threeup_agents.make("mine.py:Mine").act(views, masks).tolist() == [2]


def test_a_run_goes_on_only_with_the_agents_that_it_holds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out"
    assert evaluate("best=mine.py:Mine", "greedy", out=out) == 0
    assert evaluate("best=mine.py:Mine", "greedy", out=out, deals=8) == 0
    (folder / "numbers_of_mine.py").write_text("OFFSET = 0  # another\n")
    assert evaluate("best=mine.py:Mine", "greedy", out=out) == 2
    assert f"out: {out} holds a run with agent best " in capsys.readouterr().err


def test_an_agent_that_fails_leaves_and_the_others_play_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "lazy.py").write_text(
        "class Lazy:\n    def act(self, views, masks):\n        import beside_nobody\n"
    )
    assert evaluate("lazy.py:Lazy", "random", "greedy") == 3
    error = capsys.readouterr().err
    assert "agent 'lazy.py:Lazy': raised ModuleNotFoundError: No module named" in error
    assert "deal 0, rotation 1, step 0" in error


def test_a_game_of_code_is_shown_again_only_where_the_folder_is_trusted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out"
    assert evaluate("best=mine.py:Mine", "greedy", out=out) == 0
    capsys.readouterr()
    assert evaluation.main(["--replay", str(out), "0"]) == 2
    error = capsys.readouterr().err
    assert "replay: expected agents that run no code of others, or --trust" in error
    assert "got 'best=mine.py:Mine'" in error
    assert evaluation.main(["--replay", str(out), "0", "--trust"]) == 0
    assert "seat 0 best, seat 1 greedy" in capsys.readouterr().out


def test_a_recording_cannot_name_code_that_is_then_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "evil.py").write_text("open('written', 'w').close()\n")
    game = replace(record(["greedy", "greedy"], seed=1), agents=("evil.py:Evil", PERSON))
    game.save(folder / "game.json")
    options = ["game.json", "--explain", "--out", "page.html"]
    assert pages.main(options) == 2
    with pytest.raises(ValueError, match="recording: expected agents that run no code of others"):
        Session.resume(game)
    assert "expected agents that run no code of others, or --trust" in capsys.readouterr().err
    assert not (folder / "written").exists()
    assert pages.main([*options, "--trust"]) == 2  # now it is run, and found to hold no Evil
    assert (folder / "written").exists()


def test_training_takes_no_code_of_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--preset", "quick", "--opponents", "mine.py:Mine"]) == 2
    assert "expected some that run no code of others; got 'mine.py:Mine'" in capsys.readouterr().err
