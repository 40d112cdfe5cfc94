"""The Plackett-Luce model of who wins a table: its likelihood, and where that is largest.

At a table where seat j is taken by an agent of rating r_j, seat i wins with
probability exp(r_i) / sum over j of exp(r_j) (Luce 1959; Plackett 1975, first places
only: all who don't win lose alike, R20).
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

_MOST_ITERATIONS: Final = 200
_TRACE: Final = 1e-6
"""Wins of each agent of a line-up beside its own: where no game was decided, all are level."""

Reals = npt.NDArray[np.float64]


class Point(NamedTuple):
    """The likelihood at some ratings."""

    value: float
    """Its logarithm, with the penalty."""
    slope: Reals
    """`[N]`."""
    information: Reals
    """What the games tell, `[N, N]`; nothing about the mean of all ratings."""
    curvature: Reals
    """The same with the games that the penalty is worth, `[N, N]`."""


class Likelihood:
    """Likelihood of ratings, with Jeffreys' prior as penalty (Firth 1993).

    The penalty keeps ratings finite where an agent won or lost every game, and takes out
    their bias of first order. It acts as wins that depend on the ratings (Kosmidis &
    Firth 2011); between two agents it is half a win for each.

    Args:
        seats: seats that each agent has in each line-up; int64 `[L, N]`.
        wins: wins of each agent in each line-up; `[L, N]`.
        penalised: False leaves the penalty out.
    """

    def __init__(
        self, seats: npt.NDArray[np.int64], wins: npt.NDArray[np.float64], penalised: bool = True
    ) -> None:
        self.num_agents = seats.shape[1]
        self.members = members_of(seats)
        self._copies = np.take_along_axis(seats, self.members, axis=1)
        own = np.take_along_axis(wins, self.members, axis=1) + _TRACE * (self._copies > 0)
        self._games = own.sum(axis=1, keepdims=True)
        self._wins = self._sum(own)
        self._penalised = penalised
        pairs = self.members[:, :, None] * self.num_agents + self.members[:, None, :]
        self._pairs = pairs.ravel()

    def chances(self, ratings: Reals) -> Reals:
        """Each member's share of the wins at its table; `[L, M]`, M as `members_of`."""
        odds, _ = self._odds(ratings)
        chances: Reals = odds / odds.sum(axis=1, keepdims=True)
        return chances

    def at(self, ratings: Reals) -> Point:
        """The likelihood at some ratings, `[N]`."""
        odds, best = self._odds(ratings)
        totals = odds.sum(axis=1, keepdims=True)
        chances = odds / totals
        value = self._wins @ ratings - (self._games * (best + np.log(totals))).sum()
        slope = self._wins - self._sum(self._games * chances)
        information = self._information(self._games, chances)
        if not self._penalised:
            return Point(float(value), slope, information, information)
        # Adding 1 everywhere fixes the mean, which the games leave open.
        value += 0.5 * np.linalg.slogdet(information + 1)[1]
        extra = self._extra_wins(inverse(information), chances)
        games = extra.sum(axis=1, keepdims=True)
        slope = slope + self._sum(extra - games * chances)
        curvature = information + self._information(games, chances)
        return Point(float(value), slope, information, curvature)

    def _odds(self, ratings: Reals) -> tuple[Reals, Reals]:
        """Odds of each member against the best at its table, `[L, M]`, and the best, `[L, 1]`."""
        own = np.where(self._copies > 0, ratings[self.members], -np.inf)
        best = own.max(axis=1, keepdims=True)
        return self._copies * np.exp(own - best), best

    def _extra_wins(self, covariance: Reals, chances: Reals) -> Reals:
        """The wins that the penalty is worth, `[L, M]`.

        Half the games times the chance times the squared length of what a win adds to the
        score, as the covariance of the ratings measures it.
        """
        own = covariance[self.members[:, :, None], self.members[:, None, :]]
        mixed = np.einsum("lij,lj->li", own, chances)
        lengths = np.einsum("lii->li", own) - 2 * mixed
        lengths = lengths + np.einsum("li,li->l", mixed, chances)[:, None]
        extra: Reals = 0.5 * self._games * chances * np.maximum(lengths, 0)
        return extra

    def _information(self, games: Reals, chances: Reals) -> Reals:
        size = self.num_agents
        products = (games[:, :, None] * chances[:, :, None] * chances[:, None, :]).ravel()
        shared = np.bincount(self._pairs, products, size * size).reshape(size, size)
        information: Reals = np.diag(self._sum(games * chances)) - shared
        return information

    def _sum(self, values: Reals) -> Reals:
        """Sum over the tables of each agent: `[L, M]` to `[N]`."""
        sums: Reals = np.bincount(self.members.ravel(), values.ravel(), self.num_agents)  # type: ignore[assignment] # numpy's stubs forget the weights
        return sums


def inverse(information: Reals) -> Reals:
    """The covariance of ratings whose mean is given, up to a part that differences don't see."""
    return np.asarray(np.linalg.inv(information + 1), np.float64)


def members_of(seats: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Who sits at each table; `[L, M]`, M the most different agents at one.

    A table of fewer is filled up with agents that have no seat at it.

    >>> members_of(np.array([[0, 1, 2, 0], [1, 1, 0, 1]])).tolist()
    [[1, 2, 0], [0, 1, 3]]
    """
    most = int((seats > 0).sum(axis=1).max())
    return np.argsort(seats == 0, axis=1, kind="stable")[:, :most]


def maximum(
    likelihood: Likelihood,
    start: Reals,
    contrast: Reals | None = None,
    value: float = 0.0,
    tolerance: float = 1e-8,
) -> Reals:
    """The ratings of mean 0 where a likelihood is largest, by Newton's method; `[N]`.

    Args:
        likelihood: of the ratings.
        start: ratings to start from, `[N]`.
        contrast: if given, only ratings of which this sum is `value`; weights that add up
            to 0, `[N]`.
        value: of the contrast.
        tolerance: the last step of any rating is shorter.
    """
    size = likelihood.num_agents
    bounds = [np.ones(size)] if contrast is None else [np.ones(size), contrast]
    fixed = np.array(bounds)
    wanted = np.array([0.0, value])[: len(bounds)]
    system = np.zeros((size + len(bounds), size + len(bounds)))
    system[size:, :size], system[:size, size:] = fixed, fixed.T
    ratings = start
    for _ in range(_MOST_ITERATIONS):
        point = likelihood.at(ratings)
        system[:size, :size] = point.curvature
        right = np.concatenate([point.slope, wanted - fixed @ ratings])
        step = np.linalg.solve(system, right)[:size]
        # Newton's steps are too long from far away.
        ratings = ratings + step / max(1, np.abs(step).max())
        if np.abs(step).max() < tolerance:
            break
    return ratings
