"""The table as a picture: an SVG drawing in plain text, the same bytes for the same table.

>>> from threeup_env import Batch
>>> batch = Batch(1, num_players=4)
>>> batch.reset(seed=1)
>>> show(batch, viewer=0).svg[:38]
'<svg xmlns="http://www.w3.org/2000/svg'
"""

import base64
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from threeup_env.engine.batch import Batch
from threeup_env.engine.cards import NUM_RANKS, RANK_NAMES
from threeup_env.engine.state import Record
from threeup_env.view.card_art import (
    CORNERS,
    DARK,
    HEIGHT,
    LIGHT,
    MARK,
    WIDTH,
    Box,
    back,
    card,
    definitions,
    fan,
    gap,
    rectangle,
    text,
)
from threeup_env.view.table import NO_CARDS, OPEN, SPECTATOR, Place, Table, Viewer, look
from threeup_env.view.words import bound_words, clearing_words, number_of_cards

FELT: Final = "#0f3d36"
PANEL: Final = "#1b544b"
MARGIN: Final = 12
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Picture:
    """A drawing that shows itself in a notebook."""

    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return as_html(self.svg)

    def save(self, path: str | Path) -> None:
        """Write it as an `.svg` file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def show(
    batch: Batch,
    row: int = 0,
    viewer: Viewer = OPEN,
    last: tuple[Record, int] | None = None,
    names: Sequence[str] = (),
) -> Picture:
    """Draw one game of a batch.

    Args:
        batch: dealt.
        row: the game.
        viewer: a seat, whose view this is and who sits in front; `"spectator"`, who sees
            what all may know; or `"open"`, which shows every card.
        last: the record before the last action, and the action.
        names: who sits where.

    Raises:
        ValueError: no such viewer.
    """
    return Picture(draw(look(batch, row, viewer, last), names))


def as_html(svg: str) -> str:
    """Put a drawing into a page as an image, apart from the names inside other drawings."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" style="max-width:100%" alt="the table">'


@dataclass(frozen=True)
class _Panel:
    """Where one seat's cards are drawn."""

    x: float
    y: float
    width: float
    height: float
    scale: float

    @property
    def is_wide(self) -> bool:
        """Whether hand and table cards lie side by side."""
        return self.width > 3 * self.height


@dataclass(frozen=True)
class _Layout:
    """Where everything is drawn; panels clockwise from the seat in front."""

    width: int
    height: int
    panels: list[_Panel]
    middle: _Panel
    size: int  # of the words on top
    columns: int  # characters to a line there


def draw(table: Table, names: Sequence[str] = (), tall: bool = False) -> str:
    """Draw a table as SVG, one element a line; the viewer's seat is in front, or else seat 0.

    Args:
        table: what is to be seen.
        names: who sits where.
        tall: a drawing that is higher than wide, for phones.
    """
    num_players = len(table.places)
    layout = _tall_layout(num_players) if tall else _wide_layout(num_players)
    front = table.viewer if isinstance(table.viewer, int) else 0
    width, height = layout.width, layout.height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="\'DejaVu Sans\', Verdana, sans-serif">',
        definitions(),
        rectangle(0, 0, width, height, FELT, 14),
        *_words(table, layout),
        *_middle(table, layout.middle),
    ]
    for i, panel in enumerate(layout.panels):
        place = table.places[(front + i) % num_players]
        lines += _place(place, panel, names[place.seat] if names else "", table.viewer)
    return "\n".join([*lines, "</svg>"])


def _wide_layout(num_players: int) -> _Layout:
    """One row of seats above, one seat at each side, the seat in front below."""
    low, top, across = 614, 84, 404
    front = _Panel(MARGIN, low, 1256, 174, 1.5)
    if num_players == 2:
        others = [_Panel(MARGIN, top, 1256, 174, 1.5)]
    elif num_players == 3:
        others = [_Panel(x, top, 622, 174, 1.25) for x in (MARGIN, 646)]
    else:
        in_row = num_players - 3
        start = (1280 - in_row * across - (in_row - 1) * 22) / 2
        row = [_Panel(start + i * (across + 22), top, across, 206, 1) for i in range(in_row)]
        left, right = (_Panel(x, 352, across, 206, 1) for x in (MARGIN, 864))
        others = [left, *row, right]
    middle = _Panel(445, 330, 390, 270, 1.5) if num_players > 3 else _Panel(340, 300, 600, 300, 2)
    return _Layout(1280, 800, [front, *others], middle, 19, 104)


