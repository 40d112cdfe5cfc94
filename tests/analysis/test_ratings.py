import choix
import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

from threeup_agents.analysis import ratings
from threeup_agents.analysis.plackett_luce import Likelihood

DUEL = np.array([[1, 1]])
SEATS = np.array([[1, 2, 0], [2, 1, 0], [0, 1, 2], [1, 0, 2], [1, 1, 1]])
WINS = np.array([[31, 9, 0], [34, 6, 0], [0, 40, 0], [25, 0, 15], [20, 14, 6]], float)


def penalised(logs: npt.NDArray[np.float64], wins: npt.NDArray[np.float64]) -> float:
    """The likelihood at ratings of which the last is 0, written down as Firth (1993) defines it."""
    chances = SEATS * np.exp([*logs, 0])
    chances /= chances.sum(axis=1, keepdims=True)
    value = float(wins[SEATS > 0] @ np.log(chances[SEATS > 0]))
    information = np.zeros((2, 2))
    for games, chance in zip(wins.sum(axis=1), chances[:, :2], strict=True):
        information += games * (np.diag(chance) - np.outer(chance, chance))
    return value + 0.5 * float(np.log(np.linalg.det(information)))


@pytest.mark.parametrize(("wins", "losses"), [(80, 20), (500, 500), (1, 3), (100, 0)])
def test_two_agents_differ_by_their_log_odds_with_half_a_win_for_each(
    wins: int, losses: int
) -> None:
    # Firth (1993), section 3.3: in a logit Jeffreys' prior is half a win and half a loss.
    fitted = ratings.fit(DUEL, np.array([[wins, losses]], float))
    expected = np.log((wins + 0.5) / (losses + 0.5))
    assert fitted[0] - fitted[1] == pytest.approx(expected, abs=1e-5)


def test_one_against_three_copies_is_rated_by_its_odds_against_each() -> None:
    # Wins are exp(r) / (exp(r) + 3), so a share of 1/2 is a rating of log 3.
    fitted = ratings.fit(np.array([[1, 3]]), np.array([[500.0, 500.0]]))
    assert fitted[0] - fitted[1] == pytest.approx(np.log(3), abs=1e-6)


def test_fit_agrees_with_choix_on_single_tables() -> None:
    rng = np.random.default_rng(4)
    strength = np.array([0.0, 0.7, 1.5])
    line_ups = [(0, 1, 2), (0, 1, 1), (1, 0, 0), (2, 1, 1), (0, 2, 2)]
    games = []
    seats, wins = np.zeros((5, 3), int), np.zeros((5, 3))
    for i, line_up in enumerate(line_ups):
        seats[i] = np.bincount(line_up, minlength=3)
        odds = np.exp(strength[list(line_up)])
        for place in rng.choice(3, size=200, p=odds / odds.sum()):
            wins[i, line_up[place]] += 1
            games.append((line_up[place], tuple(np.delete(line_up, place).tolist())))
    expected = choix.ilsr_top1(3, games)
    np.testing.assert_allclose(ratings.fit(seats, wins, penalised=False), expected, atol=1e-6)


def test_fit_gives_the_published_ratings_of_four_journals() -> None:
    # Citations between Biometrika, Comm. Statist., JASA and JRSS-B (Stigler 1994), and the
    # fit in Turner & Firth (2012), "Bradley-Terry models in R: the BradleyTerry2 package".
    counts = [(0, 1, 730, 33), (0, 2, 498, 320), (0, 3, 221, 284)]
    counts += [(1, 2, 68, 813), (1, 3, 17, 276), (2, 3, 142, 325)]
    seats, wins = np.zeros((6, 4), int), np.zeros((6, 4))
    for row, (one, other, first, second) in enumerate(counts):
        seats[row, [one, other]] = 1
        wins[row, [one, other]] = first, second
    fitted = ratings.fit(seats, wins, penalised=False)
    np.testing.assert_allclose((fitted - fitted[0])[1:], [-2.94907, -0.47957, 0.26895], atol=1e-5)
    information = Likelihood(seats, wins, penalised=False).at(fitted).information[1:, 1:]
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(errors, [0.10255, 0.06059, 0.07083], atol=1e-5)


def test_fit_is_where_firths_penalised_likelihood_is_largest() -> None:
    best = optimize.minimize(lambda logs: -penalised(logs, WINS), np.zeros(2), tol=1e-10).x
    fitted = ratings.fit(SEATS, WINS)
    np.testing.assert_allclose(fitted[:2] - fitted[2], best, atol=1e-4)


def test_ratings_do_not_depend_on_the_order_of_agents() -> None:
    seats = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    wins = np.array([[70, 30, 0], [90, 0, 10], [0, 60, 40]], float)
    order = [2, 0, 1]
    fitted = ratings.fit(seats, wins)
    np.testing.assert_allclose(ratings.fit(seats[:, order], wins[:, order]), fitted[order])


def independent_deals(deals: int, share: float, seed: int = 1) -> npt.NDArray[np.int8]:
    """Wins of two agents in a game a deal at each rotation, which nothing ties together."""
    first = np.random.default_rng(seed).binomial(2, share, deals)
    return np.stack([first, 2 - first], axis=1)[:, None].astype(np.int8)


