"""Plackett-Luce ratings: one number an agent, from all line-ups at once.

At a table where seat j is taken by an agent of rating r_j, seat i wins with
probability exp(r_i) / sum over j of exp(r_j) (Luce 1959; Plackett 1975, first places
only: all who don't win lose alike, R20).
"""

from typing import Final

import choix
import numpy as np
import numpy.typing as npt

from threeup_agents.analysis.statistics import CONFIDENCE, Interval, expanded

PRIOR: Final = 0.5
"""Wins given to each agent of each line-up beside its own, so that an agent that never
won (or never lost) has a finite rating (Haldane 1955, Anscombe 1956)."""
RESAMPLES: Final = 1000
_MOST_ITERATIONS: Final = 1000
_TOLERANCE: Final = 1e-8


def fit(seats: npt.NDArray[np.int64], wins: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Fit the ratings to counts of wins, by iterated Luce spectral ranking.

    The method of `choix.ilsr_top1` (Maystre & Grossglauser 2015), but on counts: that one
    goes through the games one by one.

    Args:
        seats: seats that each agent has in each line-up; int64 `[L, N]`.
        wins: wins of each agent in each line-up, shared wins as fractions; `[L, N]`.

    Returns:
        Ratings with mean 0; `[N]`.
    """
    wins = wins + PRIOR * (seats > 0)
    ratings = np.zeros(seats.shape[1])
    for _ in range(_MOST_ITERATIONS):
        # chain[i, j]: rate at which weight flows from agent i to an agent j that beats it.
        total = seats @ np.exp(ratings)
        chain = seats.T @ (wins / total[:, None])
        np.fill_diagonal(chain, 0)
        np.fill_diagonal(chain, -chain.sum(axis=1))
        previous = ratings
        ratings = choix.utils.log_transform(choix.utils.statdist(chain))
        if np.abs(ratings - previous).max() < _TOLERANCE:
            break
    return ratings


def refit(
    seats: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
    start: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Fit many samples at once, by Newton's method from ratings that are nearly right.

    Args:
        seats: as for `fit`.
        wins: as for `fit`, for each sample; `[K, L, N]`.
        start: ratings to start from; `[N]`.

    Returns:
        Ratings with mean 0; `[K, N]`.
    """
    wins = wins + PRIOR * (seats > 0)
    games = wins.sum(axis=2)
    ratings = np.tile(start, (len(wins), 1))
    for _ in range(_MOST_ITERATIONS):
        odds = seats * np.exp(ratings)[:, None, :]
        chances = odds / odds.sum(axis=2, keepdims=True)
        expected = games[:, :, None] * chances
        slope = (wins - expected).sum(axis=1)
        # Adding 1 everywhere fixes the mean, which the games leave open.
        curvature = 1 - np.einsum("kli,klj->kij", expected, chances)
        diagonal = np.arange(seats.shape[1])
        curvature[:, diagonal, diagonal] += expected.sum(axis=1)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        ratings = ratings + np.clip(step, -1, 1)  # Newton's steps are too long from far away
        if np.abs(step).max() < _TOLERANCE:
            break
    centred: npt.NDArray[np.float64] = ratings - ratings.mean(axis=1, keepdims=True)
    return centred


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
    even = np.full(num_deals, 1 / num_deals)
    drawn = np.array([rng.multinomial(num_deals, even) @ flat for _ in range(resamples)])
    best = fit(seats, wins.sum(axis=0))
    samples = refit(seats, drawn.reshape(resamples, *seats.shape), best)
    if "random" in names:
        anchor = names.index("random")
        best = best - best[anchor]
        samples = samples - samples[:, anchor, None]
    tail = 100 * (1 - expanded(confidence, num_deals)) / 2
    # "weibull" has the right share of samples beyond it on average, however few they are.
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0, method="weibull")
    return [Interval(*map(float, three)) for three in zip(best, low, high, strict=True)]
