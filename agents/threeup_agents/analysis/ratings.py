"""Plackett-Luce ratings: one number an agent, from all line-ups at once, with intervals.

The scale has no zero of its own: only differences mean something. So an agent's interval is
that of its distance from the level of all, in which each agent weighs as much as is known of
it; a second one (quasi) is made for comparing any two agents.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from threeup_agents.analysis.plackett_luce import Likelihood, inverse, maximum, members_of
from threeup_agents.analysis.statistics import CONFIDENCE, Interval, Spread, spread

_FARTHEST: Final = 15.0
"""Ends of intervals are looked for within this distance: odds of three million to one."""
_LEAST_PART: Final = 0.1
"""Least quasi variance as a part of the least variance of the agent's differences: where the
parts don't add up, no agent is taken for known exactly."""
_CAUTION: Final = 4
"""Deals of the worst case added to the design effect: profiles of the likelihood, unlike exact
intervals, have nothing to spare where few games are lost (`tests/benchmarks/coverage.py`)."""
_NEAR: Final = 1e-4
"""An end of an interval is right to this."""

Reals = npt.NDArray[np.float64]


class Rated(NamedTuple):
    """Ratings and their intervals; each `[N]`."""

    value: Reals
    low: Reals
    """Lower end of the interval of the distance from the level of all."""
    high: Reals
    quasi_low: Reals
    """Lower end of the interval for comparing agents, see `difference`."""
    quasi_high: Reals
    weight: Reals
    """Of each agent in the level of all; they add up to 1."""

    def difference(self, one: int, other: int) -> Interval:
        """The rating of one less that of another, from their quasi intervals.

        The arms of both that face each other count as the legs of a right triangle
        (Zou & Donner 2008).
        """
        value = self.value[one] - self.value[other]
        below = self.value - self.quasi_low
        above = self.quasi_high - self.value
        low = value - np.hypot(below[one], above[other])
        return Interval(float(value), float(low), float(value + np.hypot(above[one], below[other])))


def fit(
    seats: npt.NDArray[np.int64], wins: npt.NDArray[np.float64], penalised: bool = True
) -> Reals:
    """Fit the ratings to counts of wins.

    Args:
        seats: seats that each agent has in each line-up; int64 `[L, N]`.
        wins: wins of each agent in each line-up; `[L, N]`.
        penalised: False leaves out Firth's penalty; ratings of agents that won or lost
            all are then without bound.

    Returns:
        Ratings with mean 0; `[N]`.
    """
    return maximum(Likelihood(seats, wins, penalised), np.zeros(seats.shape[1]))


def rate(
    names: tuple[str, ...],
    seats: npt.NDArray[np.int64],
    wins: npt.NDArray[np.int8],
    confidence: float = CONFIDENCE,
) -> Rated:
    """Rate all agents; `random` is 0 if it takes part, else their mean is.

    The intervals are profiles of the penalised likelihood (Heinze & Schemper 2002), of as
    many games as the deals are worth for the agent: its design effect.

    Args:
        names: of the agents, `[N]`.
        seats: as for `fit`; at least two agents.
        wins: wins on each deal, over all rotations; int8 `[D, L, N]`.
        confidence: of the intervals.
    """
    total = wins.sum(axis=0, dtype=np.float64)
    likelihood = Likelihood(seats, total)
    best = maximum(likelihood, np.zeros(len(names)))
    deals = Deals(seats, wins, likelihood, best)
    quasi = quasi_variances(deals.variances())
    weight = (1 / quasi) / (1 / quasi).sum()
    contrasts = np.eye(len(names)) - weight
    effects = deals.effects(contrasts)
    reaches = stats.t.isf((1 - confidence) / 2, effects.degrees)
    ends = np.empty((2, len(names)))
    for i, contrast in enumerate(contrasts):
        worth = Likelihood(seats, total / effects.effect[i])
        ends[:, i] = _profile(worth, contrast, best, reaches[i])
    value = best - (best[names.index("random")] if "random" in names else 0)
    below, above = ends - contrasts @ best
    stretch = np.sqrt(quasi / (deals.model(contrasts) * effects.effect))
    low, high = value + stretch * below, value + stretch * above
    return Rated(value, value + below, value + above, low, high, weight)


