"""Estimates with their uncertainty. The deal is the unit: deals are resampled, not games."""

import warnings
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 1000
_MOST_DRAWN: Final = 4_000_000
"""Values resampled at once: keeps memory flat for any number of deals."""


class Interval(NamedTuple):
    """An estimate and the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_interval(
    values: npt.NDArray[Any],
    rng: np.random.Generator,
    least: float = 0.0,
    most: float = 1.0,
    resamples: int = RESAMPLES,
) -> Interval:
    """The mean over deals, with the interval of a bootstrap over deals.

    If every deal gave the same value, resampling would give an interval of no width.
    Then the interval is the exact binomial one for as many trials, all alike, which
    shrinks as 3.7 / D times the range that the value can have.

    Args:
        values: one value a deal, its mean over the rotations; `[D]`.
        rng: for the resampling.
        least: the least that a value can be.
        most: the most.
        resamples: bootstrap samples.
    """
    mean = float(values.mean())
    if len(values) < 2 or float(np.ptp(values)) < 1e-12:
        reach = 1 - float(((1 - CONFIDENCE) / 2) ** (1 / len(values)))
        return Interval(mean, mean - reach * (mean - least), mean + reach * (most - mean))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=resamples,
            batch=max(1, _MOST_DRAWN // len(values)),
            vectorized=True,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=rng,
        ).confidence_interval
    return Interval(mean, float(found.low), float(found.high))
