"""How many deals a run needs and how long they take, from a run that was played."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from threeup_agents.analysis.statistics import Interval, mean_intervals, plan
from threeup_agents.arena.match import Match
from threeup_agents.arena.pace import seconds_per_deal

Row = dict[str, Any]


def deals_needed(
    matches: Sequence[Match],
    shares: Mapping[tuple[str, ...], npt.NDArray[np.float64]],
    half_width: float,
    confidence: float,
) -> Row:
    """Deals that each pairing needs for a half-width, and the time of all line-ups for most.

    `deviation` from deal to deal is one that the pilot leaves possible: few deals, or deals
    that were all won, don't promise that the next ones are alike. `variance_ratio` says
    what rotating the seats is worth: the variance that as many games on separate deals would
    have given, over the one found. `seconds` are those of one core.

    Args:
        matches: all line-ups that a run plays, on the same deals.
        shares: win share by deal of the pairings, by line-up; `[D]`.
        half_width: half the width of the intervals wanted.
        confidence: of the intervals.
    """
    pairs = [match for match in matches if match.line_up in shares]
    values = np.array([shares[match.line_up] for match in pairs])
    rows: list[Row] = []
    for match, own, interval in zip(pairs, values, mean_intervals(values, confidence), strict=True):
        deviation = possible_deviation(interval, match.num_deals, confidence)
        as_if_apart = float(match.win_share[:, 0].var()) / match.num_players
        variance = float(own.var(ddof=1))
        rows.append(
            {
                "agent": match.line_up[0],
                "against": match.line_up[1],
                "deviation": deviation,
                "deals": plan(deviation, half_width, confidence),
                "variance_ratio": as_if_apart / variance if variance else None,
            }
        )
    deals = max(row["deals"] for row in rows)
    return {
        "half_width": half_width,
        "deals": deals,
        "seconds": deals * sum(map(seconds_per_deal, matches)),
        "pairings": rows,
    }


def possible_deviation(interval: Interval, num_deals: int, confidence: float) -> float:
    """The deviation from deal to deal that makes a normal interval as wide.

    It is that of the wider arm: where a share has reached 0 or 1 only one arm says how far
    the truth may be.
    """
    arm = max(interval.value - interval.low, interval.high - interval.value)
    return arm * math.sqrt(num_deals) / float(stats.norm.ppf((1 + confidence) / 2))


def in_words(results: Row) -> str:
    """What a plan says, for the terminal and the report.

    >>> in_words({"half_width": 0.01, "deals": 1234, "seconds": 100.0})
    'half-widths of 0.01 need about 1,200 deals, 2 minutes on one core'
    """
    deals, seconds = results["deals"], results["seconds"]
    digits = 2 - len(str(deals)) if deals >= 100 else 0
    return (
        f"half-widths of {results['half_width']:g} need about {round(deals, digits):,} deals, "
        f"{duration(seconds)} on one core"
    )


def duration(seconds: float) -> str:
    """A time as a person says it.

    >>> [duration(seconds) for seconds in (0.3, 50, 100, 5400, 200_000)]
    ['less than a second', '50 seconds', '2 minutes', '1.5 hours', '2.3 days']
    """
    if seconds < 1:
        return "less than a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"
