"""The shipped ladder gives what a run of everybody would."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from threeup_agents import evaluation, merge
from threeup_agents.arena import ladder, play, tournament
from threeup_agents.arena.match import Match

AGENTS = ("random", "greedy")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ladder of two agents and several blocks at 2 and at 3 players, in place of the shipped."""
    monkeypatch.setattr(play, "BLOCK_GAMES", 24)
    monkeypatch.setattr(ladder, "FOLDER", tmp_path / "ladders")
    monkeypatch.setattr(ladder, "DEALS", 20)
    monkeypatch.setattr(ladder, "AGENTS", {2: AGENTS, 3: AGENTS})
    ladder.main((2, 3), workers=1)
    return tmp_path / "ladders"


def results_of(folder: Path) -> dict[str, Any]:
    """All but the times, and the courses that a ladder doesn't keep."""
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return {k: v for k, v in results.items() if k not in ("timing", "repeated_games")}


@pytest.mark.parametrize("num_players", ["2", "3"])
def test_a_new_agent_on_the_ladder_has_the_results_of_a_run_of_all(
    num_players: str, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[tuple[str, ...]] = []

    def noting(line_up: tuple[str, ...], *rest: Any, **more: Any) -> Match:
        played.append(line_up)
        return play.play_block(line_up, *rest, **more)

    monkeypatch.setattr(tournament, "play_block", noting)
    size, one, other = ["--num-players", num_players], tmp_path / "one", tmp_path / "other"
    assert evaluation.main(["--ladder", "--add", "careful", *size, "--out", str(one)]) == 0
    assert played
    assert all("careful" in line_up for line_up in played)
    everybody = ["--agents", *AGENTS, "careful", "--deals", "20", "--deal-set", "public"]
    assert evaluation.main([*everybody, "--no-mixed", *size, "--out", str(other)]) == 0
    assert results_of(one) == results_of(other)
    tables = [pd.read_csv(folder / "games.csv") for folder in (one, other)]
    kept = tables[0]["course"] != 0
    pd.testing.assert_frame_equal(tables[0][kept], tables[1][kept])
    pd.testing.assert_frame_equal(*(table.drop(columns="course") for table in tables))


def test_the_ladder_says_where_the_new_agent_stands(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluation.main(["--ladder", "--add", "careful"]) == 0
    said = capsys.readouterr().out
    assert "careful: place 1 of 3 on the ladder" in said
    assert "nothing is kept: --out FOLDER" in said


def test_pages_are_first_of_the_games_of_who_was_added(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    added = ["--add", "last=random", "--replays", "1", "--out", str(out)]
    assert evaluation.main(["--ladder", *added]) == 0
    examples = json.loads((out / "results.json").read_text())["examples"]
    paged = {int(path.stem) for path in (out / "replays").iterdir()}
    pairs = [{row["agent"], row["against"]} for row in examples if row["typical"] in paged]
    assert pairs
    assert all(pair == {"greedy", "last"} for pair in pairs)


def test_games_of_the_ladder_are_replayed_too(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert evaluation.main(["--ladder", "--add", "careful", "--out", str(out)]) == 0
    table = pd.read_csv(out / "games.csv")
    for game in (table.index[table["course"] == 0][-1], table.index[table["course"] != 0][0]):
        capsys.readouterr()
        assert evaluation.main(["--replay", str(out), str(game)]) == 0
        assert f"ended after {table['length'][game]} actions: " in capsys.readouterr().out


def test_what_two_have_played_on_the_ladder_adds_up(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [tmp_path / "careful", tmp_path / "flat", tmp_path / "all"]
    for agent, out in zip(("careful", "flat:2", ""), runs, strict=True):
        added = ["--add", agent] if agent else []
        assert evaluation.main(["--ladder", *added, "--out", str(out)]) == 0
    assert merge.main([*map(str, runs), "--out", str(tmp_path / "merged")]) == 0
    # 4 agents have 6 pairs; one pair, of the two that were added, has not been played.
    assert "200 of 240 games; to play the others: " in capsys.readouterr().out


def test_the_same_games_give_the_same_file(small: Path) -> None:
    def arrays() -> dict[str, Any]:
        with np.load(small / "2.npz") as file:
            return {name: file[name].tolist() for name in ("about", "cards_left", "length")}

    first = arrays()
    ladder.main((2,), workers=1)
    assert arrays() == first


@pytest.mark.parametrize(
    ("source", "words"),
    [("engine_hash", "with engine 'other'"), ("agent_hash", "with agent random 'other'")],
)
def test_a_ladder_of_another_engine_or_agent_is_refused_by_name(
    source: str,
    words: str,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ladder, source, lambda *arguments: "other")
    assert evaluation.main(["--ladder", "--add", "careful"]) == 2
    error = capsys.readouterr().err
    assert f"2.npz: expected games {words}, as it is installed; got " in error
    assert "Make it anew by python -m threeup_agents.arena.ladder" in error


def test_a_damaged_ladder_is_named(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = small / "2.npz"
    whole = file.read_bytes()
    for damaged in (b"", whole[:-100], whole[:300] + bytes([whole[300] ^ 1]) + whole[301:]):
        file.write_bytes(damaged)
        assert evaluation.main(["--ladder"]) == 2
        assert f"{file}: expected a ladder; it is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--add", "careful"], "add: expected --ladder with it; got --add careful alone"),
        (["--ladder", "--deals", "7"], "ladder: expected no --deals, which it decides (20); got 7"),
        (["--ladder", "--num-players", "5"], "ladder: expected one of 2, 3 players; got 5"),
        (["--ladder", "--add", "greedy"], "agents: expected each one once; got 'greedy'"),
    ],
)
def test_what_the_ladder_decides_is_refused(
    options: list[str], message: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluation.main(options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("num_players", ladder.AGENTS)
def test_the_shipped_ladders_are_of_the_installed_engine_and_agents(num_players: int) -> None:
    found = ladder.load(num_players)
    assert found.settings == ladder.settings_for(num_players)
    block, match = next(found.blocks())
    match.check()
    again = play.play_block(
        block.line_up, tournament.decks_of(block.stop, num_players, "standard", "public", 0)
    )
    np.testing.assert_array_equal(again.cards_left, match.cards_left)
    np.testing.assert_array_equal(again.length, match.length)
