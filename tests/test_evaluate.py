import dataclasses
import json
import re
import shlex
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import threeup_agents
from threeup_agents import evaluation, specs
from threeup_agents.arena import play as match
from threeup_agents.arena import tournament
from threeup_agents.arena.run_folder import Folder
from threeup_agents.files import LOCK, hold
from threeup_agents.players import policy as ppo
from threeup_env.engine.actions import DRAW, NUM_ACTIONS
from threeup_env.engine.observation import observation_size

ROOT = Path(__file__).parents[1]
DUEL = ("random", "greedy")
SMALL = ["--agents", *DUEL, "--deals", "20"]


def test_the_command_prints_who_is_better() -> None:
    done = subprocess.run(
        [sys.executable, "evaluate.py", *SMALL], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    row = r"^ (\w+) +(\w+) +(0\.\d+) +0\.\d+ 0\.\d+ +0\.500 +(\w+) +0\.\d+ *$"
    duels = re.findall(row, done.stdout, re.MULTILINE)
    assert [(one, other, verdict) for one, other, _, verdict in duels] == [
        ("greedy", "random", "better"),  # by overall win share, best first
        ("random", "greedy", "worse"),
    ]
    assert "40 games a pairing" in done.stdout
    assert sum(float(share) for _, _, share, _ in duels) == pytest.approx(1, abs=0.001)


def test_results_have_the_promised_keys(tmp_path: Path) -> None:
    out = tmp_path / "new" / "run"
    assert evaluation.main([*SMALL, "--seed", "3", "--num-players", "3", "--out", str(out)]) == 0
    results = json.loads((out / "results.json").read_text())
    assert {"num_players": 3, "deals": 20, "seed": 3}.items() <= results.items()
    pairs = {(pair["agent"], pair["against"]) for pair in results["pairings"]}
    assert pairs == {("random", "greedy"), ("greedy", "random")}
    for pair in results["pairings"]:
        assert pair["games"] == 60
        assert 0 <= pair["low"] <= pair["win_share"] <= pair["high"] <= 1
        assert pair["cut_off_share"] == 0
    rated = {row["agent"]: row for row in results["ratings"]}
    assert rated["random"]["low"] < rated["random"]["rating"] == 0 < rated["random"]["high"]
    assert rated["greedy"]["low"] > 0
    assert not list(out.rglob("*.part"))


def untimed(config: evaluation.Config) -> dict[str, Any]:
    results = evaluation.run(config)
    del results["timing"]  # the only part that may differ
    return results


def test_the_same_command_gives_the_same_results() -> None:
    config = evaluation.Config(DUEL, deals=20)
    assert untimed(config) == untimed(config)


def test_a_run_that_was_stopped_goes_on_to_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "BLOCK_GAMES", 16)
    whole = untimed(evaluation.Config(DUEL, deals=40))
    untimed(evaluation.Config(DUEL, deals=24, out=tmp_path))
    kept = sorted(tmp_path.glob("games/*"))
    kept[0].unlink()  # as if it had never been played
    assert untimed(evaluation.Config(DUEL, deals=40, out=tmp_path)) == whole


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_results(tmp_path: Path) -> None:
    arguments = [*SMALL, "--deals", "5000", "--seed", "2"]
    command = [sys.executable, "evaluate.py", *arguments, "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while len(list(tmp_path.glob("killed/games/*.npz"))) < 2 and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    played = set(tmp_path.glob("killed/games/*.npz"))
    assert 2 <= len(played) < 10
    times = {path: path.stat().st_mtime_ns for path in played}
    assert not (tmp_path / "killed" / "results.json").exists()

    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in played} == times
    whole = [*command[:-1], str(tmp_path / "whole")]
    subprocess.run(whole, cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / "killed" / "games.csv").read_bytes() == (
        tmp_path / "whole" / "games.csv"
    ).read_bytes()
    results = [
        json.loads((tmp_path / run / "results.json").read_text()) for run in ("killed", "whole")
    ]
    for result in results:
        del result["timing"]
    assert results[0] == results[1]


@pytest.mark.part
@pytest.mark.slow
def test_a_ray_cluster_of_two_nodes_gives_the_same_results() -> None:
    ray = pytest.importorskip("ray")
    clusters = pytest.importorskip("ray.cluster_utils")
    one = untimed(evaluation.Config(DUEL, deals=1200, max_steps=60))
    cluster = clusters.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address)
    try:
        assert len(ray.nodes()) == 2
        other = untimed(evaluation.Config(DUEL, deals=1200, max_steps=60, workers=2, backend="ray"))
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert other == one


@pytest.mark.slow
def test_two_workers_give_the_same_results_as_one() -> None:
    one = untimed(evaluation.Config(DUEL, deals=20, num_players=3))
    assert untimed(evaluation.Config(DUEL, deals=20, num_players=3, workers=2)) == one


@pytest.mark.parametrize(("workers", "num_threads"), [(1, None), (2, 1)])
def test_of_several_workers_each_searches_on_one_thread(
    workers: int, num_threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    make = specs.make_any

    def noting(
        spec: str, seed: int = 0, num_threads: int | None = None, trust: bool = False
    ) -> Any:
        asked.append(num_threads)
        return make(spec, seed, num_threads)

    monkeypatch.setattr(specs, "make_any", noting)
    settings = tournament.Settings(DUEL, deals=2)
    with joblib.parallel_config(backend="sequential"):  # so that the notes stay here
        monkeypatch.setattr(joblib, "parallel_config", lambda **options: nullcontext())
        tournament.play_tournament(settings, Folder(None, {}), workers)
    assert asked == [num_threads] * 2


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--backend", "ray"], "backend ray needs Ray: pip install 'threeup[ray]'"),
        (["--second-views"], "second views need OpenSpiel: pip install 'threeup[openspiel]'"),
    ],
)
def test_an_extra_that_is_missing_is_named(
    option: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in ("ray", "ray.util.joblib", "pyspiel", "cvxpy"):
        monkeypatch.setitem(sys.modules, module, None)
    assert evaluation.main([*SMALL, *option]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_of_another_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert evaluation.main([*SMALL, *out]) == 0
    assert evaluation.main([*SMALL, *out, "--seed", "1"]) == 2
    assert "holds a run with seed 0; got 1. Choose another folder" in capsys.readouterr().err


def test_two_runs_in_one_folder_get_in_nobodys_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hold(tmp_path):
        assert evaluation.main([*SMALL, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}: expected a folder that no other run works in; process " in error
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert evaluation.main([*SMALL, "--workers", "2", "--out", str(tmp_path)]) == 0


def test_a_damaged_file_of_games_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert evaluation.main([*SMALL, *out]) == 0
    (damaged,) = tmp_path.glob("games/*.npz")
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert evaluation.main([*SMALL, *out]) == 2
    error = capsys.readouterr().err
    assert str(damaged) in error
    assert "Delete it and run the same command" in error
    damaged.unlink()
    assert evaluation.main([*SMALL, *out]) == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"agents": []}', "[" * 100_000])
def test_a_damaged_run_file_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.joinpath("run.json").write_text(text)
    assert evaluation.main([*SMALL, "--out", str(tmp_path)]) == 2
    assert "run.json: expected" in capsys.readouterr().err


def test_a_full_disk_is_one_line_and_leaves_no_half_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(file: IO[bytes], **arrays: object) -> None:
        file.write(b"some")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    assert evaluation.main([*SMALL, "--out", str(tmp_path)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert not list(tmp_path.glob("games/*"))


def test_games_csv_has_a_row_a_game(tmp_path: Path) -> None:
    evaluation.run(evaluation.Config(DUEL, deals=20, num_players=3, out=tmp_path))
    table = pd.read_csv(tmp_path / "games.csv")
    assert table["game"].tolist() == list(range(2 * 20 * 3))
    np.testing.assert_allclose(table[[f"win_share_{seat}" for seat in range(3)]].sum(axis=1), 1)
    assert table["deal_hash"].nunique() == 20
    won = table["win_share_0"] == 1
    assert (table["cards_left_0"][won] == 0).all()


def test_replay_shows_a_game_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluation.run(evaluation.Config(DUEL, deals=20, out=tmp_path))
    row = pd.read_csv(tmp_path / "games.csv").iloc[31]
    capsys.readouterr()
    assert evaluation.main(["--replay", str(tmp_path), "31"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"game 31: deal 15, rotation 1; seat 0 {row['agent_0']}")
    winner = row["agent_0"] if row["win_share_0"] == 1 else row["agent_1"]
    assert f"ended after {row['length']} actions: {winner} has won" in shown
    assert f"step {row['length']}: " in shown


def test_replay_shows_a_game_of_a_table_whose_order_was_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("random", "greedy", "careful")
    evaluation.run(evaluation.Config(names, num_players=5, deals=4, out=tmp_path))
    table = pd.read_csv(tmp_path / "games.csv")
    seated = table[[f"agent_{seat}" for seat in range(5)]]
    mixed = table.index[seated.nunique(axis=1) == 3]
    assert len(mixed) == 3 * 4 * 5
    for game in (mixed[3], mixed[-1]):
        capsys.readouterr()
        assert evaluation.main(["--replay", str(tmp_path), str(game)]) == 0
        told = ", ".join(f"seat {seat} {name}" for seat, name in enumerate(seated.loc[game]))
        assert capsys.readouterr().out.splitlines()[0].endswith(f"; {told}")


def shown_end(run: Path, game: int, capsys: pytest.CaptureFixture[str]) -> str:
    """The last words of a replay."""
    capsys.readouterr()
    assert evaluation.main(["--replay", str(run), str(game)]) == 0
    return capsys.readouterr().out.strip().splitlines()[-1]


def told_end(row: Any) -> str:
    """What a row of `games.csv` says in the same words."""
    winner = row["agent_0"] if row["win_share_0"] == 1 else row["agent_1"]
    return f"ended after {row['length']} actions: {winner} has won"


def test_replay_shows_the_games_of_the_results_where_blocks_overlap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for deals in (20, 30, 12):
        evaluation.run(evaluation.Config(DUEL, deals=deals, seed=6, out=tmp_path))
        table = pd.read_csv(tmp_path / "games.csv")
        for game in (0, 7, 11, 23):
            assert shown_end(tmp_path, game, capsys) == told_end(table.iloc[game])
    assert len(list(tmp_path.glob("games/*"))) == 3


def test_replay_shows_the_games_of_a_run_that_looked_before_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("greedy", "careful")  # not to be told apart by so few deals
    evaluation.run(evaluation.Config(names, deals=20, seed=6, out=tmp_path))
    results = evaluation.run(
        evaluation.Config(names, deals=20, seed=6, stop_when_separable=True, out=tmp_path)
    )
    assert results["deals_played"] == 20
    assert len(list(tmp_path.glob("games/*"))) == 5
    table = pd.read_csv(tmp_path / "games.csv")
    for game in (3, 39):
        assert shown_end(tmp_path, game, capsys) == told_end(table.iloc[game])


def test_more_deals_keep_the_blocks_that_were_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "BLOCK_GAMES", 16)
    evaluation.run(evaluation.Config(DUEL, deals=20, out=tmp_path))
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("games/*")}
    evaluation.run(evaluation.Config(DUEL, deals=40, out=tmp_path))
    assert {path: path.stat().st_mtime_ns for path in times} == times
    firsts = sorted(int(path.stem.split("-")[1]) for path in tmp_path.glob("games/*"))
    assert firsts == [0, 8, 16, 16, 24, 32]


@pytest.mark.parametrize(
    ("game", "message"), [("40", "game: expected a number in 0..39; got 40"), ("-1", "got -1")]
)
def test_replay_refuses_games_that_there_are_not(
    game: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation.run(evaluation.Config(DUEL, deals=20, out=tmp_path))
    assert evaluation.main(["--replay", str(tmp_path), game]) == 2
    assert message in capsys.readouterr().err


def test_list_names_the_agents(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluation.main(["--list"]) == 0
    shown = capsys.readouterr().out
    for spec in threeup_agents.SPECS:
        assert spec in shown


def test_the_command_in_the_results_gives_them_again(tmp_path: Path) -> None:
    config = evaluation.Config(
        ("greedy", "random"), 3, 20, "listed", 90, 4, "public", mixed=False, half_width=0.1
    )
    first = untimed(config)
    arguments = shlex.split(first["command"])[2:]
    assert evaluation.main([*arguments, "--out", str(tmp_path)]) == 0
    again = json.loads((tmp_path / "results.json").read_text())
    del again["timing"]
    assert again == json.loads(json.dumps(first))


def test_a_run_stops_when_every_pair_is_told_apart(tmp_path: Path) -> None:
    results = evaluation.run(evaluation.Config(DUEL, deals=400, stop_when_separable=True))
    assert results["stopping"]["looks"] == [100, 200, 300, 400]
    assert results["deals_played"] == 100
    assert results["confidence"] == pytest.approx(1 - 0.05 / 4)


def test_a_run_plays_until_its_intervals_are_narrow(tmp_path: Path) -> None:
    config = evaluation.Config(DUEL, until_half_width=0.05, max_deals=1000, out=tmp_path / "one")
    results = untimed(config)
    looks = results["stopping"]["looks"]
    assert results["deals_played"] in looks[1:-1]
    assert max(pair["high"] - pair["low"] for pair in results["pairings"]) <= 0.1
    # One look before it was too early, and whoever plays the deals they are the same.
    before = looks[looks.index(results["deals_played"]) - 1]
    short = dataclasses.replace(config, max_deals=before, workers=2, out=tmp_path / "two")
    pairings = untimed(short)["pairings"]
    assert max(pair["high"] - pair["low"] for pair in pairings) > 0.1
    assert untimed(dataclasses.replace(config, out=tmp_path / "two")) == results


def test_one_rule_for_stopping_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--stop-when-separable", "--until-half-width", "0.1"]
    assert evaluation.main([*SMALL, *rules]) == 2
    assert "expected one rule for stopping; got until_half_width" in capsys.readouterr().err


def test_the_report_stands_alone_and_names_everybody(tmp_path: Path) -> None:
    evaluation.run(evaluation.Config(DUEL, deals=20, num_players=4, out=tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page
    for word in ("random", "greedy", "threeup evaluate --agents random greedy"):
        assert word in page
    for outside in ("<script src", "<link", "<img", "@import", "url(http"):
        assert outside not in page


def test_an_agent_that_breaks_the_rules_leaves_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make = specs.make_any

    def with_a_cheat(spec: str, *options: Any, **named: Any) -> Any:
        return Cheat() if spec == "cheat" else make(spec, *options, **named)

    monkeypatch.setattr(specs, "make_any", with_a_cheat)
    everybody = ["--agents", "cheat", "random", "greedy"]
    assert evaluation.main([*SMALL, *everybody, "--out", str(tmp_path)]) == 3
    error = capsys.readouterr().err
    assert "agent 'cheat': expected one of 'lay" in error
    assert "deal 0, rotation 0, step 0" in error
    results = json.loads((tmp_path / "results.json").read_text())
    assert [row["agent"] for row in results["failures"]] == ["cheat"]
    assert {row["agent"] for row in results["ratings"]} == {"random", "greedy"}
    assert "left the run" in (tmp_path / "report.html").read_text()


class Cheat:
    """Draws whether it may or not."""

    name = "cheat"

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """As `Agent.act`."""
        return np.full(len(action_masks), DRAW, np.int64)


def test_relabelling_the_agents_changes_nothing() -> None:
    one = evaluation.run(evaluation.Config(("random", "greedy"), deals=20))
    other = evaluation.run(evaluation.Config(("greedy", "random"), deals=20))

    def shares(results: dict[str, list[dict[str, float]]]) -> dict[tuple[float, float], float]:
        return {(pair["agent"], pair["against"]): pair["win_share"] for pair in results["pairings"]}

    assert shares(one) == shares(other)


def test_at_two_players_the_shares_of_a_pair_add_up_to_one() -> None:
    one, other = evaluation.run(evaluation.Config(DUEL, deals=20))["pairings"]
    assert one["win_share"] + other["win_share"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agents", "random", "greedi"], "agent: expected one of random, greedy"),
        (["--agents", "random"], "agents: expected at least 2; got 1"),
        (["--agents", "random", "random"], "'random' more than once"),
        (["--deals", "0"], "deals: expected an integer of at least 2; got 0"),
        (["--max-steps", "0"], "max_steps: expected an integer of at least 1; got 0"),
        (["--seed", "-1"], "seed: expected an integer of at least 0; got -1"),
        (["--num-players", "7"], "num_players: expected 2 to 6"),
        (["--variant", "large"], "variant: expected one of 'standard'"),
        (["--out", __file__], "out: expected a folder"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluation.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("threeup evaluate: ")
    assert message in error
    assert error.count("\n") == 1


def policy_in(folder: Path, num_players: int = 2) -> Path:
    """A run folder with a policy that weighs all actions alike."""
    folder.mkdir()
    size = observation_size(num_players)
    layer = np.zeros((NUM_ACTIONS, size), np.float32), np.zeros(NUM_ACTIONS, np.float32)
    ppo.Policy([layer], (num_players,)).save(folder / "policy.safetensors")
    return folder


def test_a_policy_for_another_table_size_is_named_before_any_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(policy_in(tmp_path / "run"))
    assert evaluation.main([*SMALL, "--agents", "random", run, f"{run}:best"]) == 0
    assert evaluation.main([*SMALL, "--agents", "random", run, "--num-players", "3"]) == 2
    error = capsys.readouterr().err
    assert run in error
    assert "expected a table of 2 players; got 3" in error


def test_a_policy_of_another_version_of_the_environment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = policy_in(tmp_path / "run")
    monkeypatch.setattr(ppo, "ENV_ID", "threeup-v0")
    assert evaluation.main([*SMALL, "--agents", "random", str(run)]) == 2
    assert "expected env 'threeup-v0'; got 'threeup-v1'" in capsys.readouterr().err


def test_two_ways_to_write_one_policy_are_one_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = policy_in(tmp_path / "run")
    both = [str(run), str(run / "policy.safetensors")]
    assert evaluation.main([*SMALL, "--agents", *both]) == 2
    assert "expected each one once" in capsys.readouterr().err


def test_a_number_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluation.main(["--deals", "many"])
    assert stopped.value.code == 2
    assert "deals: expected an integer; got 'many'" in capsys.readouterr().err


def test_interrupting_keeps_the_games_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert evaluation.main([*SMALL, "--num-players", "3", *out]) == 0
    before = tmp_path.joinpath("results.json").read_bytes()
    games = {path: path.read_bytes() for path in tmp_path.glob("games/*")}

    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tournament, "_play", interrupted)
    assert evaluation.main([*SMALL, "--deals", "30", "--num-players", "3", *out]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert tmp_path.joinpath("results.json").read_bytes() == before
    assert {path: path.read_bytes() for path in tmp_path.glob("games/*")} == games
    # Nothing is missing of the first run, so nothing is played.
    assert evaluation.main([*SMALL, "--num-players", "3", *out]) == 0


def test_every_option_has_a_default_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluation.main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for field in dataclasses.fields(evaluation.Config):
        assert f"--{field.name.replace('_', '-')}" in text
        assert field.default is not dataclasses.MISSING