def test_an_interval_is_the_profile_of_the_penalised_likelihood() -> None:
    rng = np.random.default_rng(7)
    odds = SEATS * np.exp([0.8, 0.2, -0.5])
    shares = odds / odds.sum(axis=1, keepdims=True)
    wins = np.stack([rng.multinomial(3, share, size=400) for share in shares], axis=1)
    rated = ratings.rate(("a", "b", "c"), SEATS, wins.astype(np.int8), confidence=0.95)
    total = wins.sum(axis=0).astype(float)
    best = ratings.fit(SEATS, total)
    # Each table's games are independent here, so that the design effects are nearly 1.
    contrast = np.eye(3)[1] - rated.weight
    middle = float(contrast @ best)
    top = penalised(best[:2] - best[2], total)

    def fallen(distance: float) -> float:
        """How much less likely a distance is, the other ratings being what suits it best."""

        def unlikely(free: float) -> float:
            rest = -(contrast[0] * free - middle - distance) / contrast[1]
            return -penalised(np.array([free, rest]), total)

        return top + float(optimize.minimize_scalar(unlikely, bracket=(best[0] - 1, best[0])).fun)

    # On a likelihood of D deals the profile falls by half the square of Student's quantile.
    half = 0.5 * stats.t.isf(0.025, 399) ** 2
    arms = rated.low[1] - rated.value[1], rated.high[1] - rated.value[1]
    assert [fallen(arm) for arm in arms] == pytest.approx([half, half], rel=0.15)


@pytest.mark.parametrize(("share", "deals"), [(0.5, 300), (0.9, 1000)])
def test_the_interval_of_a_difference_is_that_of_a_logit(share: float, deals: int) -> None:
    wins = independent_deals(deals, share)
    rated = ratings.rate(("a", "b"), DUEL, wins)
    value, low, high = rated.difference(0, 1)
    won, lost = wins.sum(axis=0)[0]
    assert value == pytest.approx(np.log((won + 0.5) / (lost + 0.5)), abs=1e-5)
    width = 2 * 1.96 * np.sqrt(1 / won + 1 / lost)  # Woolf (1955)
    assert high - low == pytest.approx(width, rel=0.1)


def test_deals_played_four_times_say_no_more_than_once() -> None:
    # All rotations of a deal end alike: twice as many games a deal are not more deals.
    once = independent_deals(200, 0.7) // 2 * 2
    once[:, 0, 1] = 2 - once[:, 0, 0]
    one = ratings.rate(("a", "b"), DUEL, once).difference(0, 1)
    apart = np.zeros((200, 4, 2), np.int8)
    apart[:] = once
    four = ratings.rate(("a", "b"), np.tile(DUEL, (4, 1)), apart).difference(0, 1)
    assert four.high - four.low == pytest.approx(one.high - one.low, rel=0.02)


@pytest.mark.parametrize("deals", [10, 50])
def test_an_unbeaten_agent_has_a_wide_interval_and_so_has_the_zero(deals: int) -> None:
    wins = np.zeros((deals, 1, 2), np.int8)
    wins[:, 0, 0] = 2
    rated = ratings.rate(("greedy", "random"), DUEL, wins)
    assert rated.value[1] == 0
    assert (rated.high - rated.low > 1).all()
    value, low, high = rated.difference(0, 1)
    # Shares that win all the deals with probability 0.3 or more are in it, as is .999.
    assert low < np.log(0.3 ** (1 / deals) / (1 - 0.3 ** (1 / deals))) < value
    assert high > np.log(999)


def test_games_that_all_were_cut_off_leave_agents_level_and_unknown() -> None:
    seats = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    rated = ratings.rate(("a", "b", "c"), seats, np.zeros((10, 3, 3), np.int8))
    np.testing.assert_allclose(rated.value, 0, atol=1e-9)
    # A share of 1 in 25 against each other is possible, and one of 24 in 25.
    assert (rated.quasi_high > np.log(24)).all()
    assert (rated.quasi_low < -np.log(24)).all()


def test_quasi_variances_are_the_parts_of_which_variances_are_made() -> None:
    parts = np.array([0.2, 0.01, 0.5, 0.05])
    variances = np.add.outer(parts, parts)
    np.testing.assert_allclose(ratings.quasi_variances(variances), parts, rtol=1e-6)
    assert ratings.quasi_variances(variances[:2, :2]) == pytest.approx([0.105, 0.105])


def test_an_anchor_of_which_little_is_known_does_not_widen_the_others() -> None:
    # a and b meet often; neither has ever lost against random.
    seats = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    rng = np.random.default_rng(3)
    wins = np.zeros((100, 3, 3), np.int8)
    wins[:, 0, 0] = rng.binomial(2, 0.6, 100)
    wins[:, 0, 1] = 2 - wins[:, 0, 0]
    wins[:, 1, 0] = wins[:, 2, 1] = 2
    rated = ratings.rate(("a", "b", "random"), seats, wins)
    assert rated.value[2] == 0
    alone = ratings.rate(("a", "b"), DUEL, wins[:, :1, :2]).difference(0, 1)
    among = rated.difference(0, 1)
    assert among.high - among.low == pytest.approx(alone.high - alone.low, rel=0.1)
    assert rated.high[0] - rated.low[0] < 0.2 * (rated.high[2] - rated.low[2])
