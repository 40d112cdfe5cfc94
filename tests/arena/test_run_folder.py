"""Blocks of games belong to the run that played them."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_info

from threeup_agents import evaluation
from threeup_agents.arena import play, run_folder
from threeup_agents.arena.match import Match
from threeup_agents.arena.run_folder import Folder

SMALL = ["--agents", "random", "greedy", "--deals", "20"]


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What the command says to a folder whose blocks it can't take."""
    capsys.readouterr()
    assert evaluation.main([*SMALL, *options, "--out", str(folder)]) == 2
    error = capsys.readouterr().err
    (block,) = folder.glob("games/*.npz")
    assert error.startswith(f"threeup evaluate: {block}: expected ")
    assert error.endswith("It is another run's: delete it and run the same command to play them\n")
    return error


def copied(source: Path, target: Path, seed: str) -> Path:
    """The blocks of one run in the folder of another, both with the same agents and sizes."""
    for folder, own in ((source, "3"), (target, seed)):
        assert evaluation.main([*SMALL, "--seed", own, "--out", str(folder)]) == 0
    shutil.copytree(source / "games", target / "games", dirs_exist_ok=True)
    return target


def test_blocks_of_another_seed_are_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(tmp_path / "3", tmp_path / "4", "4")
    error = refusal(folder, capsys, "--seed", "4")
    assert "expected games with seed 4; got 3" in error
    assert evaluation.main(["--replay", str(folder), "0"]) == 2
    assert "expected games with seed 4; got 3" in capsys.readouterr().err
    next(folder.glob("games/*")).unlink()
    assert evaluation.main([*SMALL, "--seed", "4", "--out", str(folder)]) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("engine", "expected games with engine"),
        ("max_steps", "expected games with max_steps 1000; got 999"),
        ("agent greedy", "expected games with agent greedy"),
    ],
)
def test_blocks_of_another_engine_setting_or_agent_are_refused(
    name: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made_with = run_folder._made_with

    def other(identity: dict[str, Any], line_up: tuple[str, ...]) -> dict[str, Any]:
        return made_with(identity, line_up) | {name: 999}

    monkeypatch.setattr(run_folder, "_made_with", other)
    assert evaluation.main([*SMALL, "--out", str(tmp_path)]) == 0
    monkeypatch.setattr(run_folder, "_made_with", made_with)
    assert words in refusal(tmp_path, capsys)


def test_blocks_of_other_deals_are_refused(tmp_path: Path) -> None:
    identity = {"seed": 0, "agents": {"random": "a", "greedy": "b"}}
    folder = Folder(tmp_path, identity)
    match = play.play(["random", "greedy"], 3, progress=False)
    folder.write(match, 0, 3)
    own = match.deal_hash[::2]
    found = folder.read(match.line_up, 0, 3, own)
    assert found is not None
    np.testing.assert_array_equal(found.course, match.course)
    with pytest.raises(ValueError, match="expected this run's deals; got others"):
        folder.read(match.line_up, 0, 3, own[::-1])


def test_blocks_that_do_not_say_what_made_them_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluation.main([*SMALL, "--out", str(tmp_path)]) == 0
    (block,) = tmp_path.glob("games/*.npz")
    Match.load(block).save(block)
    assert "; got None" in refusal(tmp_path, capsys)


class Noting:
    """Notes on how many threads linear algebra works while it chooses."""

    name = "noting"

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """As `Agent.act`."""
        self.seen |= {each["num_threads"] for each in threadpool_info() if is_blas(each)}
        actions: npt.NDArray[np.int64] = action_masks.argmax(axis=1)
        return actions


def is_blas(library: dict[str, Any]) -> bool:
    return bool(library["user_api"] == "blas")


def test_agents_choose_with_one_thread_of_linear_algebra() -> None:
    before = [each["num_threads"] for each in threadpool_info() if is_blas(each)]
    agent = Noting()
    play.play([agent], deals=1, num_players=2, progress=False)
    assert agent.seen <= {1}
    assert [each["num_threads"] for each in threadpool_info() if is_blas(each)] == before
