"""OpenSpiel's views against what is known of three games."""

import numpy as np
import numpy.typing as npt
import pytest

from threeup_agents.analysis.second_views import ALPHA, POPULATION, check_installed, second_views

pytestmark = [pytest.mark.slow, pytest.mark.part]


@pytest.fixture(autouse=True)
def openspiel() -> None:
    pytest.importorskip("pyspiel", reason="needs OpenSpiel: pip install 'threeup[openspiel]'")
    check_installed()


def by_hand(advantage: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Alpha-rank of one population of m members (Omidshafiei et al. 2019).

    A mutant's line takes the population over with probability (1 - exp(-u)) / (1 - exp(-m u)),
    u being alpha times how much more it gets from the others than they from it; the masses are
    the stationary distribution of that chain.
    """
    size = len(advantage)
    chain = np.zeros((size, size))
    for old in range(size):
        for new in range(size):
            if new != old:
                u = ALPHA * advantage[new, old]
                taken = 1 / POPULATION if u == 0 else np.expm1(-u) / np.expm1(-POPULATION * u)
                chain[old, new] = taken / (size - 1)
        chain[old, old] = 1 - chain[old].sum()
    equations = np.vstack([chain.T - np.eye(size), np.ones(size)])
    masses: npt.NDArray[np.float64] = np.linalg.lstsq(equations, [0.0] * size + [1.0])[0]
    return masses


CYCLE = np.array([[0, 0.1, -0.1], [-0.1, 0, 0.1], [0.1, -0.1, 0]])
LADDER = np.array([[0, 0.01, 0.02], [-0.01, 0, 0.01], [-0.02, -0.01, 0]])


@pytest.mark.parametrize("advantage", [CYCLE, LADDER])
def test_alpha_rank_is_that_of_a_second_implementation(
    advantage: npt.NDArray[np.float64],
) -> None:
    names = ("a", "b", "c")
    found = second_views(names, np.array([advantage] * 10), np.random.default_rng(1))
    assert found["alpha"] == ALPHA
    masses = {row["agent"]: row["alpha_rank"] for row in found["agents"]}
    assert [masses[name] for name in names] == pytest.approx(by_hand(advantage), abs=1e-6)


def test_a_cycle_is_rated_level_and_nobody_of_it_is_behind() -> None:
    found = second_views(("a", "b", "c"), np.array([CYCLE] * 10), np.random.default_rng(1))
    for row in found["agents"]:
        assert row["alpha_rank"] == pytest.approx(1 / 3, abs=1e-6)
        assert row["nash_value"] == pytest.approx(0, abs=1e-6)


def test_a_small_advantage_does_not_take_all_and_a_large_one_does() -> None:
    # A share of 0.505 against 0.495: with no bound on alpha its mass would be 1.
    small = np.array([[0, 0.01], [-0.01, 0]])
    large = 30 * small
    one, other = (
        second_views(("a", "b"), np.array([advantage] * 10), np.random.default_rng(1))["agents"][0]
        for advantage in (small, large)
    )
    # The ratio of the two chances of taking over is exp((m - 1) u), by their formula.
    assert one["alpha_rank"] == pytest.approx(1 / (1 + np.exp(-4.9)), abs=1e-6)
    assert other["alpha_rank"] == pytest.approx(1)
    assert other["nash_value"] == pytest.approx(0, abs=1e-6)
