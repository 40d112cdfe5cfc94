from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy import optimize

from threeup_agents.analysis import ratings
from threeup_agents.analysis.rated_games import RatedGames
from threeup_agents.analysis.round_robin import Analysis
from threeup_agents.arena.match import Match
from threeup_agents.arena.tournament import Outcome, Settings


def scripted(line_up: tuple[str, ...], winners: Sequence[Sequence[int]]) -> Match:
    """Games with the winner's place given for each deal (row) and rotation."""
    place = np.array(winners).ravel()
    num_players = len(line_up)
    won = np.arange(num_players) == place[:, None]
    games = len(place)
    return Match(
        line_up,
        deal=np.repeat(np.arange(len(winners)), num_players),
        rotation=np.tile(np.arange(num_players), len(winners)).astype(np.int8),
        seat=((np.arange(num_players) + np.arange(games)[:, None]) % num_players).astype(np.int8),
        deal_hash=np.repeat(np.arange(len(winners)), num_players),
        course=np.arange(games).astype(np.uint64),
        win_share=won.astype(float),
        cards_left=np.where(won, 0, 3).astype(np.int8),
        length=np.full(games, 40, np.int32),
        cut_off=np.zeros(games, np.bool_),
        seconds=np.full(num_players, 0.1),
        decisions=np.full(num_players, 1000),
    )


def duels(shares: dict[tuple[str, str], float], deals: int = 100) -> Analysis:
    """Each first agent wins that share of its deals, each as a whole."""
    names = tuple(sorted({name for pair in shares for name in pair}))
    matches: list[Match] = []
    for a, b in combinations(names, 2):
        share = shares[a, b] if (a, b) in shares else 1 - shares[b, a]
        order = np.random.default_rng([len(matches)]).permutation(deals)
        matches.append(scripted((a, b), [[int(i >= share * deals)] * 2 for i in order]))
    return Analysis(Settings(names, deals=deals), Outcome(names, matches))


def test_rock_paper_scissors_is_rated_level_and_the_circle_is_named() -> None:
    pairs = [("paper", "rock"), ("rock", "scissors"), ("scissors", "paper")]
    analysis = duels(dict.fromkeys(pairs, 0.8))
    assert [row["rating"] for row in analysis.ratings()] == pytest.approx([0, 0, 0], abs=1e-6)
    circle, miss = analysis.warnings()
    assert circle.startswith("paper beats rock beats scissors beats paper: no order")
    assert miss.startswith("the ratings miss 3 of 3 tables by more than chance")
    assert "won 0.800 of the decided games, by the ratings 0.500" in miss


def test_agents_in_an_order_are_not_warned_about() -> None:
    # Odds of 2 to 1 and 2 to 1 make 4 to 1 (Bradley & Terry 1952).
    analysis = duels({("a", "b"): 2 / 3, ("b", "c"): 2 / 3, ("a", "c"): 0.8}, 300)
    assert analysis.warnings() == []
    rows = {row["agent"]: row for row in analysis.ratings()}
    assert rows["a"]["rating"] - rows["b"]["rating"] == pytest.approx(np.log(2), abs=0.02)
    assert rows["b"]["rating"] - rows["c"]["rating"] == pytest.approx(np.log(2), abs=0.02)


def test_a_table_at_which_the_ratings_are_wrong_is_named() -> None:
    # a beats b and b beats c by as much, but a and c are level: no circle, and no ratings.
    shares = {("a", "b"): 0.75, ("b", "c"): 0.75, ("a", "c"): 0.5}
    analysis = duels(shares, 400)
    (miss,) = analysis.warnings()
    assert miss.startswith("the ratings miss 3 of 3 tables")

    def too_many(odds: float) -> float:
        """Wins of a that the ratings give beyond its own, where each odds are the next's."""
        return odds / (1 + odds) + odds**2 / (1 + odds**2) - 1.25

    odds = optimize.brentq(too_many, 1, 10)
    (row,) = (
        row
        for row in analysis.results()["misses"]
        if (row["line_up"], row["agent"]) == (["a", "c"], "a")
    )
    assert row["observed"] == 0.5
    assert row["fitted"] == pytest.approx(odds**2 / (1 + odds**2), abs=0.001)
    assert row["p_holm"] < 0.001


def test_differences_of_ratings_stand_beside_those_of_shares() -> None:
    analysis = duels({("a", "b"): 0.6, ("b", "random"): 0.9, ("a", "random"): 0.9})
    rating = {row["agent"]: row["rating"] for row in analysis.ratings()}
    assert rating["random"] == 0
    for row in analysis.differences():
        difference = rating[row["agent"]] - rating[row["against"]]
        assert row["rating_difference"] == pytest.approx(difference)
        assert row["rating_low"] < difference < row["rating_high"]


def test_no_interval_of_a_rating_is_a_point() -> None:
    analysis = duels({("a", "b"): 1.0, ("a", "random"): 1.0, ("b", "random"): 1.0}, 10)
    for row in analysis.ratings():
        assert row["quasi_low"] + 1 < row["rating"] < row["quasi_high"] - 1
        assert row["low"] + 0.3 < row["rating"] < row["high"] - 0.3


def test_wins_of_copies_are_added_up() -> None:
    match = scripted(("a", "b", "b"), [[0, 1, 2], [0, 0, 1]])
    other = scripted(("b", "a", "a"), [[0, 0, 0], [1, 2, 0]])
    rows = RatedGames(("a", "b"), [match, other], 0.95).rows()
    # By hand: a won 3 of 6 with one seat of three, then 2 of 6 with two.
    fitted = ratings.fit(np.array([[1, 2], [2, 1]]), np.array([[3.0, 3], [2, 4]]))
    assert {row["agent"]: row["rating"] for row in rows} == pytest.approx(
        {"a": fitted[0], "b": fitted[1]}
    )
