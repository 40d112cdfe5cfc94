"""How many deals a run needs and how long they take, from a run that was played."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from threeup_agents.analysis.statistics import Interval, mean_intervals, plan
from threeup_agents.arena.match import Match
from threeup_agents.arena.pace import ARENA_SECONDS

Row = dict[str, Any]


def deals_needed(
    matches: Sequence[Match],
    shares: npt.NDArray[np.float64],
    half_width: float,
    confidence: float,
) -> Row:
    """Deals that each pairing needs for a half-width.

    `deviation` from deal to deal is one that the pilot leaves possible: few deals, or deals
    that were all won, don't promise that the next ones are alike. `variance_ratio` says
    what rotating the seats is worth: the variance that as many games on separate deals would
    have given, over the one found.

    Args:
        matches: of the pairings, on the same deals.
        shares: win share of the first agent of each by deal; `[L, D]`.
        half_width: half the width of the intervals wanted.
        confidence: of the intervals.
    """
    rows: list[Row] = []
    intervals = mean_intervals(shares, confidence)
    for match, own, interval in zip(matches, shares, intervals, strict=True):
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
    return {"half_width": half_width, "deals": deals, "pairings": rows}


def possible_deviation(interval: Interval, num_deals: int, confidence: float) -> float:
    """The deviation from deal to deal that makes a normal interval as wide.

    It is that of the wider arm: where a share has reached 0 or 1 only one arm says how far
    the truth may be.
    """
    arm = max(interval.value - interval.low, interval.high - interval.value)
    return arm * math.sqrt(num_deals) / float(stats.norm.ppf((1 + confidence) / 2))


def seconds_needed(results: Row) -> float:
    """Time on one core that all line-ups need for the deals planned, at their own speed.

    Args:
        results: of the pilot; all its line-ups have played the same deals.
    """
    spent = sum(row["seconds"] + ARENA_SECONDS * row["decisions"] for row in results["timing"])
    return float(results["plan"]["deals"] * spent / results["deals_played"])


def in_words(results: Row) -> str:
    """What the plan says, for the terminal and the report.

    >>> plan = {"half_width": 0.01, "deals": 1234}
    >>> timing = [{"seconds": 4.5, "decisions": 500_000}]
    >>> in_words({"plan": plan, "timing": timing, "deals_played": 50})
    'half-widths of 0.01 need about 1,200 deals, 2 minutes on one core'
    """
    plan = results["plan"]
    deals = plan["deals"]
    digits = 2 - len(str(deals)) if deals >= 100 else 0
    return (
        f"half-widths of {plan['half_width']:g} need about {round(deals, digits):,} deals, "
        f"{duration(seconds_needed(results))} on one core"
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
