import numpy as np
import pytest
from scipy import stats

from threeup_agents.analysis.statistics import holm, mean_interval, mean_intervals, p_value, plan


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_an_interval_of_equal_deals_still_has_a_width() -> None:
    interval = mean_interval(np.ones(20), rng())
    assert interval.high == 1
    # Clopper & Pearson: 20 of 20 has the lower limit 0.025 ** (1 / 20).
    assert interval.low == pytest.approx(stats.binomtest(20, 20).proportion_ci(0.95).low)


def test_equal_deals_of_places_reach_from_the_first_to_the_last_place() -> None:
    interval = mean_interval(np.full(20, 2.0), rng(), least=1, most=4)
    reach = 1 - 0.025 ** (1 / 20)
    assert interval == pytest.approx((2, 2 - reach, 2 + 2 * reach))


def test_an_interval_agrees_with_the_normal_one_for_many_deals() -> None:
    values = rng(1).choice([0, 0.5, 1], size=2000)
    interval = mean_interval(values, rng(2), resamples=4000)
    reach = 1.96 * values.std() / np.sqrt(2000)
    assert interval.high - interval.low == pytest.approx(2 * reach, rel=0.05)


def test_more_confidence_is_a_wider_interval() -> None:
    values = rng(1).random(100)
    wide = mean_interval(values, rng(), confidence=0.99)
    narrow = mean_interval(values, rng())
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_quantities_are_resampled_together() -> None:
    values = rng(1).random(100)
    one, other = mean_intervals(np.stack([values, 1 - values]), rng())
    assert one.low + other.high == pytest.approx(1)


def test_a_p_value_is_uniform_where_nothing_differs() -> None:
    differences = rng(3).normal(size=(500, 50))
    small = np.mean([p_value(row) < 0.05 for row in differences])
    assert stats.binomtest(round(small * 500), 500, 0.05).pvalue > 0.01


def test_the_p_value_of_deals_that_all_agree_is_the_sign_tests() -> None:
    assert p_value(np.full(10, 0.5)) == pytest.approx(stats.binomtest(10, 10).pvalue)
    assert p_value(np.zeros(10)) == 1


def test_holm_by_hand() -> None:
    # Holm (1979): ascending 0.01 x 3, 0.02 x 2, 0.04 x 1, each at least the one before.
    assert holm([0.04, 0.01, 0.02]).tolist() == [0.04, 0.03, 0.04]
    assert holm([0.5, 0.9]).tolist() == [1, 1]


def test_the_plan_keeps_its_promise() -> None:
    source = rng(4)
    pilot = source.choice([0, 0.5, 1], size=300, p=[0.2, 0.5, 0.3])
    deals = plan(float(pilot.std(ddof=1)), half_width=0.02)
    full = source.choice([0, 0.5, 1], size=deals, p=[0.2, 0.5, 0.3])
    interval = mean_interval(full, rng(5))
    assert (interval.high - interval.low) / 2 == pytest.approx(0.02, rel=0.15)
