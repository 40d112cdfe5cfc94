"""Training recipes over their seeds."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from tests.test_evaluate import policy_in
from threeup_agents import evaluation
from threeup_agents.analysis.recipes import compare, iqm, read_groups, resampled


def test_an_interquartile_mean_by_hand() -> None:
    # Of 8 scores the two lowest and the two highest go: (3 + 4 + 5 + 6) / 4.
    scores = np.array([[9.0, 3.0], [1.0, 6.0], [5.0, 2.0], [4.0, 7.0]])
    assert iqm(scores) == pytest.approx(4.5)


def by_hand(scores: npt.NDArray[np.float64], samples: int, seed: int) -> list[float]:
    """Interquartile means of runs drawn with replacement, one sample after the other."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(samples):
        drawn = sorted(
            share for run in rng.choice(len(scores), len(scores)) for share in scores[run]
        )
        cut = len(drawn) // 4
        middle = drawn[cut : len(drawn) - cut]
        found.append(sum(middle) / len(middle))
    return found


def test_the_bootstrap_is_that_of_a_second_implementation() -> None:
    scores = np.random.default_rng(1).beta(4, 6, (7, 3))
    ours = resampled(scores, np.random.default_rng(2), 20_000)
    theirs = by_hand(scores, 20_000, 3)
    for percent in (2.5, 25, 50, 75, 97.5):
        expected = np.percentile(theirs, percent)
        assert np.percentile(ours, percent) == pytest.approx(expected, abs=0.004)


def rows(
    groups: dict[str, tuple[str, ...]], shares: npt.NDArray[np.float64]
) -> list[dict[str, object]]:
    runs = [run for runs in groups.values() for run in runs]
    return [
        {"agent": run, "against": other, "win_share": float(shares[i, j])}
        for i, run in enumerate(runs)
        for j, other in enumerate(("x", "y"))
    ]


def test_a_clearly_better_recipe_stands_first_and_apart() -> None:
    groups: dict[str, tuple[str, ...]] = {
        "a": ("a1", "a2", "a3", "a4", "a5"),
        "b": ("b1", "b2", "b3", "b4", "b5"),
    }
    shares = np.random.default_rng(4).normal(0.5, 0.01, (10, 2))
    shares[5:] += 0.1
    found = compare(rows(groups, shares), groups, ("x", "y"), np.random.default_rng(5))
    assert [row["group"] for row in found["recipes"]] == ["b", "a"]
    (difference,) = found["differences"]
    assert (difference["group"], difference["against"]) == ("b", "a")
    assert 0.06 < difference["low"] < difference["difference"] < difference["high"] < 0.14


def test_recipes_that_do_not_differ_are_told_apart_no_more_often_than_1_time_in_20() -> None:
    groups = {"a": tuple(f"a{i}" for i in range(8)), "b": tuple(f"b{i}" for i in range(8))}
    rng = np.random.default_rng(6)
    apart = 0
    for _ in range(200):
        # A good seed is good against everybody: a run's two shares go together.
        shares = rng.normal(0.5, 0.05, (16, 1)) + rng.normal(0, 0.01, (16, 2))
        (row,) = compare(rows(groups, shares), groups, ("x", "y"), rng)["differences"]
        apart += not row["low"] <= 0 <= row["high"]
    assert stats.binomtest(apart, 200, 0.05, "greater").pvalue > 0.01


def test_groups_are_named_or_called_by_their_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a-1", "a-2", "b1", "b2", "lr=1-1", "lr=1-2"):
        (tmp_path / name).mkdir()
    expected = {"a": ("a-1", "a-2"), "b": ("b1", "b2")}
    assert read_groups(["a-*", "b*"]) == expected
    assert read_groups(["a-1", "a-2", "b1", "b2"]) == expected  # as a shell fills patterns in
    assert read_groups(["best=b*"]) == {"best": ("b1", "b2")}
    assert read_groups(["lr=1-*"]) == {"lr=1": ("lr=1-1", "lr=1-2")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none-*"], "group 'none': expected runs that fit 'none-[*]'; got none"),
        (["a-1"], "group 'a': expected at least 2 runs, one a seed; got .'a-1'."),
        (["a-*", "x=a-*"], "group: expected each run once; got 'a-1' more than once"),
    ],
)
def test_a_group_that_says_nothing_is_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a-1", "a-2"):
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=message):
        read_groups(words)


def test_a_run_compares_recipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a-1", "a-2", "b-1", "b-2"):
        policy_in(tmp_path / name)
    config = evaluation.Config(("random", "greedy"), deals=20, group=("a-*", "b-*"))
    results = evaluation.run(config)
    assert results["groups"]["against"] == ["random", "greedy"]
    assert {row["group"] for row in results["groups"]["recipes"]} == {"a", "b"}
    shown = capsys.readouterr().out
    assert "recipes over their training seeds" in shown
    assert "group a: 2 seeds say little" in shown
    assert "--agents random greedy " in results["command"]
    assert results["command"].endswith("--group 'a-*' 'b-*'")
