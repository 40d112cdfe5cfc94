"""What the games of a round robin say: every number with its interval, as plain JSON."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_agents.analysis import sequences
from threeup_agents.analysis.examples import examples
from threeup_agents.analysis.pilot import deals_needed
from threeup_agents.analysis.rated_games import RatedGames
from threeup_agents.analysis.statistics import (
    CONFIDENCE,
    Interval,
    holm,
    mean_intervals,
    p_values,
)
from threeup_agents.arena.line_ups import is_pair
from threeup_agents.arena.match import Match
from threeup_agents.arena.tournament import Outcome, Settings
from threeup_env.engine.rng import STATISTICS

OFTEN: Final = 0.05
"""Share of an agent's games beyond which it is said that the step limit ended them."""
_QUANTILES: Final = (0, 5, 25, 50, 75, 95, 100)

Values: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = dict[str, Any]


class Analysis:
    """Statistics of one outcome.

    Args:
        settings: of the run.
        outcome: its games; at least two agents.
        confidence: of all intervals.
        half_width: what `plan` should reach.
        until: the half-width that the run plays for; then the intervals of win shares and the
            p-values are those of confidence sequences, which such stopping leaves valid.
    """

    def __init__(
        self,
        settings: Settings,
        outcome: Outcome,
        confidence: float = CONFIDENCE,
        half_width: float = 0.01,
        until: float | None = None,
    ) -> None:
        self._names = outcome.agents
        self._matches = outcome.matches
        self._pairs = [match for match in outcome.matches if is_pair(match.line_up)]
        self._num_players = settings.num_players
        self._seed = settings.seed
        self._confidence = confidence
        self._half_width = half_width
        self._until = until
        # Share, place and cut-off by deal of each agent at a table of each other one.
        self._duels: dict[tuple[str, str], Values] = {}
        for match in self._pairs:
            sides = (0, 1) if match.num_players == 2 else (0,)
            for side in sides:
                key = match.line_up[side], match.line_up[1 - side]
                self._duels[key] = _agent_values(match, key[0])
        self._rated = RatedGames(outcome.agents, outcome.matches, confidence)

    def results(self) -> Row:
        """Everything, for `results.json`."""
        games = sum(len(match.deal) for match in self._matches)
        courses = np.concatenate([match.course for match in self._matches])
        courses = courses[courses != 0]  # a ladder keeps none
        return {
            "fair_share": 1 / self._num_players,
            "confidence": self._confidence,
            "games": games,
            "deals_played": self._matches[0].num_deals,
            "distinct_deals": len(set(self._matches[0].deal_hash.tolist())),
            "repeated_games": len(courses) - len(set(courses.tolist())),
            "pairings": self.pairings(),
            "ratings": self.ratings(),
            "misses": self._rated.misses,
            "standings": self.standings(),
            "warnings": self.warnings(),
            "mixed": self.mixed(),
            "differences": self.differences(),
            "seats": self.seats(),
            "length": self.length(),
            "plan": self.plan(),
            "examples": examples(self._matches),
            "timing": self.timing(),
        }

    def pairings(self) -> list[Row]:
        """Each agent against each other one, and which of the two is better."""
        verdicts = self.verdicts()
        keys = [(one, other) for one in self._names for other in self._names if one != other]
        columns = zip(*(self._three([self._duels[key] for key in keys])), strict=True)
        return [
            {"agent": one, "against": other, "games": self._num_games((one, other))}
            | _flat("win_share", share)
            | {"decided_share": _decided(share.value, cut_off.value)}
            | {"mean_place": place.value, "cut_off_share": cut_off.value}
            | verdicts[one, other]
            for (one, other), (share, place, cut_off) in zip(keys, columns, strict=True)
        ]

    def verdicts(self) -> dict[tuple[str, str], Row]:
        """Whether an agent beats another, over all pairs at once (Holm).

        The two are compared on the same deals: the win share of the one at a table of the
        other, less that of the other at a table of the one. A game that is cut off is 0 to both.
        """
        pairs = list(combinations(self._names, 2))
        differences = np.array([self._duels[a, b][0] - self._duels[b, a][0] for a, b in pairs])
        corrected = holm(self._p_values(differences))
        found: dict[tuple[str, str], Row] = {}
        for (a, b), difference, p in zip(pairs, differences, corrected.tolist(), strict=True):
            separable = p < 1 - self._confidence
            ahead = difference.mean() > 0
            for key, is_ahead in (((a, b), ahead), ((b, a), not ahead)):
                verdict = "better" if is_ahead else "worse"
                found[key] = {"p_holm": p, "verdict": verdict if separable else "not separable"}
        return found

    def ratings(self) -> list[Row]:
        """Plackett-Luce ratings over all games, best first."""
        return self._rated.rows()

    def standings(self) -> list[Row]:
        """Each agent over its tables of one other agent, all weighing the same."""
        values = [self._overall(name) for name in self._names]
        columns = zip(*self._three(values), strict=True)
        rows = [
            {
                "agent": name,
                "games": sum(self._num_games(key) for key in self._duels if key[0] == name),
            }
            | _flat("win_share", share)
            | {"decided_share": _decided(share.value, cut_off.value)}
            | _flat("mean_place", place, "place_")
            | _flat("cut_off_share", cut_off, "cut_off_")
            for name, (share, place, cut_off) in zip(self._names, columns, strict=True)
        ]
        return sorted(rows, key=lambda row: -row["win_share"])

    def warnings(self) -> list[str]:
        """What a reader of the numbers must know.

        Agents whose games are cut off often, circles of agents, tables that ratings get wrong.
        """
        cut_off = [
            f"{row['agent']}: {row['cut_off_share']:.1%} of its games were cut off by the step "
            f"limit, which nobody wins (R21); it won {row['decided_share']:.3f} of the others"
            for row in self.standings()
            if OFTEN < row["cut_off_share"] < 1
        ]
        return cut_off + self._rated.warnings(self.verdicts())

    def mixed(self) -> list[Row]:
        """Each agent's share for each of its seats at the mixed tables."""
        found = []
        for name in self._names:
            own = [m for m in self._matches if not is_pair(m.line_up) and name in m.line_up]
            if own:
                values = np.mean([_agent_values(match, name) for match in own], axis=0)
                share, place, cut_off = (column[0] for column in self._three([values]))
                found.append(
                    {"agent": name, "tables": len({tuple(sorted(m.line_up)) for m in own})}
                    | _flat("win_share", share)
                    | {"decided_share": _decided(share.value, cut_off.value)}
                    | {"mean_place": place.value, "cut_off_share": cut_off.value}
                )
        return sorted(found, key=lambda row: -row["win_share"])

    def differences(self) -> list[Row]:
        """Differences between the overall shares of two agents on the same deals."""
        pairs = list(combinations(self._names, 2))
        values = np.array([self._overall(a)[0] - self._overall(b)[0] for a, b in pairs])
        corrected = holm(self._p_values(values))
        intervals = self._shares(values, least=-1)
        return [
            {"agent": a, "against": b}
            | _flat("difference", interval)
            | {"p_holm": float(p)}
            | self._rated.difference(a, b)
            for (a, b), interval, p in zip(pairs, intervals, corrected, strict=True)
        ]

    def seats(self) -> list[Row]:
        """The share of the win by seat, whoever sits there; every agent sits everywhere alike."""
        by_deal = [match.by_deal(match.by_seat(match.win_share)) for match in self._matches]
        shares = mean_intervals(np.mean(by_deal, axis=0).T, self._confidence)
        return [{"seat": seat} | _flat("win_share", share) for seat, share in enumerate(shares)]

    def length(self) -> Row:
        """Actions in a game: mean with its interval, quantiles (in percent), histogram."""
        lengths = np.concatenate([match.length for match in self._matches])
        by_deal = np.mean([match.by_deal(match.length) for match in self._matches], axis=0)
        most = float(lengths.max())
        mean = mean_intervals(by_deal[None], self._confidence, most=most)[0]
        width = int(np.ptp(lengths)) // 40 + 1  # a whole number of actions in every bar
        edges = np.arange(lengths.min(), lengths.max() + width + 1, width) - 0.5
        counts, _ = np.histogram(lengths, edges)
        return _flat("mean", mean) | {
            "quantiles": {str(mark): float(np.percentile(lengths, mark)) for mark in _QUANTILES},
            "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        }

    def plan(self) -> Row:
        """Deals that each pairing needs for a half-width, this run being the pilot."""
        shares = np.array([self._duels[m.line_up[0], m.line_up[1]][0] for m in self._pairs])
        return deals_needed(self._pairs, shares, self._half_width, self._confidence)

    def timing(self) -> list[Row]:
        """Time of each agent per decision; the only numbers here that a rerun changes."""
        rows = []
        for name in self._names:
            seconds, decisions = 0.0, 0
            for match in self._matches:
                if name in match.line_up:
                    place = match.line_up.index(name)
                    seconds += float(match.seconds[place])
                    decisions += int(match.decisions[place])
            rows.append({"agent": name, "decisions": decisions, "seconds": seconds})
        return rows

    def second_views(self) -> Row:
        """Alpha-rank and Nash averaging, by OpenSpiel."""
        from threeup_agents.analysis.second_views import second_views  # needs an extra

        num_deals = self._matches[0].num_deals
        advantages = np.zeros((num_deals, len(self._names), len(self._names)))
        for i, one in enumerate(self._names):
            for j, other in enumerate(self._names):
                if one != other:
                    advantages[:, i, j] = self._duels[one, other][0] - self._duels[other, one][0]
        return second_views(self._names, advantages, self._rng(2), self._confidence)

    def is_separable(self) -> bool:
        """Whether every pair is told apart."""
        return all(row["verdict"] != "not separable" for row in self.verdicts().values())

    def is_narrow(self) -> bool:
        """Whether the interval of every pairing's win share is as narrow as the run plays for."""
        shares = self._shares(np.array([values[0] for values in self._duels.values()]))
        return all(share.high - share.low <= 2 * (self._until or 0) for share in shares)

    def _overall(self, name: str) -> Values:
        """Share, place and cut-off by deal over all other agents; `[3, D]`."""
        own = [values for (agent, _), values in self._duels.items() if agent == name]
        overall: Values = np.mean(own, axis=0)
        return overall

    def _three(self, values: Sequence[Values]) -> list[list[Interval]]:
        """Intervals of shares, places and cut-offs, from arrays `[3, D]`."""
        stacked = np.array(values)
        most = (1, self._num_players, 1)
        least = (0, 1, 0)
        places_and_cuts = [
            mean_intervals(stacked[:, i], self._confidence, least[i], most[i]) for i in (1, 2)
        ]
        return [self._shares(stacked[:, 0]), *places_and_cuts]

    def _shares(self, values: Values, least: float = 0) -> list[Interval]:
        """Intervals of win shares or their differences; `[K, D]`."""
        if self._until is None:
            return mean_intervals(values, self._confidence, least)
        return sequences.intervals(values, self._until, self._confidence, least)

    def _p_values(self, differences: Values) -> npt.ArrayLike:
        """Of "the mean is 0", for each row; `[K, D]`."""
        if self._until is None:
            return p_values(differences)
        return sequences.p_values(differences, self._until)

    def _num_games(self, key: tuple[str, str]) -> int:
        return int(self._duels[key].shape[1]) * self._num_players

    def _rng(self, use: int) -> np.random.Generator:
        sequence = np.random.SeedSequence(self._seed, spawn_key=(*STATISTICS, use))
        return np.random.default_rng(sequence)


def _agent_values(match: Match, name: str) -> Values:
    """Share, place and cut-off by deal of one agent, a mean over its places; `[3, D]`."""
    places = [place for place, agent in enumerate(match.line_up) if agent == name]
    share = match.win_share[:, places].mean(axis=1)
    place = match.place[:, places].mean(axis=1)
    return np.array([match.by_deal(column) for column in (share, place, match.cut_off)])


def _decided(share: float, cut_off: float) -> float | None:
    """The share of the games that were not cut off; None if all were."""
    return share / (1 - cut_off) if cut_off < 1 else None


def _flat(name: str, interval: Interval, prefix: str = "") -> Row:
    return {name: interval.value, f"{prefix}low": interval.low, f"{prefix}high": interval.high}
