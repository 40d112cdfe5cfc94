import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evaluate
from agents.statistics import Interval, mean_interval

ROOT = Path(evaluate.__file__).parent
SMALL = ["--deals", "20"]


def test_the_command_prints_who_is_better() -> None:
    done = subprocess.run(
        [sys.executable, "evaluate.py", *SMALL], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "greedy" in done.stdout
    assert "better" in done.stdout


def test_results_have_the_promised_keys(tmp_path: Path) -> None:
    out = tmp_path / "new" / "run"
    assert evaluate.main([*SMALL, "--seed", "3", "--num-players", "3", "--out", str(out)]) == 0
    results = json.loads((out / "results.json").read_text())
    assert {"num_players": 3, "deals": 20, "seed": 3}.items() <= results.items()
    pairs = {(pair["agent"], pair["against"]) for pair in results["pairings"]}
    assert pairs == {("random", "greedy"), ("greedy", "random")}
    for pair in results["pairings"]:
        assert pair["games"] == 60
        assert 0 <= pair["low"] <= pair["win_share"] <= pair["high"] <= 1
        assert pair["cut_off_share"] == 0
    rated = {row["agent"]: row for row in results["ratings"]}
    assert rated["random"]["rating"] == rated["random"]["low"] == rated["random"]["high"] == 0
    assert rated["greedy"]["low"] > 0
    assert list(out.iterdir()) == [out / "results.json"]


def test_the_same_command_gives_the_same_results() -> None:
    config = evaluate.Config(deals=20)
    assert evaluate.run(config) == evaluate.run(config)


def test_relabelling_the_agents_changes_nothing() -> None:
    one = evaluate.run(evaluate.Config(("random", "greedy"), deals=20))
    other = evaluate.run(evaluate.Config(("greedy", "random"), deals=20))

    def shares(results: dict[str, list[dict[str, float]]]) -> dict[tuple[float, float], float]:
        return {(pair["agent"], pair["against"]): pair["win_share"] for pair in results["pairings"]}

    assert shares(one) == shares(other)


def test_at_two_players_the_shares_of_a_pair_add_up_to_one() -> None:
    one, other = evaluate.run(evaluate.Config(deals=20))["pairings"]
    assert one["win_share"] + other["win_share"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agents", "random", "greedi"], "agent: expected one of random, greedy"),
        (["--agents", "random"], "agents: expected at least 2; got 1"),
        (["--agents", "random", "random"], "'random' more than once"),
        (["--deals", "0"], "deals: expected at least 1; got 0"),
        (["--max-steps", "0"], "max-steps: expected at least 1; got 0"),
        (["--seed", "-1"], "seed: expected at least 0; got -1"),
        (["--num-players", "7"], "num_players: expected 2 to 6"),
        (["--variant", "large"], "variant: expected one of 'standard'"),
        (["--out", __file__], "out: expected a folder"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("evaluate.py: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_number_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluate.main(["--deals", "many"])
    assert stopped.value.code == 2
    assert "--deals" in capsys.readouterr().err


def test_interrupting_leaves_old_results_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main([*SMALL, "--out", str(tmp_path)]) == 0
    before = (tmp_path / "results.json").read_text()

    def interrupted(config: evaluate.Config) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "play_all", interrupted)
    assert evaluate.main([*SMALL, "--seed", "1", "--out", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert (tmp_path / "results.json").read_text() == before


def test_every_option_has_a_default_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluate.main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for field in dataclasses.fields(evaluate.Config):
        assert f"--{field.name.replace('_', '-')}" in text
        assert field.default is not dataclasses.MISSING


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.51, 0.6, "better"), (0.4, 0.49, "worse"), (0.45, 0.55, "not separable")],
)
def test_verdict(low: float, high: float, expected: str) -> None:
    assert evaluate.verdict(Interval(0.5, low, high), fair=0.5) == expected


def test_an_interval_of_equal_deals_still_has_a_width() -> None:
    interval = mean_interval(np.ones(20), np.random.default_rng(0))
    assert interval.high == 1
    # Clopper & Pearson: 20 of 20 has the lower limit 0.025 ** (1 / 20).
    assert interval.low == pytest.approx(0.8316, abs=1e-4)


def test_an_interval_agrees_with_the_normal_one_for_many_deals() -> None:
    values = np.random.default_rng(1).choice([0, 0.5, 1], size=2000)
    interval = mean_interval(values, np.random.default_rng(2), resamples=4000)
    reach = 1.96 * values.std() / np.sqrt(2000)
    assert interval.high - interval.low == pytest.approx(2 * reach, rel=0.05)