def _tall_layout(num_players: int) -> _Layout:
    """The others in two columns, clockwise up and down again; the seat in front below."""
    top, step, across = 126, 198, 284
    others = num_players - 1
    rows = (others + 1) // 2
    pairs = [
        [_Panel(x, top + step * row, across, 186, 0.88) for x in (MARGIN, 304)]
        for row in range(others % 2, rows)
    ]
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    opposite = [_Panel(MARGIN, top, 576, 186, 1.4)] if others % 2 else []
    below = top + step * rows
    front = _Panel(MARGIN, below + 250, 576, 272, 1.4)
    panels = [front, *left[::-1], *opposite, *right]
    middle = _Panel(40, below + 14, 520, 230, 1.4)
    return _Layout(600, below + 534, panels, middle, 21, 46)


def _words(table: Table, layout: _Layout) -> list[str]:
    """What goes on, on top of the drawing."""
    looker = f"as seat {table.viewer} sees it"
    if table.viewer == SPECTATOR:
        looker = "as a spectator sees it"
    elif table.viewer == OPEN:
        looker = "every card shown"
    head = f"3UP 3DOWN, {table.variant}, {looker}"
    if any(map(any, (place.exposed for place in table.places))):
        head += "; a dot: all know this card"
    lines = [(line, MARK, True) for line in textwrap.wrap(table.turn, layout.columns)]
    lines += [(line, LIGHT, False) for line in textwrap.wrap(table.last_action, layout.columns)]
    size = layout.size
    elements = [text(head, layout.width - MARGIN - 4, 20, 13, "#b9d3cd", "end")]
    for i, (line, fill, bold) in enumerate(lines):
        y = 24 + size * (i + 0.9) * 1.25
        elements.append(text(line, MARGIN + 4, y, size, fill, "start", bold))
    return elements


def _middle(table: Table, box: _Panel) -> list[str]:
    """The draw pile, the discard pile, and where the other cards are."""
    scale = box.scale
    wide, high = WIDTH * scale, HEIGHT * scale
    elements = [gap(box.x, box.y, scale)]
    if table.draw_pile_size:
        deep = range(min(table.draw_pile_size, 3))
        elements = [back(box.x + 4 * i, box.y - 3 * i, scale) for i in deep[:-1]]
        elements.append(back(box.x + 4 * deep[-1], box.y - 3 * deep[-1], scale, table.next_draw))
    x = box.x + wide / 2
    elements.append(text(f"draw pile: {table.draw_pile_size}", x + 4, box.y + high + 20, 14))
    left = box.x + wide + 56
    pile = Box(left, box.y, box.x + box.width - left, scale)
    elements += fan(table.pile, 0, NO_CARDS, pile) if any(table.pile) else [gap(left, box.y, scale)]
    for i, line in enumerate(_pile_words(table.pile)):
        elements.append(text(line, left, box.y + high + 20 + 18 * i, 14, LIGHT, "start"))
    return elements + _counts(table, box.x, box.y + high + 66, box.width)


def _pile_words(pile: tuple[int, ...]) -> list[str]:
    ranks = [rank for rank in range(NUM_RANKS) if pile[rank]]
    if not ranks:
        return ["pile: empty, anything may be played"]
    top = ranks[-1]
    on_top = RANK_NAMES[top] + f" x{pile[top]}" * (pile[top] > 1)
    return [f"pile: {number_of_cards(sum(pile))}, {on_top} on top", clearing_words(pile)]


