import choix
import numpy as np
import pytest

from threeup_agents.analysis import ratings

DUEL = np.array([[1, 1]])


@pytest.mark.parametrize(("wins", "losses"), [(80, 20), (500, 500), (1, 3)])
def test_two_agents_differ_by_their_log_odds(wins: int, losses: int) -> None:
    fitted = ratings.fit(DUEL, np.array([[wins, losses]], float))
    expected = np.log((wins + ratings.PRIOR) / (losses + ratings.PRIOR))
    assert fitted[0] - fitted[1] == pytest.approx(expected, abs=1e-6)


def test_one_against_three_copies_is_rated_by_its_odds_against_each() -> None:
    # Wins are exp(r) / (exp(r) + 3), so a share of 1/2 is a rating of log 3.
    fitted = ratings.fit(np.array([[1, 3]]), np.array([[500.0, 500.0]]))
    assert fitted[0] - fitted[1] == pytest.approx(np.log(3), abs=1e-6)


def test_an_agent_that_always_wins_has_a_finite_rating() -> None:
    fitted = ratings.fit(DUEL, np.array([[100.0, 0.0]]))
    assert fitted[0] - fitted[1] == pytest.approx(np.log(100.5 / 0.5), abs=1e-6)


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
    wins -= ratings.PRIOR * (seats > 0)  # what `fit` adds, choix.ilsr_top1 doesn't
    expected = choix.ilsr_top1(3, games)
    np.testing.assert_allclose(ratings.fit(seats, wins), expected, atol=1e-6)


def test_ratings_do_not_depend_on_the_order_of_agents() -> None:
    seats = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    wins = np.array([[70, 30, 0], [90, 0, 10], [0, 60, 40]], float)
    order = [2, 0, 1]
    fitted = ratings.fit(seats, wins)
    np.testing.assert_allclose(ratings.fit(seats[:, order], wins[:, order]), fitted[order])


@pytest.mark.parametrize("start", [0.0, 5.0])
def test_refitting_many_samples_gives_what_fitting_each_gives(start: float) -> None:
    seats = np.array([[1, 1, 0], [1, 0, 2], [0, 3, 1], [1, 1, 1]])
    counts = np.random.default_rng(3).integers(0, 100, size=(20, 4, 3))
    wins = np.where(seats > 0, counts, 0).astype(float)
    expected = [ratings.fit(seats, sample) for sample in wins]
    found = ratings.refit(seats, wins, np.array([start, 0, -start]))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_random_is_the_zero_of_the_scale() -> None:
    wins = np.random.default_rng(1).multinomial(2, [0.6, 0.4], size=(100, 1)).astype(float)
    rated = ratings.rate(("greedy", "random"), DUEL, wins, np.random.default_rng(2), resamples=99)
    assert rated[1] == (0, 0, 0)
    assert rated[0].low < rated[0].value < rated[0].high
