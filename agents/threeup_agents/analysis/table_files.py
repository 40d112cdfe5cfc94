"""Tables as files: CSV for programs, Markdown and LaTeX for people's texts."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from threeup_agents.analysis.tables import Table
from threeup_agents.files import write_text

_FORMULA: Final = ("=", "+", "-", "@", "'", "\t", "\r")
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>|#~$&])")
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}


def as_csv(table: Table) -> str:
    """One line a row; columns are named by the keys of `results.json`, numbers are whole.

    A number that there isn't is an empty cell.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    keys = [key for column in table.columns for key in column.keys]
    writer.writerow(keys)
    for row in table.rows:
        writer.writerow([as_cell(row[key]) for key in keys])
    return text.getvalue()


def as_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula.

    A spreadsheet would run a text that begins with =, +, - or @ as a formula. An agent's name
    that does gets a ' before it, as for text that is typed there; so does one that begins with
    ' or a tab, so that two names never become one.

    >>> as_cell("=1+1"), as_cell("greedy"), as_cell(-0.5)
    ("'=1+1", 'greedy', -0.5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def as_markdown(table: Table) -> str:
    """A pipe table (GitHub Flavored Markdown)."""
    sides = [":---" if column.kind in ("words", "verdict") else "---:" for column in table.columns]
    lines = _texts(table, markdown_text)
    lines.insert(1, sides)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_latex(table: Table) -> str:
    """A `tabular` that needs no package."""
    sides = "".join("l" if column.kind in ("words", "verdict") else "r" for column in table.columns)
    # A bracket or star after the end of a line would belong to it.
    rows = (" & ".join(line) for line in _texts(table, latex_text))
    head, *body = (f"{'{}' if row[:1] in '[*' else ''}{row} \\\\\n" for row in rows)
    return (
        f"\\begin{{tabular}}{{{sides}}}\n\\hline\n{head}\\hline\n"
        f"{''.join(body)}\\hline\n\\end{{tabular}}\n"
    )


def markdown_text(text: str) -> str:
    r"""A text in which Markdown finds no mark-up.

    >>> print(markdown_text("runs/a_b|c"))
    runs/a\_b\|c
    """
    return _MARKDOWN.sub(r"\\\1", _one_line(text))


def latex_text(text: str) -> str:
    r"""A text in which LaTeX finds no command.

    >>> print(latex_text("100% a_b"))
    100\% a\_b
    """
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))


_FORMS: Final[dict[str, Callable[[Table], str]]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
}


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write each table as CSV, Markdown and LaTeX, each file whole or not at all.

    Raises:
        OSError: they can't be written.
    """
    folder.mkdir(exist_ok=True)
    for table in tables:
        for ending, form in _FORMS.items():
            write_text(folder / f"{table.name}.{ending}", form(table))


def _texts(table: Table, escape: Callable[[str], str]) -> list[list[str]]:
    """Headings and cells as they are read, escaped."""
    lines = [[column.heading for column in table.columns]]
    lines += [[column.text(row) for column in table.columns] for row in table.rows]
    return [[escape(text) for text in line] for line in lines]


def _one_line(text: str) -> str:
    return " ".join(text.split())
