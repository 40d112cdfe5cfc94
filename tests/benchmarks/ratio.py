"""How all benchmarks compare: two things timed in turn in one run, never one against the clock.

Seconds are this process's own processor time: others who use the machine slow the
clock, not that.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture


@dataclass(frozen=True)
class Contest:
    """One row of the table that the run ends with."""

    name: str
    unit: str
    ours: float
    """Median over the rounds, in `unit`."""
    yardstick: float
    ratio: float
    """Median over the rounds of ours divided by the yardstick."""
    low: float
    """Lower quartile of the rounds' ratios."""
    high: float
    target: str


CONTESTS: list[Contest] = []
"""Of this run, in order; `conftest.py` prints them."""


def speed(count: int, work: Callable[[], object]) -> Callable[[], float]:
    """Make a measurement of `work` in millions a second, `work` doing `count` things."""

    def measure() -> float:
        start = time.process_time()
        work()
        return count / (time.process_time() - start) / 1e6

    return measure


def compare(
    benchmark: BenchmarkFixture,
    name: str,
    ours: Callable[[], float],
    yardstick: Callable[[], float],
    *,
    rounds: int,
    unit: str,
    target: str,
) -> Contest:
    """Measure ours, the yardstick, ours, ... and note the ratios.

    A first pair is thrown away: it compiles and fills caches. pytest-benchmark's own
    table shows the seconds of a pair, which mean little; its JSON has the ratios
    under `extra_info`.
    """
    pairs: list[tuple[float, float]] = []
    # pytest-benchmark gives this method no types.
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda: pairs.append((ours(), yardstick())), rounds=rounds, warmup_rounds=1
    )
    measured = np.array(pairs[1:])  # float64 [rounds, 2]
    ratios = measured[:, 0] / measured[:, 1]
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    our_median, other_median = np.median(measured, axis=0).tolist()
    contest = Contest(name, unit, our_median, other_median, ratio, low, high, target)
    CONTESTS.append(contest)
    benchmark.extra_info.update(contest.__dict__, ratios=ratios.tolist())
    return contest
