"""Parts of a run, played apart, are one run when they are put together."""

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_agents import evaluation, merge, specs
from threeup_agents.arena import play
from threeup_agents.arena.match import Match

RUN = ["--agents", "random", "greedy", "careful", "--num-players", "3", "--deals", "20"]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(play, "BLOCK_GAMES", 24)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run in one go."""
    return evaluate(tmp_path_factory.mktemp("whole"))


def evaluate(out: Path, *options: str) -> Path:
    assert evaluation.main([*RUN, *options, "--out", str(out)]) == 0
    return out


def merged(*folders: Path, out: Path) -> int:
    return merge.main([*map(str, folders), "--out", str(out)])


def results_of(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    del results["timing"]  # the only part that may differ
    return results


def assert_same_run(one: Path, other: Path) -> None:
    assert results_of(one) == results_of(other)
    assert (one / "games.csv").read_bytes() == (other / "games.csv").read_bytes()
    names = [sorted(path.name for path in each.glob("games/*")) for each in (one, other)]
    assert names[0] == names[1]


def test_the_parts_of_a_run_make_the_run(whole: Path, tmp_path: Path) -> None:
    parts = [evaluate(tmp_path / str(i), "--part", f"{i}/3") for i in (1, 2, 3)]
    assert not any((folder / "results.json").exists() for folder in parts)
    counts = [len(list(folder.glob("games/*"))) for folder in parts]
    assert sum(counts) == 24  # 8 line-ups of 20 deals, 8 deals a block
    assert max(counts) - min(counts) <= 1
    assert merged(*parts, out=tmp_path / "merged") == 0
    assert_same_run(tmp_path / "merged", whole)
    assert (tmp_path / "merged" / "report.html").exists()


def test_the_same_command_goes_on_with_a_merged_folder(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [evaluate(tmp_path / str(i), "--part", f"{i}/3") for i in (1, 3)]
    capsys.readouterr()
    assert merged(*parts, out=tmp_path / "merged") == 0
    said = capsys.readouterr().out
    assert "of 480 games; to play the others: threeup evaluate --agents random greedy" in said
    command = shlex.split(said.partition("the others: threeup evaluate ")[2])
    assert not (tmp_path / "merged" / "results.json").exists()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("merged/games/*")}
    assert evaluation.main(command) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert_same_run(tmp_path / "merged", whole)


def test_runs_of_other_agents_and_fewer_deals_add_up(whole: Path, tmp_path: Path) -> None:
    few = evaluate(tmp_path / "few", "--agents", "random", "greedy", "--deals", "16")
    more = evaluate(tmp_path / "more", "--agents", "greedy", "careful", "--part", "1/2")
    assert merged(few, more, out=tmp_path / "merged") == 0
    assert json.loads((tmp_path / "merged" / "settings.json").read_text())["agents"] == [
        *("random", "greedy", "careful")
    ]
    evaluate(tmp_path / "merged")
    assert results_of(tmp_path / "merged") == results_of(whole)


def test_a_folder_can_take_others_in_again_and_again(whole: Path, tmp_path: Path) -> None:
    parts = [evaluate(tmp_path / str(i), "--part", f"{i}/2") for i in (1, 2)]
    for _ in range(2):
        assert merged(*parts, out=parts[0]) == 0
    assert_same_run(parts[0], whole)


class Cheat:
    """Names no legal action."""

    name = "cheat"

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """As `Agent.act`, but illegal."""
        return np.full(len(action_masks), 94)


def test_an_agent_that_leaves_every_part_leaves_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make = specs.make_any
    monkeypatch.setattr(
        specs,
        "make_any",
        lambda spec, *rest, **named: Cheat() if spec == "cheat" else make(spec, *rest, **named),
    )
    agents = ["--agents", "cheat", "random", "greedy"]
    for i in (1, 2):
        part = ["--part", f"{i}/2", "--out", str(tmp_path / str(i))]
        assert evaluation.main([*RUN, *agents, *part]) == 3
        assert "agent 'cheat': expected one of 'lay" in capsys.readouterr().err
    assert merged(tmp_path / "1", tmp_path / "2", out=tmp_path / "merged") == 0
    assert evaluation.main([*RUN, *agents, "--out", str(tmp_path / "merged")]) == 3
    rated = {row["agent"] for row in results_of(tmp_path / "merged")["ratings"]}
    assert rated == {"random", "greedy"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seed", "4"], "merge: expected runs with the same seed; got 0 in"),
        (["--max-steps", "90"], "merge: expected runs with the same max_steps; got 1000 in"),
        (["--no-mixed"], "merge: expected runs with the same mixed; got True in"),
    ],
)
def test_runs_with_other_settings_are_refused_by_name(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = ["--part", "1/2"]
    one = evaluate(tmp_path / "one", *half)
    other = evaluate(tmp_path / "other", *half, *options)
    assert merged(one, other, out=tmp_path / "merged") == 2
    error = capsys.readouterr().err
    assert words in error
    assert str(one) in error
    assert str(other) in error
    assert not list(tmp_path.glob("merged/games/*"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": "other"}, "other holds a run with engine 'other'; got "),
        ({"agents": {"greedy": "x"}}, "other holds a run with agent greedy 'x'; got "),
    ],
)
def test_runs_of_another_engine_or_agent_are_refused_by_name(
    change: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (evaluate(tmp_path / name, "--part", "1/2") for name in ("one", "other"))
    file = other / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert merged(one, other, out=tmp_path / "merged") == 2
    assert words in capsys.readouterr().err


def test_machines_that_play_otherwise_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (evaluate(tmp_path / name, "--part", "1/2") for name in ("one", "other"))
    file = sorted(other.glob("games/*"))[0]
    match, made_with = Match.load_made(file)
    match.course[0] += 1
    match.save(file, made_with)
    assert merged(one, other, out=tmp_path / "merged") == 2
    assert "One of the two machines plays otherwise" in capsys.readouterr().err


def test_blocks_of_another_run_are_not_taken_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = ["--part", "1/2"]
    one, other = (
        evaluate(tmp_path / "one", *half),
        evaluate(tmp_path / "other", *half, "--seed", "4"),
    )
    shutil.copytree(other / "games", one / "games", dirs_exist_ok=True)
    assert merged(one, out=tmp_path / "merged") == 2
    assert "expected games with seed 0; got 4" in capsys.readouterr().err
    shutil.rmtree(one / "games")
    evaluate(one, *half)
    block = sorted(one.glob("games/*"))[0]
    block.rename(block.with_name("0-0-8.npz"))
    assert merged(one, out=tmp_path / "third") == 2
    assert "under another name" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", "[]", '{"agents": 3}', '{"agents": [1]}'])
def test_damaged_settings_are_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = evaluate(tmp_path / "one", "--part", "1/2")
    (one / "settings.json").write_text(text)
    assert merged(one, out=tmp_path / "merged") == 2
    assert f"{one / 'settings.json'}: expected" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["0/3", "4/3", "1", "a/b", "1/-3", "1/3/3", "/"])
def test_a_part_that_is_none_is_refused(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluation.main([*RUN, f"--part={part}", "--out", "nowhere"]) == 2
    assert (
        f"part: expected e.g. '2/3', the second of three; got '{part}'" in capsys.readouterr().err
    )


def test_a_part_needs_a_folder_and_all_games(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ([], ["--stop-when-separable", "--out", str(tmp_path)]):
        assert evaluation.main([*RUN, "--part", "1/2", *options]) == 2
        assert "part: expected a run with --out that doesn't stop early" in capsys.readouterr().err
