import numpy as np
import pytest
from scipy import stats

from tests.analysis.test_rated_games import duels, scripted
from threeup_agents.analysis.pilot import deals_needed
from threeup_agents.arena.pace import seconds_per_deal


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
    # Each has 2 agents of 0.1 s and 1000 decisions on 20 deals: 10 ms and a little a deal.
    winners = [[i % 2, 0] for i in range(20)]
    slow, fast = scripted(("a", "b"), winners), scripted(("a", "c"), winners)
    fast.seconds[:] = 0
    assert seconds_per_deal(slow) == pytest.approx(0.01, rel=0.05)
    shares = {match.line_up: match.by_deal(match.win_share[:, 0]) for match in (slow, fast)}
    plan = deals_needed([slow, fast], shares, half_width=0.05, confidence=0.95)
    assert plan["seconds"] == pytest.approx(0.01 * plan["deals"], rel=0.05)
