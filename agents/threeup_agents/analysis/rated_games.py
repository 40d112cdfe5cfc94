"""The ratings of a run's games, and what speaks against one number an agent."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from threeup_agents.analysis import ratings
from threeup_agents.analysis.statistics import holm, p_values
from threeup_agents.arena.match import Match

Row = dict[str, Any]

MISS: Final = 0.02
"""Gap between a table's share and the one by the ratings beyond which it is spoken of."""


class RatedGames:
    """Games with the ratings fitted to them.

    `seats` (int64 `[L, N]`) and `wins` (int8 `[D, L, N]`) are what `ratings.rate` asks for.

    Args:
        names: of the agents, at least two.
        matches: on the same deals.
        confidence: of the intervals.
    """

    def __init__(self, names: tuple[str, ...], matches: Sequence[Match], confidence: float) -> None:
        self._names = names
        self._matches = matches
        self._confidence = confidence
        self.seats = np.array([[match.line_up.count(name) for name in names] for match in matches])
        self.wins = np.zeros((matches[0].num_deals, len(matches), len(names)), np.int8)
        for i, match in enumerate(matches):
            shares = match.by_deal(match.win_share) * match.num_players
            for place, name in enumerate(match.line_up):
                self.wins[:, i, names.index(name)] += shares[:, place].round().astype(np.int8)

    @cached_property
    def rated(self) -> ratings.Rated:
        """The ratings and their intervals."""
        return ratings.rate(self._names, self.seats, self.wins, self._confidence)

    def rows(self) -> list[Row]:
        """A row an agent, best first."""
        keys = ("rating", "low", "high", "quasi_low", "quasi_high")
        columns = zip(*(column.tolist() for column in self.rated[: len(keys)]), strict=True)
        rows = [
            {"agent": name} | dict(zip(keys, values, strict=True))
            for name, values in zip(self._names, columns, strict=True)
        ]
        return sorted(rows, key=lambda row: -row["rating"])

    def difference(self, one: str, other: str) -> Row:
        """The rating of one agent less that of another, with its interval."""
        found = self.rated.difference(self._names.index(one), self._names.index(other))
        keys = ("rating_difference", "rating_low", "rating_high")
        return dict(zip(keys, found, strict=True))

    @cached_property
    def misses(self) -> list[Row]:
        """Shares of the decided games that the ratings get wrong by more than chance.

        Of each agent at each table of several the share is compared with that by the
        ratings, on the same deals; the p-values are corrected for the number of shares
        (Holm). The widest gap comes first.
        """
        odds = self.seats * np.exp(self.rated.value)
        chances = odds / odds.sum(axis=1, keepdims=True)
        rows: list[Row] = []
        found = []
        for match, wins, chance in zip(
            self._matches, self.wins.swapaxes(0, 1), chances, strict=True
        ):
            games = wins.sum(axis=1, dtype=np.float64)
            residuals = (wins - games[:, None] * chance) / match.num_players
            seated = np.flatnonzero(chance)
            found.append(p_values(residuals[:, seated].T))
            observed = wins.sum(axis=0, dtype=np.float64) / max(games.sum(), 1)
            rows += [
                {"line_up": list(match.line_up), "agent": self._names[i]}
                | {"observed": float(observed[i]), "fitted": float(chance[i])}
                for i in seated
            ]
        corrected = holm(np.concatenate(found)).tolist()
        rows = [row | {"p_holm": p} for row, p in zip(rows, corrected, strict=True)]
        missed = [row for row in rows if row["p_holm"] < 1 - self._confidence]
        return sorted(missed, key=_gap, reverse=True)

    def warnings(self, verdicts: Mapping[tuple[str, str], Row]) -> list[str]:
        """What a reader of the ratings must know.

        Args:
            verdicts: whether one agent is "better" than another, by the two.
        """
        found = []
        circle = cycle({pair for pair, row in verdicts.items() if row["verdict"] == "better"})
        if circle:
            beats = " beats ".join([*circle, circle[0]])
            found.append(
                f"{beats}: no order of these agents is right, and their ratings say nothing "
                "about who beats whom; see each against each"
            )
        wide = [row for row in self.misses if _gap(row) > MISS]
        if wide:
            worst = wide[0]
            tables = len({tuple(row["line_up"]) for row in wide})
            found.append(
                f"the ratings miss {tables} of {len(self._matches)} tables by more than chance "
                f"and {MISS:g}, most {' / '.join(worst['line_up'])}: there {worst['agent']} won "
                f"{worst['observed']:.3f} of the decided games, by the ratings "
                f"{worst['fitted']:.3f}"
            )
        return found


def cycle(better: set[tuple[str, str]]) -> list[str]:
    """A shortest circle of agents of which each is better than the next; empty if none is.

    >>> cycle({("rock", "scissors"), ("scissors", "paper"), ("paper", "rock"), ("rock", "well")})
    ['paper', 'rock', 'scissors']
    >>> cycle({("a", "b"), ("b", "c"), ("a", "c")})
    []
    """
    beaten: dict[str, list[str]] = {}
    for one, other in sorted(better):
        beaten.setdefault(one, []).append(other)
    circles = [circle for start in sorted(beaten) if (circle := _way_back(start, beaten))]
    return min(circles, key=len, default=[])


def _way_back(start: str, beaten: Mapping[str, Sequence[str]]) -> list[str]:
    """A shortest way from an agent over those that each beats, back to it."""
    paths = [[start]]
    seen = set()
    for path in paths:  # grows as it is walked: breadth first
        for name in beaten.get(path[-1], ()):
            if name == start:
                return path
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []


def _gap(row: Row) -> float:
    return abs(float(row["observed"]) - float(row["fitted"]))
