"""Confidence sequences against a plain second implementation, and under stopping."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from threeup_agents.analysis.sequences import intervals, looks, p_values


def by_hand(values: list[float], half_width: float, confidence: float) -> tuple[float, float]:
    """Waudby-Smith & Ramdas (2024), theorem 2, deal by deal."""
    total, squares, bets, won, paid = 0.0, 0.0, 0.0, 0.0, 0.0
    mean, variance = 1 / 2, 1 / 4
    for t, value in enumerate(values, start=1):
        bet = min(0.75, half_width / variance)
        psi = (-math.log(1 - bet) - bet) / 4
        bets += bet
        won += bet * value
        paid += 4 * (value - mean) ** 2 * psi
        total += value
        mean = (1 / 2 + total) / (t + 1)
        squares += (value - mean) ** 2
        variance = (1 / 4 + squares) / (t + 1)
    reach = (math.log(2 / (1 - confidence)) + paid) / bets
    return max(0, won / bets - reach), min(1, won / bets + reach)


@pytest.mark.parametrize("half_width", [0.01, 0.1])
def test_an_interval_is_that_of_the_paper(half_width: float) -> None:
    values = np.random.default_rng(1).choice([0, 0.5, 1], (2, 300), p=[0.2, 0.3, 0.5])
    found = intervals(values, half_width, 0.9)
    for row, interval in zip(values, found, strict=True):
        assert interval[1:] == pytest.approx(by_hand(row.tolist(), half_width, 0.9), abs=1e-12)
        assert interval.value == pytest.approx(row.mean())


def test_differences_reach_from_minus_one_to_one() -> None:
    values = np.random.default_rng(2).choice([-1, 0, 1], (1, 400), p=[0.2, 0.3, 0.5])
    low, high = by_hand(((values[0] + 1) / 2).tolist(), 0.025, 0.95)
    (interval,) = intervals(values, 0.05, least=-1)
    assert interval[1:] == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-12)


def test_a_p_value_is_the_level_at_which_the_interval_meets_zero() -> None:
    values = np.random.default_rng(3).choice([-1, 0, 1], (1, 300), p=[0.3, 0.2, 0.5])
    (p,) = p_values(values, 0.1)
    (edge,) = intervals(values, 0.1, confidence=1 - float(p), least=-1)
    assert 0 < p < 0.5
    assert edge.low == pytest.approx(0, abs=1e-9)


def shares(share: float, runs: int, deals: int, seed: int) -> npt.NDArray[np.float64]:
    """Win shares of deals of two games, which end alike on three deals of ten."""
    rng = np.random.default_rng(seed)
    wins = rng.random((runs, deals, 2)) < share
    alike = rng.random((runs, deals)) < 0.3
    wins[alike, 1] = wins[alike, 0]
    means: npt.NDArray[np.float64] = wins.mean(axis=2)
    return means


@pytest.mark.parametrize("share", [0.03, 0.3, 0.5, 0.98])
def test_a_run_may_stop_at_whatever_look_it_likes(share: float) -> None:
    runs, deals = 400, 1500
    values = shares(share, runs, deals, seed=8)
    missed = np.zeros(runs, bool)
    student = np.zeros(runs, bool)
    for look in looks(deals):
        seen = values[:, :look]
        for run, interval in enumerate(intervals(seen, 0.05)):
            missed[run] |= not interval.low <= share <= interval.high
        reach = stats.t.ppf(0.975, look - 1) * seen.std(axis=1, ddof=1) / math.sqrt(look)
        student |= np.abs(seen.mean(axis=1) - share) > reach
    assert stats.binomtest(int(missed.sum()), runs, 0.05, "greater").pvalue > 0.01
    # An interval for one look only misses far more often: the stopper's advantage is real.
    assert stats.binomtest(int(student.sum()), runs, 0.05, "greater").pvalue < 1e-6


def test_twice_the_deals_of_a_fixed_plan_reach_the_half_width() -> None:
    # 2 log(2 / 0.05) v / w^2 against 1.96^2 v / w^2, plus a look's overshoot and the start.
    values = shares(0.4, 20, 6000, seed=9)
    fixed = 1.96**2 * values.var() / 0.03**2
    for row in values:
        reached = next(
            look
            for look in looks(6000)
            if np.ptp(intervals(row[None, :look], 0.03)[0][1:]) / 2 <= 0.03
        )
        assert 1.5 * fixed < reached < 2.7 * fixed


def test_looks_do_not_depend_on_where_the_run_must_end_but_for_the_last() -> None:
    assert looks(50) == [50]
    assert looks(1000)[:-1] == [look for look in looks(20_000) if look < 1000]
