"""Estimates with their uncertainty. The deal is the unit: deals are resampled, not games."""

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 1000
_MOST_DRAWN: Final = 4_000_000
"""Values resampled at once: keeps memory flat for any number of deals."""


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


def expanded(confidence: float, num_deals: int) -> float:
    """The nominal confidence at which a percentile bootstrap has the real one.

    Resampling few deals gives intervals that are too narrow, by as much as the normal
    interval with the n-divisor falls short of Student's (Hesterberg 2015).

    >>> round(expanded(0.95, 20), 3), round(expanded(0.95, 1000), 3)
    (0.968, 0.95)
    """
    reach = stats.t.ppf((1 + confidence) / 2, num_deals - 1)
    return float(2 * stats.norm.cdf(reach * math.sqrt(num_deals / (num_deals - 1))) - 1)


def mean_intervals(
    values: npt.NDArray[Any],
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    least: float = 0.0,
    most: float = 1.0,
    resamples: int = RESAMPLES,
) -> list[Interval]:
    """Means over deals, with intervals by an expanded percentile bootstrap over deals.

    If every deal gave the same value, resampling would give an interval of no width.
    Then the interval is the exact binomial one for as many trials, all alike.

    Args:
        values: for each quantity one value a deal, its mean over the rotations; `[K, D]`.
        rng: for the resampling.
        confidence: of the intervals.
        least: the least that a value can be.
        most: the most.
        resamples: bootstrap samples.

    Returns:
        One interval a quantity, K in all; a resampled deal takes all quantities along.
    """
    means = values.mean(axis=1)
    reach = 1 - ((1 - confidence) / 2) ** (1 / values.shape[1])
    low, high = means - reach * (means - least), means + reach * (most - means)
    vary = np.ptp(values, axis=1) > 1e-12
    if vary.any():
        found = stats.bootstrap(
            (values[vary],),
            np.mean,
            axis=-1,
            n_resamples=resamples,
            batch=max(1, _MOST_DRAWN // values.size),
            confidence_level=expanded(confidence, values.shape[1]),
            method="percentile",
            rng=rng,
        ).confidence_interval
        low[vary], high[vary] = found.low, found.high
    return [Interval(*map(float, three)) for three in zip(means, low, high, strict=True)]


def mean_interval(values: npt.NDArray[Any], rng: np.random.Generator, **options: Any) -> Interval:
    """`mean_intervals` of one quantity; `[D]`."""
    return mean_intervals(values[None], rng, **options)[0]


def p_value(differences: npt.NDArray[np.float64]) -> float:
    """Two-sided p-value of "the mean is 0", by Student's t over deals; `[D]`.

    Where all deals agree t has no meaning: then it is the sign test's.
    """
    num_deals = len(differences)
    if np.ptp(differences) < 1e-12:
        return 1.0 if abs(differences[0]) < 1e-12 else 2 * 0.5**num_deals
    return float(stats.ttest_1samp(differences, 0).pvalue)


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
