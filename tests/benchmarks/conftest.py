"""Ends a run of the benchmarks with the table of their ratios.

`THREEUP_SPEEDS=docs/results/speed.json` before the command writes them down as well.
"""

import os
from pathlib import Path

import pytest

from tests.benchmarks.measured import note
from tests.benchmarks.ratio import CONTESTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line a contest."""
    if not CONTESTS:
        return
    if path := os.environ.get("THREEUP_SPEEDS"):
        note(Path(path), (dict(row.__dict__) for row in CONTESTS), ["name"])
    write = terminalreporter.write_line
    terminalreporter.section("ratios: median over the rounds, with their quartiles")
    write(f"{'':66} {'ours':>8} {'other':>8}  {'ratio':>5}  {'quartiles':12}  target")
    for row in CONTESTS:
        name = f"{row.name} [{row.unit}]"
        span = f"{row.low:.2f}-{row.high:.2f}"
        write(
            f"{name:66} {row.ours:8.3g} {row.yardstick:8.3g}  {row.ratio:5.2f}  {span:12}  "
            f"{row.target}"
        )
