"""Plackett-Luce ratings: one number an agent, from all line-ups at once.

At a table where seat j is taken by an agent of rating r_j, seat i wins with
probability exp(r_i) / sum over j of exp(r_j) (Luce 1959; Plackett 1975, first places
only: all who don't win lose alike, R20).
"""

from typing import Final

import choix
import numpy as np
import numpy.typing as npt

from agents.statistics import CONFIDENCE, RESAMPLES, Interval

PRIOR: Final = 0.5
"""Wins given to each agent of each line-up beside its own, so that an agent that never
won (or never lost) has a finite rating (Haldane 1955, Anscombe 1956)."""
_MOST_ITERATIONS: Final = 1000
_SAMPLE_TOLERANCE: Final = 1e-4  # far below the width of any interval


def fit(
    seats: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
    start: npt.NDArray[np.float64] | None = None,
    tolerance: float = 1e-8,
) -> npt.NDArray[np.float64]:
    """Fit the ratings to counts of wins, by iterated Luce spectral ranking.

    The method of `choix.ilsr_top1` (Maystre & Grossglauser 2015) on counts: it takes one
    table at a time, which thousands of games times bootstrap samples don't allow.

    Args:
        seats: seats that each agent has in each line-up; int64 `[L, N]`.
        wins: wins of each agent in each line-up, shared wins as fractions; `[L, N]`.
        start: ratings to start from; `[N]`.
        tolerance: change of any rating at which to stop.

    Returns:
        Ratings with mean 0; `[N]`.
    """
    wins = wins + PRIOR * (seats > 0)
    ratings = np.zeros(seats.shape[1]) if start is None else start
    for _ in range(_MOST_ITERATIONS):
        # chain[i, j]: rate at which weight flows from agent i to an agent j that beats it.
        total = seats @ np.exp(ratings)
        chain = seats.T @ (wins / total[:, None])
        np.fill_diagonal(chain, 0)
        np.fill_diagonal(chain, -chain.sum(axis=1))
        previous = ratings
        ratings = choix.utils.log_transform(choix.utils.statdist(chain))
        if np.abs(ratings - previous).max() < tolerance:
            break
    return ratings


def rate(
    names: tuple[str, ...],
    seats: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> list[Interval]:
    """Rate all agents, with intervals by bootstrap over deals.

    A resampled deal takes all its games along, from every line-up. `random` is 0 if it
    takes part, else the mean is.

    Args:
        names: of the agents, `[N]`.
        seats: as for `fit`.
        wins: wins on each deal, over all rotations; `[D, L, N]`.
        rng: for the resampling.
        confidence: of the intervals.
        resamples: bootstrap samples.
    """
    num_deals = len(wins)
    flat = wins.reshape(num_deals, -1)
    anchor = names.index("random") if "random" in names else None

    def anchored(ratings: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return ratings if anchor is None else ratings - ratings[anchor]

    best = fit(seats, wins.sum(axis=0))
    samples = np.empty((resamples, len(names)))
    even = np.full(num_deals, 1 / num_deals)
    for i in range(resamples):
        drawn = rng.multinomial(num_deals, even) @ flat
        sample = fit(seats, drawn.reshape(seats.shape), best, _SAMPLE_TOLERANCE)
        samples[i] = anchored(sample)
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0)
    return [Interval(*map(float, three)) for three in zip(anchored(best), low, high, strict=True)]