class Deals:
    """What the deals say about the ratings beyond their sum: how sure they are.

    Args:
        seats: as for `fit`.
        wins: as for `rate`.
        likelihood: of the sum of the wins.
        best: the ratings where it is largest.
    """

    def __init__(
        self,
        seats: npt.NDArray[np.int64],
        wins: npt.NDArray[np.int8],
        likelihood: Likelihood,
        best: Reals,
    ) -> None:
        point = likelihood.at(best)
        # The score of each deal, [D, N]: wins less what was to be expected of its games.
        members = members_of(seats)
        own = np.take_along_axis(wins, members[None], axis=2)
        chances = likelihood.chances(best)
        expected = np.zeros(seats.shape)
        np.put_along_axis(expected, members, chances, axis=1)
        games = own.sum(axis=2, dtype=np.float64)
        score = wins.sum(axis=1, dtype=np.float64) - games @ expected
        self._covariance = inverse(point.curvature)
        self._moves = (score - score.mean(axis=0)) @ self._covariance
        self._num_players = int(seats[0].sum())

    def model(self, contrasts: Reals) -> Reals:
        """Variances of contrasts if all games were independent; `[K, N]` to `[K]`."""
        found: Reals = np.einsum("ki,ij,kj->k", contrasts, self._covariance, contrasts)
        return found

    def effects(self, contrasts: Reals) -> Spread:
        """Design effects: variance of contrasts over what `model` says; `[K, N]` to `[K]`."""
        # The more an agent weighs, the longer; nothing here may depend on that.
        contrasts = contrasts / np.abs(contrasts).max(axis=1, keepdims=True)
        model = self.model(contrasts)
        # In units of a deal's mean: what one deal moves the contrast by, over what a win does.
        moves = (self._moves @ contrasts.T / (model * self._num_players)) ** 2
        found = spread(
            moves.sum(axis=0),
            (moves**2).sum(axis=0),
            1 / (model * self._num_players),
            len(self._moves),
            _CAUTION,
        )
        return found._replace(effect=found.effect * self._num_players)

    def variances(self) -> Reals:
        """Variance of the difference of each two agents; `[N, N]`."""
        size = len(self._covariance)
        found = np.zeros((size, size))
        for i in range(size):
            others = np.arange(size) != i
            contrasts = (np.eye(size)[i] - np.eye(size))[others]
            found[i, others] = self.model(contrasts) * self.effects(contrasts).effect
        return found


def quasi_variances(variances: Reals) -> Reals:
    """A variance for each agent, so that those of two add up to that of their difference.

    They add up nearly (Firth & de Menezes 2004): the sum of the squared logarithms of the
    ratios is least.

    Args:
        variances: of the differences, `[N, N]`; symmetric.

    Returns:
        `[N]`; at least `_LEAST_PART` of the least variance of the agent's differences.
    """
    size = len(variances)
    one, other = np.triu_indices(size, 1)
    wanted = variances[one, other]
    if size == 2:  # only their sum is known
        return np.full(2, wanted[0] / 2)
    rows = np.arange(len(one))

    def misses(logs: Reals) -> Reals:
        found: Reals = np.log((np.exp(logs[one]) + np.exp(logs[other])) / wanted)
        return found

    def slopes(logs: Reals) -> Reals:
        parts = np.exp(logs)
        slope = np.zeros((len(one), size))
        slope[rows, one] = parts[one] / (parts[one] + parts[other])
        slope[rows, other] = parts[other] / (parts[one] + parts[other])
        return slope

    start = np.log(variances.sum(axis=1) / (2 * (size - 1)))
    nearest = np.where(np.eye(size, dtype=bool), np.inf, variances).min(axis=1)
    least = np.log(_LEAST_PART * nearest)
    start = np.maximum(start, least + 0.1)
    bounds = (least, np.inf)
    found: Reals = np.exp(optimize.least_squares(misses, start, slopes, bounds).x)
    return found


def _profile(
    likelihood: Likelihood, contrast: Reals, start: Reals, reach: float
) -> tuple[float, float]:
    """Where the likelihood has fallen by half of `reach` squared, to both sides of a contrast."""
    top = maximum(likelihood, start)
    point = likelihood.at(top)
    direction = inverse(point.curvature) @ contrast
    step = reach * float(np.sqrt(contrast @ direction))
    direction /= contrast @ direction
    middle = float(contrast @ top)

    def short(distance: float) -> float:
        """How far short of the reach a contrast is, in standard deviations."""
        value = middle + distance
        there = maximum(likelihood, top + distance * direction, contrast, value, _NEAR)
        fallen = point.value - likelihood.at(there).value
        return float(reach - np.sqrt(2 * max(fallen, 0)))

    return middle + _zero(short, -step), middle + _zero(short, step)


def _zero(short: Callable[[float], float], step: float) -> float:
    """Where a function that is more than 0 at 0 first is 0, going by `step` or more."""
    near, far = 0.0, step
    while short(far) > 0:
        if abs(far) >= _FARTHEST:
            return far
        near, far = far, float(np.clip(2 * far, -_FARTHEST, _FARTHEST))
    return float(optimize.brentq(short, near, far, xtol=_NEAR))