def _counts(table: Table, x: float, y: float, width: float) -> list[str]:
    """A small table: copies of each rank that have left play, and that are out of sight."""
    label, step = 78, (width - 74) / NUM_RANKS
    rows = [("gone", table.out_of_play)]
    if table.viewer != OPEN:
        rows.append(("unseen", table.unseen))
    elements = [rectangle(x - 8, y - 4, width + 16, 24 + 20 * len(rows), DARK, 6)]
    for rank, name in enumerate(CORNERS):
        at = x + label + step * (rank + 0.5)
        elements.append(text(name, at, y + 13, 13, "#b9d3cd"))
        for i, (_, copies) in enumerate(rows):
            count = str(copies[rank]) if copies[rank] else "·"
            elements.append(text(count, at, y + 33 + 20 * i, 14, bold=True))
    for i, (words, copies) in enumerate(rows):
        elements.append(text(f"{words} {sum(copies)}", x, y + 33 + 20 * i, 13, "#b9d3cd", "start"))
    return elements


def _place(place: Place, panel: _Panel, name: str, viewer: Viewer) -> list[str]:
    """One seat: its hand, and its face-up cards on its face-down cards."""
    outline = f'stroke="{MARK}" stroke-width="4"' if place.is_acting else ""
    scale = panel.scale
    x, y = panel.x + 14, panel.y + 38
    columns = max(len(place.face_down), place.laid + sum(place.face_up))
    table_width = (columns * (WIDTH + 8) - 8) * scale
    room = panel.width - 28
    beside = panel.x + panel.width - 14 - max(table_width, 150 * scale)
    if panel.is_wide:
        cards = _table_cards(place, beside, y, scale)
        room = beside - x - 24
    else:
        cards = _table_cards(place, beside, y + (HEIGHT + 18) * scale, scale)
    hand = fan(place.hand, place.hidden, place.exposed, Box(x, y, room, scale))
    return [
        rectangle(panel.x, panel.y, panel.width, panel.height, PANEL, 10, outline),
        *_heading(place, panel, name, viewer),
        *hand,
        *cards,
        *_bounds(place, x, panel.y + panel.height - 8, beside - x - 10),
    ]


def _heading(place: Place, panel: _Panel, name: str, viewer: Viewer) -> list[str]:
    x, y = panel.x + 14, panel.y + 25
    elements = []
    if place.is_acting:
        elements.append(f'<path d="M{x:g} {y - 13:g}l12 7l-12 7z" fill="{MARK}"/>')
        x += 18
    words = f"seat {place.seat}{' (you)' * (viewer == place.seat)} {name}".rstrip()
    count = f"{place.hand_size} of {place.cards_left} in hand"
    if not place.cards_left:
        count = "no card left"
    most = int((panel.width - 42 - 7.2 * len(count)) / 8.9)
    if len(words) > most:
        words = words[: most - 1] + "…"
    fill = MARK if place.is_acting else LIGHT
    elements.append(text(words, x, y, 16, fill, "start", bold=True))
    elements.append(text(count, panel.x + panel.width - 14, y, 14, LIGHT, "end"))
    return elements


def _bounds(place: Place, x: float, y: float, width: float) -> list[str]:
    """What all can infer of a hand, beside its table cards, the last line at `y`."""
    if not (below := bound_words(place.below)):
        return []
    words = "hand: " + below.replace(" below ", f"{_NO_BREAK}below{_NO_BREAK}")
    lines = textwrap.wrap(words, int(width / 7.5), max_lines=4, placeholder=" …")
    y -= 17 * (len(lines) - 1)
    return [
        text(line.replace(_NO_BREAK, " "), x, y + 17 * i, 14, LIGHT, "start")
        for i, line in enumerate(lines)
    ]


def _table_cards(place: Place, x: float, y: float, scale: float) -> list[str]:
    """Face-up cards on face-down ones, what lies beneath showing at the top."""
    covers = [rank for rank in range(NUM_RANKS) for _ in range(place.face_up[rank])]
    elements = []
    for i in range(max(len(place.face_down), len(covers) + place.laid)):
        left = x + i * (WIDTH + 8) * scale
        if i < len(place.face_down):
            elements.append(back(left, y, scale, place.face_down[i]))
        below = y + 19 * scale
        if i < len(covers):
            elements.append(card(covers[i], left, below, scale))
        elif i < len(covers) + place.laid:
            elements.append(back(left, below, scale))
    return elements
