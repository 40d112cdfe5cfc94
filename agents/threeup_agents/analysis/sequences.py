"""Confidence sequences: intervals that hold at every number of deals at once.

A run may look at them as often as it likes and stop when it likes. They are the
empirical-Bernstein sequences of Waudby-Smith & Ramdas (2024, theorem 2), for values between two
bounds. Their bets are free, as long as each is made before its deal is seen; here they are those
that make the interval narrowest when it reaches the half-width wanted.
"""

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.analysis.statistics import CONFIDENCE, Interval

_MOST_BET: Final = 0.75
_FIRST_LOOK: Final = 100
_GROWTH: Final = 1.25

Values = npt.NDArray[np.float64]


class _Sums(NamedTuple):
    """What intervals and p-values are made of, for values mapped to 0..1; each `[K]`."""

    bets: Values
    won: Values
    """Bets times values."""
    paid: Values
    """What the variance costs."""


def intervals(
    values: Values,
    half_width: float,
    confidence: float = CONFIDENCE,
    least: float = 0.0,
    most: float = 1.0,
) -> list[Interval]:
    """Means over deals with the intervals of their confidence sequences.

    Args:
        values: for each quantity one value a deal, in the order played; `[K, D]`.
        half_width: that the run plays for; it decides the bets, and so the width only.
        confidence: that the interval holds the mean at every number of deals.
        least: the least that a value can be.
        most: the most.

    Returns:
        One interval a quantity, K in all.
    """
    span = most - least
    sums = _sums((values - least) / span, half_width / span)
    centre = sums.won / sums.bets
    reach = (math.log(2 / (1 - confidence)) + sums.paid) / sums.bets
    low = least + span * np.clip(centre - reach, 0, 1)
    high = least + span * np.clip(centre + reach, 0, 1)
    means = values.mean(axis=1)
    return [Interval(*map(float, three)) for three in zip(means, low, high, strict=True)]


def p_values(differences: Values, half_width: float) -> Values:
    """Two-sided p-values of "the mean is 0" that hold at every number of deals.

    A p-value is below 1 - confidence where the interval of that confidence leaves 0 out.

    Args:
        differences: each in -1..1; `[K, D]`.
        half_width: as for `intervals`.

    Returns:
        float64 `[K]`.
    """
    sums = _sums((differences + 1) / 2, half_width / 2)
    evidence = np.abs(sums.won - sums.bets / 2) - sums.paid
    p: Values = np.minimum(1, 2 * np.exp(-evidence))
    return p


def looks(most_deals: int) -> list[int]:
    """Numbers of deals after which a run asks whether it may stop.

    >>> looks(200)
    [100, 125, 156, 195, 200]
    """
    found = []
    look = _FIRST_LOOK
    while look < most_deals:
        found.append(look)
        look = int(look * _GROWTH)
    return [*found, most_deals]


def _sums(values: Values, half_width: float) -> _Sums:
    """Bet `half_width / variance`, the variance being that of the deals before; `[K, D]`.

    With n deals of variance v and bets b the half-width is about (L + n v b^2 / 2) / (n b), L
    being log(2 / (1 - confidence)): narrowest at b = half_width / v when it is `half_width`.
    """
    counts = np.arange(1, values.shape[1] + 1)
    # As if half a win and a variance of 1/4 had come before the first deal.
    means = (0.5 + values.cumsum(axis=1)) / (counts + 1)
    variances = (0.25 + ((values - means) ** 2).cumsum(axis=1)) / (counts + 1)
    before_mean = np.column_stack([np.full(len(values), 0.5), means[:, :-1]])
    before_variance = np.column_stack([np.full(len(values), 0.25), variances[:, :-1]])
    bets = np.minimum(_MOST_BET, half_width / before_variance)
    paid = (values - before_mean) ** 2 * (-np.log1p(-bets) - bets)
    return _Sums(bets.sum(axis=1), (bets * values).sum(axis=1), paid.sum(axis=1))
