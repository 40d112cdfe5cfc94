"""What the statistics of a run say where the truth is known."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import threeup_agents
from threeup_agents.analysis.round_robin import Analysis
from threeup_agents.analysis.statistics import mean_interval, mean_intervals
from threeup_agents.arena import play as match
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.line_ups import line_ups
from threeup_agents.arena.match import Match
from threeup_agents.arena.play import Entrant
from threeup_agents.arena.tournament import Outcome, Settings
from threeup_agents.players import simple as heuristic

Rows = npt.NDArray[np.int8]
Masks = npt.NDArray[np.bool_]


class Mixture:
    """Plays as greedy with some probability, else at random: the more greedy, the stronger."""

    def __init__(self, name: str, greedy: float, seed: int) -> None:
        self.name = name
        self._share = greedy
        self._rng = np.random.default_rng(seed)
        self._greedy = heuristic.Greedy()
        self._random = heuristic.Random(seed)

    def act(self, observations: Rows, action_masks: Masks) -> npt.NDArray[np.int64]:
        """As `Agent.act`."""
        sober = self._rng.random(len(action_masks)) < self._share
        both = [agent.act(observations, action_masks) for agent in (self._greedy, self._random)]
        return np.where(sober, *both)


def mixture(name: str, greedy: float) -> Callable[[int], threeup_agents.Agent]:
    def made(seed: int) -> threeup_agents.Agent:
        return Mixture(name, greedy, seed)

    made.__name__ = name
    return made


STRENGTHS = {"a": 0.0, "b": 1.0, "c": 0.4, "d": 0.7}


def tournament(
    names: tuple[str, ...], num_players: int, deals: int, **entrants: Entrant
) -> tuple[Settings, Outcome]:
    decks = draw_deals(deals, num_players)
    matches = [
        match.play([entrants[name] for name in table], decks, progress=False)
        for table in line_ups(names, num_players)
    ]
    return Settings(names, num_players, deals), Outcome(names, matches)


@pytest.fixture(scope="module", params=[2, 3])
def ladder(request: pytest.FixtureRequest) -> Analysis:
    entrants = {name: mixture(name, greedy) for name, greedy in STRENGTHS.items()}
    return Analysis(*tournament(("a", "b", "c", "d"), request.param, 120, **entrants))


def test_agents_of_known_strength_are_put_in_order(ladder: Analysis) -> None:
    strongest_first = ["b", "d", "c", "a"]
    assert [row["agent"] for row in ladder.ratings()] == strongest_first
    assert [row["agent"] for row in ladder.standings()] == strongest_first


def test_clear_differences_are_told_apart_and_say_which_is_better(ladder: Analysis) -> None:
    verdicts = ladder.verdicts()
    assert verdicts["b", "a"]["verdict"] == "better"
    assert verdicts["a", "b"]["verdict"] == "worse"
    assert verdicts["b", "a"]["p_holm"] == verdicts["a", "b"]["p_holm"] < 0.001


def test_paired_differences_are_the_differences_of_the_shares(ladder: Analysis) -> None:
    share = {row["agent"]: row["win_share"] for row in ladder.standings()}
    for row in ladder.differences():
        expected = share[row["agent"]] - share[row["against"]]
        assert row["difference"] == pytest.approx(expected)
        assert row["low"] <= row["difference"] <= row["high"]


def test_a_run_counts_what_it_played(ladder: Analysis) -> None:
    results = ladder.results()
    assert results["distinct_deals"] == results["deals_played"] == 120
    assert sum(results["length"]["histogram"]["counts"]) == results["games"]
    assert {row["agent"] for row in results["timing"]} == set(STRENGTHS)
    shares = [row["win_share"] for row in results["seats"]]
    assert sum(shares) == pytest.approx(1)


def test_games_of_the_same_course_are_counted() -> None:
    # Two that always choose alike play every deal alike under both rotations.
    entrants: dict[str, Entrant] = {
        "a": lambda seed: heuristic.Greedy(),
        "b": lambda seed: heuristic.Greedy(),
    }
    for name, entrant in entrants.items():
        entrant.__name__ = name  # type: ignore[union-attr]
    results = Analysis(*tournament(("a", "b"), 2, 30, **entrants)).results()
    assert results["repeated_games"] == 30


def test_an_agent_against_itself_is_within_its_interval_19_times_of_20() -> None:
    runs, deals = 200, 40
    pair: list[Entrant] = [mixture("a", 0.5), mixture("b", 0.5)]
    played = match.play(pair, runs * deals, progress=False)
    shares = played.by_deal(played.win_share[:, 0]).reshape(runs, deals)
    assert is_about_95_percent(covered(shares, 0.5), runs)
    # The same check finds intervals that are too narrow: every deal counted four times.
    assert not is_about_95_percent(covered(np.repeat(shares, 4, axis=1), 0.5), runs)


def covered(values: npt.NDArray[np.float64], truth: float) -> int:
    """How many rows have the truth in their interval."""
    intervals = mean_intervals(values)
    return sum(interval.low <= truth <= interval.high for interval in intervals)


def is_about_95_percent(count: int, runs: int) -> bool:
    return float(stats.binomtest(count, runs, 0.95).pvalue) > 0.005


def test_swapped_results_are_noticed() -> None:
    played = match.play(["greedy", "random"], 20, progress=False)
    played.check()
    swapped = dict(vars(played)) | {"win_share": played.win_share[:, ::-1]}
    with pytest.raises(ValueError, match="expected the win where no cards are left"):
        Match(**swapped).check()
    swapped = dict(vars(played)) | {"cut_off": ~played.cut_off}
    with pytest.raises(ValueError, match="expected a winner without cards"):
        Match(**swapped).check()


def test_the_plan_of_a_pilot_is_kept_by_the_run_that_follows_it() -> None:
    pair: list[Entrant] = [mixture("a", 0.8), mixture("b", 0.4)]
    pilot = match.play(pair, 300, seed=1, progress=False)
    settings = Settings(("a", "b"), deals=300)
    plan = Analysis(settings, Outcome(("a", "b"), [pilot]), half_width=0.02).plan()
    full = match.play(pair, plan["deals"], seed=2, progress=False)
    interval = mean_interval(full.by_deal(full.win_share[:, 0]))
    assert (interval.high - interval.low) / 2 == pytest.approx(0.02, rel=0.15)
