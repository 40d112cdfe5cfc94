"""Training recipes compared over their seeds: one lucky seed is no better recipe.

Interquartile means with a bootstrap over training runs (Agarwal et al. 2021).
"""

import re
from collections.abc import Sequence
from glob import glob
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from threeup_agents.analysis.statistics import CONFIDENCE, Interval, expanded
from threeup_env.engine.rng import STATISTICS

RESAMPLES: Final = 10_000
_USE: Final = 3
"""The stream's number among those of statistics; `Analysis` has 0 to 2."""
FEW: Final = 5
"""Seeds below which the report warns: so few say little about the next one."""

Row: TypeAlias = dict[str, Any]


def read_groups(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The runs of each group.

    A word is `NAME=PATTERN`, a pattern, or a folder, as a shell that has filled in a pattern gives
    them; one without a name is called by what stands before its number or star: `runs/a-1` and
    `runs/a-*` both by `runs/a`.

    Returns:
        Folders by the name of their group, sorted.

    Raises:
        ValueError: a pattern that fits nothing, a group of one run, or a run in two groups.
    """
    groups: dict[str, list[str]] = {}
    for word in words:
        pattern, name = word, re.sub(r"[-_.]?[\d*?]*/?$", "", word) or word
        found = sorted(glob(pattern))
        if not found and "=" in word:
            name, _, pattern = word.partition("=")
            found = sorted(glob(pattern))
        if not found:
            raise ValueError(f"group {name!r}: expected runs that fit {pattern!r}; got none")
        groups.setdefault(name, []).extend(found)
    for name, runs in groups.items():
        if len(runs) < 2:
            raise ValueError(f"group {name!r}: expected at least 2 runs, one a seed; got {runs}")
    every = [run for runs in groups.values() for run in runs]
    for run in every:
        if every.count(run) > 1:
            raise ValueError(f"group: expected each run once; got {run!r} more than once")
    return {name: tuple(sorted(runs)) for name, runs in groups.items()}


def compared(results: Row, groups: dict[str, tuple[str, ...]]) -> Row:
    """Compare the recipes of a run against all agents that are of no group.

    Args:
        results: what `results.json` holds.
        groups: the runs of each recipe; those that have left the run are left out.
    """
    stayed = [row["agent"] for row in results["agents"]]
    kept = {name: tuple(run for run in runs if run in stayed) for name, runs in groups.items()}
    grouped = {run for runs in groups.values() for run in runs}
    use = _USE
    sequence = np.random.SeedSequence(results["seed"], spawn_key=(*STATISTICS, use))
    return compare(
        results["pairings"],
        {name: runs for name, runs in kept.items() if runs},
        [name for name in stayed if name not in grouped],
        np.random.default_rng(sequence),
        results["confidence"],
    )


def compare(
    pairings: Sequence[Row],
    groups: dict[str, tuple[str, ...]],
    against: Sequence[str],
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Row:
    """Compare recipes by the win shares of their runs against the same opponents.

    Args:
        pairings: as `results.json` has them.
        groups: the runs of each recipe.
        against: the opponents.
        rng: for the resampling.
        confidence: of the intervals.

    Returns:
        `against`; `recipes`, a row a group, best first; and `differences`, a row a pair.
    """
    shares = {(row["agent"], row["against"]): row["win_share"] for row in pairings}
    scores = {
        name: np.array([[shares[run, other] for other in against] for run in runs])
        for name, runs in groups.items()
    }
    drawn = {name: resampled(score, rng) for name, score in scores.items()}
    means = {name: float(iqm(score)) for name, score in scores.items()}
    seeds = {name: len(score) for name, score in scores.items()}
    recipes: list[Row] = [
        {"group": name, "seeds": seeds[name], "runs": list(groups[name])}
        | _row("iqm", means[name], drawn[name], seeds[name], confidence)
        for name in sorted(groups, key=lambda name: (-means[name], name))
    ]
    differences = [
        {"group": one, "against": other}
        | _row(
            "difference",
            means[one] - means[other],
            drawn[one] - drawn[other],
            min(seeds[one], seeds[other]),
            confidence,
        )
        for one, other in combinations([row["group"] for row in recipes], 2)
    ]
    return {"against": list(against), "recipes": recipes, "differences": differences}


def iqm(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the middle half of all scores of each sample; `[..., N, M]` to `[...]`.

    >>> float(iqm(np.array([[0.0, 1.0], [2.0, 9.0]])))
    1.5
    """
    flat = scores.reshape(*scores.shape[:-2], -1)
    means: npt.NDArray[np.float64] = np.asarray(stats.trim_mean(flat, 0.25, axis=-1))
    return means


def resampled(
    scores: npt.NDArray[np.float64], rng: np.random.Generator, resamples: int = RESAMPLES
) -> npt.NDArray[np.float64]:
    """Interquartile means of a recipe whose runs are drawn anew.

    The recipes are the strata: each has as many runs in every sample as it has. A run takes its
    shares against all opponents along: they are one training's, and not independent, as the
    scores of one algorithm in different games are (Agarwal et al. draw those game by game).

    Args:
        scores: of N runs against M opponents; `[N, M]`.
        rng: for the resampling.
        resamples: bootstrap samples, K.

    Returns:
        float64 `[K]`.
    """
    return iqm(scores[rng.integers(len(scores), size=(resamples, len(scores)))])


def warnings(groups: Row) -> list[str]:
    """What a reader of the comparison must know."""
    return [
        f"group {row['group']}: {row['seeds']} seeds say little about the next one; "
        f"{FEW} or more make an interval worth reading"
        for row in groups["recipes"]
        if row["seeds"] < FEW
    ]


def _row(
    name: str, value: float, drawn: npt.NDArray[np.float64], seeds: int, confidence: float
) -> Row:
    """A value with its interval, by percentiles expanded for few seeds (`expanded`)."""
    tail = 100 * (1 - expanded(confidence, seeds)) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail], method="weibull")
    found = Interval(value, float(low), float(high))
    return {name: found.value, "low": found.low, "high": found.high}
