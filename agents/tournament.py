"""Round robins: which line-ups are played, and what the games say about the agents."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from agents import ratings
from agents.match import Match
from agents.statistics import Interval, mean_interval

STATISTICS = 2
"""First spawn key of the streams for resampling."""


def line_ups(names: Sequence[str], num_players: int) -> list[tuple[str, ...]]:
    """The line-ups of a round robin.

    For every ordered pair one seat of the first agent, all others of the second; at two
    players the two orders are the same games under rotation, so one is enough, by name:
    then the games don't depend on the order in which the agents are listed.

    >>> line_ups(["b", "a"], 2)
    [('a', 'b')]
    >>> line_ups(["a", "b"], 3)
    [('a', 'b', 'b'), ('b', 'a', 'a')]
    """
    pairs = combinations(sorted(names), 2) if num_players == 2 else permutations(names, 2)
    return [(one, *[other] * (num_players - 1)) for one, other in pairs]


@dataclass(frozen=True)
class Pairing:
    """How one agent did against a table of another."""

    agent: str
    against: str
    games: int
    win_share: Interval
    place: Interval
    cut_off: Interval


@dataclass(frozen=True)
class Standing:
    """How one agent did over all its pairings."""

    agent: str
    games: int
    win_share: Interval
    place: Interval
    cut_off: Interval
    rating: Interval


def pairings(matches: Sequence[Match], seed: int) -> list[Pairing]:
    """Each agent against each other one."""
    found = []
    for match in matches:
        sides = [(0, 1), (1, 0)] if match.num_players == 2 else [(0, 1)]
        for one, other in sides:
            agent, against = match.line_up[one], match.line_up[other]
            values = _values(match, one)
            three = _intervals(values, match.num_players, seed)
            found.append(Pairing(agent, against, len(match.deal), *three))
    return found


def standings(names: Sequence[str], matches: Sequence[Match], seed: int) -> list[Standing]:
    """Each agent over all its pairings, best rating first."""
    rated = rate(names, matches, seed)
    found = []
    for name, rating in zip(names, rated, strict=True):
        own = [(match, match.line_up.index(name)) for match in matches if _is_one(match, name)]
        values = np.mean([_values(match, place) for match, place in own], axis=0)
        games = sum(len(match.deal) for match, _ in own)
        share, position, cut_off = _intervals(values, matches[0].num_players, seed)
        found.append(Standing(name, games, share, position, cut_off, rating))
    return sorted(found, key=lambda standing: -standing.rating.value)


def rate(names: Sequence[str], matches: Sequence[Match], seed: int) -> list[Interval]:
    """Plackett-Luce ratings of all agents over all games."""
    seats = np.array([[match.line_up.count(name) for name in names] for match in matches])
    wins = np.zeros((len(matches[0].by_deal(matches[0].cut_off)), len(matches), len(names)))
    for i, match in enumerate(matches):
        shares = match.by_deal(match.win_share) * match.num_players
        for place, name in enumerate(match.line_up):
            wins[:, i, names.index(name)] += shares[:, place]
    return ratings.rate(tuple(names), seats, wins, _rng(seed, 1))


def _is_one(match: Match, name: str) -> bool:
    """Whether `name` has exactly one seat, so that its share is against all others'."""
    return match.line_up.count(name) == 1


def _values(match: Match, place: int) -> npt.NDArray[np.float64]:
    """Win share, place and cut-off of one line-up place by deal; `[3, D]`."""
    columns = (match.win_share[:, place], match.place[:, place], match.cut_off)
    return np.array([match.by_deal(column) for column in columns])


def _intervals(values: npt.NDArray[np.float64], num_players: int, seed: int) -> list[Interval]:
    share, place, cut_off = values
    return [
        mean_interval(share, _rng(seed, 0)),
        mean_interval(place, _rng(seed, 0), least=1, most=num_players),
        mean_interval(cut_off, _rng(seed, 0)),
    ]


def _rng(seed: int, use: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STATISTICS, use)))
