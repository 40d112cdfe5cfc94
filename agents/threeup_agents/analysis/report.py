"""The report of a run: one HTML page that needs nothing else, made from `results.json`."""

from collections.abc import Collection
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from threeup_agents.analysis import figures
from threeup_agents.analysis.dictionary import KEYS
from threeup_agents.analysis.pilot import in_words
from threeup_agents.analysis.tables import order, tables
from threeup_agents.pages import Markup, fill
from threeup_agents.plots import themed

TEMPLATE: Final = Path(__file__).with_name("report.html")


def page(results: dict[str, Any], pages: Collection[int] = (), date: datetime | None = None) -> str:
    """The whole page.

    Args:
        results: what `results.json` holds.
        pages: numbers of the games that `replays/GAME.html` beside the page shows.
        date: of the report; None for now.
    """
    pictures = {
        drawn.__name__: Markup(themed(drawn(results)))
        for drawn in (figures.ratings, figures.heat_map, figures.seats, figures.lengths)
    }
    return fill(
        TEMPLATE,
        run=results,
        tables=tables(results),
        agents=sorted(results["agents"], key=lambda row: order(results).index(row["agent"])),
        examples={(row["agent"], row["against"]): row for row in results["examples"]},
        pages=frozenset(pages),
        needed=in_words(results),
        ratios=[
            row["variance_ratio"] for row in results["plan"]["pairings"] if row["variance_ratio"]
        ],
        timing={row["agent"]: row for row in results["timing"]},
        pictures=pictures,
        keys=KEYS,
        date=(date or datetime.now(timezone.utc)).strftime("%Y-%m-%d %H:%M UTC"),
    )
