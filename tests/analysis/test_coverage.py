"""Whether 95% intervals hold the truth 95% of the time, on simulated tournaments."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from threeup_agents.analysis import ratings
from threeup_agents.analysis.statistics import mean_intervals

SIMULATIONS = 1000
RATINGS = np.array([0.0, 0.5, 1.2])
LINE_UPS: dict[int, list[tuple[int, ...]]] = {
    2: [(0, 1), (0, 2), (1, 2)],
    3: [(0, 1, 1), (1, 2, 2), (2, 0, 0), (0, 1, 2)],
}


def simulated_wins(
    num_players: int, deals: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Seats `[L, N]` and wins `[D, L, N]` of agents whose ratings are `RATINGS`.

    On some deals all rotations end alike: the games of a deal depend on each other, and
    an interval that took them for independent would be too narrow.
    """
    line_ups = LINE_UPS[num_players]
    seats = np.array([np.bincount(line_up, minlength=3) for line_up in line_ups])
    wins = np.zeros((deals, len(line_ups), 3), np.int8)
    for i, line_up in enumerate(line_ups):
        odds = np.exp(RATINGS[list(line_up)])
        drawn = rng.choice(num_players, size=(deals, num_players), p=odds / odds.sum())
        alike = rng.random(deals) < 0.3
        drawn[alike] = drawn[alike, :1]
        for rotation in range(num_players):
            np.add.at(wins[:, i], (np.arange(deals), np.array(line_up)[drawn[:, rotation]]), 1)
    return seats, wins


def truth(line_up: tuple[int, ...]) -> float:
    """The share of the agent in the first place."""
    odds = np.exp(RATINGS[list(line_up)])
    return float(odds[0] / odds.sum())


@pytest.mark.slow
@pytest.mark.parametrize("deals", [30, 300])
@pytest.mark.parametrize("num_players", [2, 3])
def test_win_share_intervals_cover(num_players: int, deals: int) -> None:
    rng = np.random.default_rng([num_players, deals])
    line_ups = LINE_UPS[num_players]
    count = 0
    for _ in range(SIMULATIONS):
        _, wins = simulated_wins(num_players, deals, rng)
        first = np.array([wins[:, i, line_up[0]] for i, line_up in enumerate(line_ups)])
        for line_up, interval in zip(line_ups, mean_intervals(first / num_players), strict=True):
            count += interval.low <= truth(line_up) * line_up.count(line_up[0]) <= interval.high
    assert 0.93 <= count / (SIMULATIONS * len(line_ups)) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("num_players", "deals"), [(2, 200), (3, 100)])
def test_rating_intervals_cover(num_players: int, deals: int) -> None:
    rng = np.random.default_rng(num_players)
    names = ("random", "b", "c")
    of_level, of_differences = 0, 0
    for _ in range(SIMULATIONS):
        rated = ratings.rate(names, *simulated_wins(num_players, deals, rng))
        shift = rated.value - RATINGS + rated.weight @ (RATINGS - rated.value)
        of_level += int(
            ((rated.low <= rated.value - shift) & (rated.value - shift <= rated.high)).sum()
        )
        for one, other in combinations(range(3), 2):
            interval = rated.difference(one, other)
            of_differences += interval.low <= RATINGS[one] - RATINGS[other] <= interval.high
    assert 0.93 <= of_level / (3 * SIMULATIONS) <= 0.97
    assert 0.93 <= of_differences / (3 * SIMULATIONS) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("deals", [10, 20, 50, 200])
@pytest.mark.parametrize("share", [0.9, 0.98, 0.99])
@pytest.mark.parametrize("num_players", [2, 4])
def test_intervals_of_shares_near_1_cover(num_players: int, share: float, deals: int) -> None:
    # `tests.benchmarks.coverage` looks at more: places, differences, ratings, real games.
    rng = np.random.default_rng([num_players, deals])
    # The rotations of a deal have a share of their own in common (correlation 0.3).
    weight = 1 / 0.3 - 1
    of_deal = rng.beta(weight * share, weight * (1 - share), size=(SIMULATIONS, deals))
    found = np.array(mean_intervals(rng.binomial(num_players, of_deal) / num_players))
    count = int(((found[:, 1] <= share) & (share <= found[:, 2])).sum())
    assert stats.binomtest(count, SIMULATIONS, 0.93, alternative="less").pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("deals", [10, 50])
def test_the_rating_of_an_agent_that_hardly_ever_loses_is_covered(deals: int) -> None:
    rng = np.random.default_rng(deals)
    truth = np.log(0.98 / 0.02)
    count = 0
    for _ in range(SIMULATIONS):
        first = rng.binomial(2, 0.98, size=deals)
        wins = np.stack([first, 2 - first], axis=1)[:, None].astype(np.int8)
        found = ratings.rate(("a", "b"), np.array([[1, 1]]), wins).difference(0, 1)
        count += found.low <= truth <= found.high
    assert stats.binomtest(count, SIMULATIONS, 0.93, alternative="less").pvalue > 0.01
