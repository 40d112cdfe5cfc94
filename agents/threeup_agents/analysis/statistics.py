"""Estimates with their uncertainty. The deal is the unit, whatever its games share.

A share of D deals is read as a share of independent trials, as many as its deals are worth
(an effective number), with the exact binomial interval for that many: Korn & Graubard 1998,
"Confidence intervals for proportions with small expected number of positive counts".
"""

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

CONFIDENCE: Final = 0.95
_ALIKE: Final = 1e-12
"""A sum of squares below it is rounding."""


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


class Spread(NamedTuple):
    """How much deals vary, and how well that is known; each `[K]`."""

    effect: npt.NDArray[np.float64]
    """Variance of a deal's mean over that of a single trial; 1 if its rotations end alike."""
    degrees: npt.NDArray[np.float64]
    """Degrees of freedom of that; infinite where deals are alike."""


def spread(
    squares: npt.NDArray[np.float64],
    fourths: npt.NDArray[np.float64],
    information: npt.NDArray[np.float64],
    num_deals: int,
    caution: float = 1,
) -> Spread:
    """The variance of a deal's mean in units of that of a trial that is won or lost.

    Few deals that differ say little about how much deals differ. So a deal of the worst
    case is added, in which all rotations end alike; it weighs the less the more deals differ.
    The degrees of freedom are those of a sum of a known and an estimated part (Satterthwaite
    1946).

    Args:
        squares: sum over deals of the squared distances from the mean, `[K]`.
        fourths: of their squares, `[K]`.
        information: sum over deals of the variance of one trial, `[K]`.
        num_deals: D, at least 2.
        caution: deals of the worst case that are added.
    """
    vary = squares > _ALIKE
    # As many deals as differ, if all that do differ equally.
    differing = np.divide(squares**2, fourths, out=np.zeros_like(squares), where=vary)
    prior = caution / (1 + differing)
    unbiased = squares * num_deals / (num_deals - 1)
    effect = (unbiased + prior) / (information + prior)
    unknown = np.divide(unbiased, unbiased + prior, out=np.zeros_like(squares), where=vary)
    with np.errstate(divide="ignore"):
        return Spread(effect, (num_deals - 1) / unknown**2)


def mean_intervals(
    values: npt.NDArray[Any],
    confidence: float = CONFIDENCE,
    least: float = 0.0,
    most: float = 1.0,
) -> list[Interval]:
    """Means over deals, with exact binomial intervals for the number of trials they are worth.

    No end is nearer than where it would be if all deals had been won, or lost: the first
    losses never make a run look surer.

    Args:
        values: for each quantity one value a deal, its mean over the rotations; `[K, D]`.
        confidence: of the intervals.
        least: the least that a value can be.
        most: the most.

    Returns:
        One interval a quantity, K in all.
    """
    unit = (np.asarray(values, np.float64) - least) / (most - least)
    won, lost, degrees = _trials(unit)
    tail = special.ndtr(-stats.t.isf((1 - confidence) / 2, degrees))
    nearest = ((1 - confidence) / 2) ** (1 / unit.shape[1])
    low = np.where(won > 0, special.betaincinv(np.maximum(won, _ALIKE), lost + 1, tail), 0)
    high = np.where(lost > 0, special.betaincinv(won + 1, np.maximum(lost, _ALIKE), 1 - tail), 1)
    ends = unit.mean(axis=1), np.minimum(low, nearest), np.maximum(high, 1 - nearest)
    scaled = [least + (most - least) * end for end in ends]
    return [Interval(*map(float, three)) for three in zip(*scaled, strict=True)]


def mean_interval(values: npt.NDArray[Any], **options: float) -> Interval:
    """`mean_intervals` of one quantity; `[D]`."""
    return mean_intervals(values[None], **options)[0]


def p_values(differences: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Two-sided p-values of "the mean is 0", of values from -1 to 1; `[K, D]` to `[K]`.

    They are below 0.05 where `mean_intervals` from -1 to 1 leaves out 0 at 0.95, and so on.
    None is below the sign test's of deals that all agree.
    """
    won, lost, degrees = _trials((np.asarray(differences, np.float64) + 1) / 2)
    more, fewer = np.maximum(won, lost), np.minimum(won, lost)
    tail = special.betainc(np.maximum(more, _ALIKE), fewer + 1, 0.5)
    found = 2 * stats.t.sf(-special.ndtri(tail), degrees)
    clipped: npt.NDArray[np.float64] = np.clip(found, 2 * 0.5 ** differences.shape[1], 1)
    return clipped


def _trials(unit: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], ...]:
    """Trials won, trials lost and degrees of freedom, of values from 0 to 1; `[K, D]` to `[K]`."""
    num_deals = unit.shape[1]
    mean = unit.mean(axis=1)
    squares = (unit - mean[:, None]) ** 2
    found = spread(
        squares.sum(axis=1), (squares**2).sum(axis=1), num_deals * mean * (1 - mean), num_deals
    )
    trials = num_deals / np.minimum(found.effect, 1)
    return trials * mean, trials * (1 - mean), found.degrees


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Correct p-values for their number (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given)
    stepped = given[order] * np.arange(len(given), 0, -1)
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return corrected


def expanded(confidence: float, num_deals: int) -> float:
    """The nominal confidence at which a percentile bootstrap has the real one.

    Resampling few deals gives intervals that are too narrow, by as much as the normal
    interval with the n-divisor falls short of Student's (Hesterberg 2015).

    >>> round(expanded(0.95, 20), 3), round(expanded(0.95, 1000), 3)
    (0.968, 0.95)
    """
    reach = stats.t.ppf((1 + confidence) / 2, num_deals - 1)
    return float(2 * stats.norm.cdf(reach * math.sqrt(num_deals / (num_deals - 1))) - 1)


def plan(deviation: float, half_width: float, confidence: float = CONFIDENCE) -> int:
    """Deals needed for an interval of `half_width` to both sides.

    Args:
        deviation: standard deviation of the quantity from deal to deal, from a pilot run.
        half_width: half the interval's width; a difference shows if it is larger.
        confidence: of the interval.

    >>> plan(deviation=0.35, half_width=0.01)
    4706
    """
    z = float(stats.norm.ppf((1 + confidence) / 2))
    return max(2, math.ceil((z * deviation / half_width) ** 2))
