"""The files of measured numbers that the documentation shows, `docs/results`.

A file is a list of rows; a row that is measured anew takes the place of the old one.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from threeup_agents.files import write_text

FOLDER: Final = Path(__file__).parents[2] / "docs" / "results"
"""Where the documentation looks for them."""

Row = dict[str, Any]


def note(path: Path, rows: Iterable[Row], key: Sequence[str]) -> None:
    """Put rows, each with today's date, into a file.

    Args:
        path: a JSON file, which needn't be there.
        rows: what was measured.
        key: the fields by which a row is known again; new rows go to the end.
    """
    kept: list[Row] = json.loads(path.read_text()) if path.exists() else []
    by_key = {tuple(row[name] for name in key): row for row in kept}
    date = datetime.now(timezone.utc).date().isoformat()
    for row in rows:
        by_key[tuple(row[name] for name in key)] = row | {"date": date}
    write_text(path, json.dumps(list(by_key.values()), indent=1) + "\n")
