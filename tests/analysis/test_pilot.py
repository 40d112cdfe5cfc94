import numpy as np
import pytest
from scipy import stats

from tests.analysis.test_rated_games import duels
from threeup_agents.analysis.pilot import in_words, seconds_needed


@pytest.mark.parametrize("deals", [5, 10, 50])
def test_a_pilot_that_won_everything_plans_for_what_it_leaves_possible(deals: int) -> None:
    plan = duels({("a", "b"): 1.0}, deals).results()["plan"]
    # Clopper & Pearson: all deals won leave a share of 0.025 ** (1 / deals) possible. A mean
    # that is lower by that much after as many deals has this deviation from deal to deal.
    arm = 1 - stats.binomtest(deals, deals).proportion_ci(0.95).low
    assert plan["deals"] == pytest.approx((arm / 0.01) ** 2 * deals, rel=0.001)
    assert plan["deals"] > 500


def test_many_deals_plan_for_their_own_deviation() -> None:
    plan = duels({("a", "b"): 0.6}, 1000).results()["plan"]
    (row,) = plan["pairings"]
    assert row["deviation"] == pytest.approx(np.sqrt(0.6 * 0.4), rel=0.03)
    assert plan["deals"] == pytest.approx(0.6 * 0.4 * (1.96 / 0.01) ** 2, rel=0.06)


def test_the_time_of_a_plan_is_that_of_all_line_ups() -> None:
    # Three line-ups of 2 agents with 0.1 s each on 20 deals: 30 ms and a little a deal.
    results = duels({("a", "b"): 0.6, ("b", "c"): 0.6, ("a", "c"): 0.7}, 20).results()
    seconds = seconds_needed(results)
    assert seconds == pytest.approx(0.03 * results["plan"]["deals"], rel=0.05)
    assert f"{seconds / 60:.0f} minutes on one core" in in_words(results)
