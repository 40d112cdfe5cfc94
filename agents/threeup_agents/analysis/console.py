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
from threeup_agents.analysis import tables
from threeup_agents.analysis.pilot import in_words
from threeup_agents.analysis.table_files import as_cell
from threeup_agents.arena.match import Match
from threeup_agents.files import atomic_write

BOARD: Final = (
    *("agent", "win share", "win share interval", "decided", "rating", "rating interval"),
    "cut off",
)
DUELS: Final = ("agent", "against", "win share", "win share interval", "fair", "is", "decided")
"""Columns of the two tables in a terminal, which is narrower than a page."""


def write_games(path: Path, matches: Sequence[Match]) -> None:
    """Write a row a game; names are written as `as_cell` does."""
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
                    cells[name] = list(map(as_cell, cells[name]))
            for row in zip(*cells.values(), strict=True):
                writer.writerow([game, *row])
                game += 1


def show_agents() -> None:
    """Print the names that `--agents` understands."""
    table = _table("agents", "agent", "what it does")
    for spec, words in specs.SPECS.items():
        table.add_row(spec, words)
    Console().print(table)


def show(results: dict[str, Any]) -> None:
    """Print who is better: shares and ratings, then each pairing."""
    console = Console()
    title = (
        f"{results['num_players']} players, {results['deals_played']:,} deals, "
        f"{results['games']:,} games; fair share {results['fair_share']:.3f}"
    )
    shown = tables.tables(results)
    console.print(_drawn(title, shown["standings"].only(*BOARD)))
    title = f"each against each, {results['pairings'][0]['games']:,} games a pairing"
    console.print(_drawn(title, shown["pairings"].only(*DUELS)))
    if "recipes" in shown:
        console.print(_drawn("recipes over their training seeds", shown["recipes"]))
        if "recipe_differences" in shown:
            console.print(_drawn("", shown["recipe_differences"]))
    for warning in results["warnings"]:
        console.print(warning, highlight=False, markup=False)
    console.print(in_words(results), highlight=False)


def _drawn(title: str, table: tables.Table) -> Table:
    """A table of a run, for the terminal."""
    headings = (column.heading.replace(" ", "\n") for column in table.columns)
    drawn = _table(title, *headings)
    for row in table.rows:
        drawn.add_row(*(Text(_narrow(column, row)) for column in table.columns))
    return drawn


def _narrow(column: tables.Column, row: dict[str, Any]) -> str:
    """A cell; the ends of an interval without what a page has around them."""
    text = column.text(row)
    return text.strip("[]").replace(",", "") if column.kind == "interval" else text


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in columns:
        words = name in ("agent", "against", "recipe", "is", "what it does")
        justify: Literal["left", "right"] = "left" if words else "right"
        table.add_column(name, justify=justify, no_wrap=not words, overflow="fold")
    return table
