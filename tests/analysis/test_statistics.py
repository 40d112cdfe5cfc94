import numpy as np
import pytest
from scipy import stats

from threeup_agents.analysis.statistics import (
    holm,
    mean_interval,
    mean_intervals,
    p_values,
    plan,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_deals_that_were_all_won_have_the_exact_binomial_interval() -> None:
    interval = mean_interval(np.ones(20))
    assert interval.high == 1
    # Clopper & Pearson: 20 of 20 has the lower limit 0.025 ** (1 / 20).
    assert interval.low == pytest.approx(stats.binomtest(20, 20).proportion_ci(0.95).low)


@pytest.mark.parametrize("lost", [1, 10, 50])
def test_deals_won_or_lost_as_a_whole_are_a_binomial_sample(lost: int) -> None:
    # The rotations of a deal all end alike: each deal is one trial, the worst case.
    interval = mean_interval(np.repeat([0.0, 1.0], [lost, 100 - lost]))
    exact = stats.binomtest(100 - lost, 100).proportion_ci(0.95)
    assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high), abs=0.003)
    assert interval.low <= exact.low
    assert interval.high >= exact.high


def test_games_that_nothing_ties_together_count_one_by_one() -> None:
    games = rng(1).random((2000, 2)) < 0.9
    interval = mean_interval(games.mean(axis=1))
    exact = stats.binomtest(int(games.sum()), games.size).proportion_ci(0.95)
    assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high), abs=0.001)


@pytest.mark.parametrize("num_players", [2, 3, 4, 6])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("deals", [10, 20, 50])
def test_more_losses_never_raise_an_end(num_players: int, whole: bool, deals: int) -> None:
    losses = np.arange(deals // 2 + 1)
    by_deal = np.where(np.arange(deals) < losses[:, None], 1 if whole else 1 / num_players, 0)
    found = np.array(mean_intervals(1 - by_deal))
    assert (np.diff(found, axis=0) <= 1e-9).all()


def test_equal_deals_of_places_reach_from_the_first_to_the_last_place() -> None:
    low, high = mean_interval(np.full(20, 1.0), least=1, most=4)[1:]
    assert (low, high) == pytest.approx((1, 4 - 3 * 0.025 ** (1 / 20)))
    value, low, high = mean_interval(np.full(20, 2.0), least=1, most=4)
    # A deal in 40 may well end on place 4 or place 1, and none of 20 does (probability 0.6).
    assert low < value - 1 / 40 < value + 2 / 40 < high


def test_an_interval_agrees_with_the_normal_one_for_many_deals() -> None:
    values = rng(1).choice([0, 0.5, 1], size=2000)
    interval = mean_interval(values)
    reach = 1.96 * values.std() / np.sqrt(2000)
    assert interval.high - interval.low == pytest.approx(2 * reach, rel=0.05)


def test_more_confidence_is_a_wider_interval() -> None:
    values = rng(1).random(100)
    wide = mean_interval(values, confidence=0.99)
    narrow = mean_interval(values)
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_the_other_side_of_a_share_has_the_mirrored_interval() -> None:
    values = rng(1).choice([0, 0.5, 1], size=20, p=[0.1, 0.2, 0.7])
    one, other = mean_intervals(np.stack([values, 1 - values]))
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))


def test_a_p_value_is_uniform_where_nothing_differs() -> None:
    differences = rng(3).uniform(-1, 1, size=(2000, 1000))
    small = int((p_values(differences) < 0.05).sum())
    assert stats.binomtest(small, 2000, 0.05).pvalue > 0.01
    assert 0.02 < (p_values(differences[:, :15]) < 0.05).mean() < 0.05  # exact, so never more


def test_the_p_value_of_deals_that_all_agree_is_the_sign_tests() -> None:
    expected = stats.binomtest(10, 10).pvalue
    assert p_values(np.array([np.ones(10), -np.ones(10)])) == pytest.approx(expected)
    assert p_values(np.zeros((1, 10))) == 1


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("deals", [4, 15, 60])
def test_a_p_value_says_what_the_interval_says(confidence: float, deals: int) -> None:
    differences = rng(5).choice([-1, -0.5, 0, 1], size=(500, deals), p=[0.1, 0.2, 0.2, 0.5])
    found = mean_intervals(differences, confidence, least=-1)
    apart = [interval.low > 0 or interval.high < 0 for interval in found]
    assert apart == (p_values(differences) < 1 - confidence).tolist()


def test_holm_by_hand() -> None:
    # Holm (1979): ascending 0.01 x 3, 0.02 x 2, 0.04 x 1, each at least the one before.
    assert holm([0.04, 0.01, 0.02]).tolist() == [0.04, 0.03, 0.04]
    assert holm([0.5, 0.9]).tolist() == [1, 1]


def test_the_plan_keeps_its_promise() -> None:
    source = rng(4)
    pilot = source.choice([0, 0.5, 1], size=300, p=[0.2, 0.5, 0.3])
    deals = plan(float(pilot.std(ddof=1)), half_width=0.02)
    full = source.choice([0, 0.5, 1], size=deals, p=[0.2, 0.5, 0.3])
    interval = mean_interval(full)
    assert (interval.high - interval.low) / 2 == pytest.approx(0.02, rel=0.15)
