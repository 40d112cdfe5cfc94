"""The README and the pages of the documentation, as tests read them.

Code blocks by language: `python` runs, and if `text` follows at once, prints just that. In
`bash` the lines that start with python or threeup run, in order; in `sh` the same take hours or
several machines: of these the options are checked.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "examples" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
}
"""The texts by path."""


class Block(NamedTuple):
    """A fenced block."""

    kind: str
    code: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = re.findall(r"^```(\S+)\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)
    return [Block(kind, code) for kind, code in found]


def commands(page: str, *kinds: str) -> list[str]:
    """The lines of shell blocks that call this project, continued ones in one."""
    code = "".join(code for kind, code in blocks(page) if kind in kinds)
    lines = re.sub(r" *\\\n *", " ", code).splitlines()
    lines = [line.strip() for line in lines]
    return [line for line in lines if line.startswith(("python ", "threeup "))]


def table_rows(page: str, header: str) -> list[list[str]]:
    """The cells of a page's table whose first line starts with `header`."""
    text = PAGES[page]
    lines = text[text.index(f"\n| {header} |") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def links(page: str) -> list[str]:
    """Where a page leads to inside the repository, with `#part` if it says so."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [target for target in found if not target.startswith(("http:", "https:"))]


def anchors(page: str) -> set[str]:
    """The parts of a page that links can name, as GitHub and Sphinx call them."""
    prose = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
