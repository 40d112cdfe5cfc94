"""The report of a run: one HTML page that needs nothing else, made from `results.json`."""

from pathlib import Path
from typing import Any, Final

from threeup_agents.analysis import figures
from threeup_agents.analysis.pilot import in_words
from threeup_agents.pages import Markup, fill

TEMPLATE: Final = Path(__file__).with_name("report.html")


def page(results: dict[str, Any]) -> str:
    """The whole page.

    Args:
        results: what `results.json` holds.
    """
    order = {row["agent"]: i for i, row in enumerate(results["ratings"])}
    pictures = {
        drawn.__name__: Markup(drawn(results))
        for drawn in (figures.ratings, figures.heat_map, figures.seats, figures.lengths)
    }
    return fill(
        TEMPLATE,
        run=results,
        standings={row["agent"]: row for row in results["standings"]},
        pairings=sorted(
            results["pairings"], key=lambda row: (order[row["agent"]], order[row["against"]])
        ),
        needed=in_words(results),
        ratios=[
            row["variance_ratio"] for row in results["plan"]["pairings"] if row["variance_ratio"]
        ],
        timing={row["agent"]: row for row in results["timing"]},
        pictures=pictures,
    )
