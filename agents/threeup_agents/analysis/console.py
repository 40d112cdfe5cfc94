"""What a round robin says in the terminal, and its games as a table."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from threeup_agents import specs
from threeup_agents.analysis.pilot import in_words
from threeup_agents.arena.match import Match
from threeup_agents.files import atomic_write

_FORMULA: Final = ("=", "+", "-", "@", "'", "\t", "\r")


def write_games(path: Path, matches: Sequence[Match]) -> None:
    """Write a row a game.

    A spreadsheet would run a cell that begins with =, +, - or @ as a formula. An agent's name
    that does gets a ' before it, as for text that is typed there; so does one that begins with
    ' or a tab, so that two names never become one.
    """
    with atomic_write(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        game = 0
        for match in matches:
            columns = match.columns()
            if game == 0:
                writer.writerow(["game", *columns])
            cells = {name: column.tolist() for name, column in columns.items()}
            for name in cells:
                if name.startswith("agent_"):
                    cells[name] = list(map(_as_text, cells[name]))
            for row in zip(*cells.values(), strict=True):
                writer.writerow([game, *row])
                game += 1


def _as_text(name: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{name}" if name.startswith(_FORMULA) else name


def show_agents() -> None:
    """Print the names that `--agents` understands."""
    table = _table("agents", "agent", "what it does")
    for spec, words in specs.SPECS.items():
        table.add_row(spec, words)
    Console().print(table)


def show(results: dict[str, Any]) -> None:
    """Print who is better: ratings and shares, then each pairing."""
    console = Console()
    title = (
        f"{results['num_players']} players, {results['deals_played']:,} deals, "
        f"{results['games']:,} games; fair share {results['fair_share']:.3f}"
    )
    interval = f"{results['confidence']:.4g}"
    board = _table(title, "agent", "rating", interval, "share", interval, "decided", "cut off")
    standings = {row["agent"]: row for row in results["standings"]}
    for rating in results["ratings"]:
        row = standings[rating["agent"]]
        board.add_row(
            Text(row["agent"]),
            f"{rating['rating']:+.2f}",
            f"{rating['low']:+.2f} {rating['high']:+.2f}",
            f"{row['win_share']:.3f}",
            f"{row['low']:.3f} {row['high']:.3f}",
            _share(row["decided_share"]),
            f"{row['cut_off_share']:.1%}",
        )
    duels = _table(
        "each against each", "agent", "against", "share", interval, "decided", "is", "games"
    )
    for pair in results["pairings"]:
        share, low, high = (f"{pair[name]:.3f}" for name in ("win_share", "low", "high"))
        duels.add_row(
            Text(pair["agent"]),
            Text(pair["against"]),
            share,
            f"{low} {high}",
            _share(pair["decided_share"]),
            pair["verdict"],
            f"{pair['games']:,}",
        )
    console.print(board)
    console.print(duels)
    for warning in results["warnings"]:
        console.print(warning, highlight=False, markup=False)
    console.print(in_words(results), highlight=False)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in columns:
        words = name in ("agent", "against", "is", "what it does")
        justify: Literal["left", "right"] = "left" if words else "right"
        table.add_column(name, justify=justify, no_wrap=not words, overflow="fold")
    return table
