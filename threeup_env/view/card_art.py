"""Cards as SVG elements: plain, and told apart by shape and label, not by colour alone.

Numbers are dark on white. Clear cards are filled, with a ring for the pile that leaves and a
bar for each discard then owed.
"""

from dataclasses import dataclass
from html import escape
from typing import Final

from threeup_env.engine.cards import CLEAR, CLEAR_1, CLEAR_2, NUM_RANKS, RANK_NAMES

WIDTH: Final = 44
HEIGHT: Final = 62
STRIP: Final = 25
"""How much of a card has to show for its corner to be read."""
LIGHT: Final = "#ffffff"
"""Of what is written on the table."""
DARK: Final = "#10202e"
MARK: Final = "#ffe14d"
"""Of what must catch the eye."""

CORNERS: Final = (*RANK_NAMES[:CLEAR], "C", "+1", "+2")
"""What stands in the corner of each rank's card, `[R]`."""
CLEAR_COLOURS: Final = {
    CLEAR: ("#0072b2", LIGHT),
    CLEAR_1: ("#f0a500", "#000000"),
    CLEAR_2: ("#7a1f5c", LIGHT),
}
"""Fill and ink; apart in brightness too."""


@dataclass(frozen=True)
class Box:
    """Where a row of cards lies: its top left corner, its width, and the cards' scale."""

    x: float
    y: float
    width: float
    scale: float


def definitions() -> str:
    """What `card` and `back` refer to."""
    faces = "".join(f'<g id="c{rank}">{_face(rank)}</g>' for rank in range(NUM_RANKS))
    return f'<defs>{faces}<g id="back">{_back()}</g></defs>'


def card(rank: int, x: float, y: float, scale: float) -> str:
    """A card seen from its face."""
    return _use(f"c{rank}", x, y, scale)


def back(x: float, y: float, scale: float, rank: int | None = None) -> str:
    """A card seen from its back; with a rank, told in its corner all the same."""
    if rank is None:
        return _use("back", x, y, scale)
    tag = rectangle(x + 3 * scale, y + 2 * scale, 25 * scale, 17 * scale, DARK, radius=3 * scale)
    name = text(CORNERS[rank], x + 15.5 * scale, y + 15.5 * scale, 13 * scale, MARK, bold=True)
    return _use("back", x, y, scale) + tag + name


def gap(x: float, y: float, scale: float) -> str:
    """A place without a card."""
    width, height = WIDTH * scale, HEIGHT * scale
    dashes = f'stroke="{LIGHT}" stroke-opacity=".5" stroke-width="1.5" stroke-dasharray="5 4"'
    return rectangle(x, y, width, height, "none", 5 * scale, dashes)


def fan(copies: tuple[int, ...], hidden: int, exposed: tuple[int, ...], box: Box) -> list[str]:
    """Cards in one row, backs first, as wide as they need and no wider than the box.

    Where equal cards lie too close to be counted, their number stands beneath them; a dot
    marks those that are exposed.
    """
    ranks = [rank for rank, count in enumerate(copies) if count]
    stacks = [(-1, hidden)] * bool(hidden) + [(rank, copies[rank]) for rank in ranks]
    wide, narrow = _steps([count for _, count in stacks], box)
    scale, left = box.scale, box.x
    elements = []
    for rank, count in stacks:
        for i in range(count):
            x = left + i * narrow
            elements.append(back(x, box.y, scale) if rank < 0 else card(rank, x, box.y, scale))
            if rank >= 0 and i >= count - exposed[rank]:
                elements.append(_dot(x + 12.5 * scale, box.y + 26 * scale, 3.5 * scale))
        width = (count - 1) * narrow + WIDTH * scale
        if count > 1 and narrow < 12 * scale:
            below = box.y + (HEIGHT + 13) * scale
            elements.append(text(f"x{count}", left + width / 2, below, 12 * scale, bold=True))
        left += (count - 1) * narrow + wide
    return elements


def _steps(counts: list[int], box: Box) -> tuple[float, float]:
    """How far on the next card lies: of another rank, and of the same."""
    room = box.width - WIDTH * box.scale
    between, within = len(counts) - 1, sum(counts) - len(counts)
    for step in (WIDTH + 4, STRIP + 8, STRIP):
        if step * box.scale * (between + within) <= room:
            return step * box.scale, step * box.scale
    # Equal cards go so close that none of them shows half a corner.
    narrow = min(4 * box.scale, 0.3 * room / max(within, 1))
    wide = min((WIDTH + 4) * box.scale, (room - narrow * within) / max(between, 1))
    return wide, narrow


def text(
    words: str,
    x: float,
    y: float,
    size: float,
    fill: str = LIGHT,
    anchor: str = "middle",
    bold: bool = False,
) -> str:
    """One line of words on its base line; `anchor` is start, middle or end."""
    weight = ' font-weight="bold"' * bold
    return (
        f'<text x="{x:.5g}" y="{y:.5g}" font-size="{size:.3g}" fill="{fill}" '
        f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
    )


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    radius: float = 0,
    outline: str = "",
) -> str:
    """A box; `outline` holds the attributes of its stroke."""
    return (
        f'<rect x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{height:.5g}" '
        f'rx="{radius:.3g}" fill="{fill}" {outline}/>'
    )


def _use(name: str, x: float, y: float, scale: float) -> str:
    return f'<use href="#{name}" transform="translate({x:.5g} {y:.5g}) scale({scale:.4g})"/>'


def _dot(x: float, y: float, radius: float) -> str:
    return (
        f'<circle cx="{x:.5g}" cy="{y:.5g}" r="{radius:.3g}" fill="{MARK}" '
        f'stroke="#000000" stroke-width="1.2"/>'
    )


def _face(rank: int) -> str:
    if rank < CLEAR:
        name, black = RANK_NAMES[rank], "#000000"
        corner = text(name, 13, 17, 14, black, bold=True)
        size = 27 if len(name) == 1 else 21  # two digits fit in whatever the font
        return _blank(LIGHT) + corner + text(name, WIDTH / 2, 51, size, black, bold=True)
    fill, ink = CLEAR_COLOURS[rank]
    bars = "".join(
        f'<path d="M13 {56 - 6 * i}h18" stroke="{ink}" stroke-width="3"/>'
        for i in range(rank - CLEAR)
    )
    ring = f'<circle cx="22" cy="33" r="9.5" fill="none" stroke="{ink}" stroke-width="3.5"/>'
    return _blank(fill) + text(CORNERS[rank], 13, 16, 13, ink, bold=True) + ring + bars


def _blank(fill: str) -> str:
    return rectangle(0.75, 0.75, WIDTH - 1.5, HEIGHT - 1.5, fill, 5, 'stroke="#000" ')


def _back() -> str:
    lines = "".join(f"M{x} 6L{x + 10} 56M{x + 10} 6L{x} 56" for x in (7, 17, 27))
    return _blank("#34506b") + (
        f'<rect x="5" y="5" width="34" height="52" rx="3" fill="none" stroke="#dfe8ef"/>'
        f'<path d="{lines}" fill="none" stroke="#dfe8ef" stroke-opacity=".55"/>'
    )
