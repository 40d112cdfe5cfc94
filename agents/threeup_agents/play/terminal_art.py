"""The table as coloured text of a terminal, from what one seat sees; cards are small blocks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.containers import Lines
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from threeup_env.engine.actions import ACTION_NAMES, ACTION_RANK
from threeup_env.engine.cards import NUM_RANKS, RANK_NAMES
from threeup_env.view.card_art import CLEAR_COLOURS, DARK, LIGHT, MARK
from threeup_env.view.table import Copies, Place, Table
from threeup_env.view.words import bound_words, clearing_words

SOFT: Final = "#b9d3cd"
"""Of labels."""
MANY: Final = 12
"""From so many cards on equal ones are drawn as one, with their number."""
_PAPER: Final = "#fbf7e8"
_UNPLAYABLE: Final = f"{DARK} on #86a39b"
_BACK: Final = "#e8d9b0 on #6b3f2a"


@dataclass(frozen=True)
class Row:
    """Blocks of equally many lines side by side, as many of them as there is room for."""

    blocks: Sequence[Text]
    gap: int = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows: list[list[Lines]] = [[]]
        room = options.max_width
        for block in self.blocks:
            lines = block.split("\n", allow_blank=True)
            width = max(line.cell_len for line in lines)
            if width > room and rows[-1]:
                rows.append([])
                room = options.max_width
            rows[-1].append(lines)
            room -= width + self.gap
        for row in rows:
            for parts in zip(*row, strict=True):
                yield Text(" " * self.gap).join(parts)


def seats(table: Table, names: Sequence[str]) -> Grid:
    """A row a seat, in their order: who acts, what it holds, what lies before it."""
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style=SOFT, expand=True)
    grid.add_column("  seat", no_wrap=True, max_width=18)
    grid.add_column("hand", ratio=1)
    grid.add_column("left ", justify="right", no_wrap=True)
    grid.add_column("face up", no_wrap=True, min_width=14)
    grid.add_column("down", no_wrap=True)
    for place in table.places:
        you = place.seat == table.viewer
        mark, name = "▶" if place.is_acting else " ", "you" if you else names[place.seat]
        grid.add_row(
            Text(f"{mark} {place.seat} {name} ", f"bold {MARK if place.is_acting else LIGHT}"),
            Text(_held(place, you), LIGHT),
            Text(f"{place.cards_left} ", LIGHT),
            _inline(place.face_up, place.laid),
            _inline(hidden=len(place.face_down)),
        )
    return grid


def _held(place: Place, you: bool) -> str:
    """A hand in words: its size, and what is known of it."""
    size, below = place.hand_size, bound_words(place.below)
    if you:
        known = "all" if size and sum(place.exposed) == size else _counted(place.exposed)
        told = ", ".join(filter(None, (known, below)))
        return f"{size}" + f", others know {told}" * bool(told)
    among = ", among them " if place.hidden else ": "
    held = f"{size}" + f"{among}{_counted(place.hand)}" * any(place.hand)
    return held + f", {below}" * bool(below)


def _counted(copies: Copies) -> str:
    """Cards by name, equal ones with their number: `3 7x2 C`."""
    held = enumerate(copies)
    return " ".join(RANK_NAMES[rank] + f"x{n}" * (n > 1) for rank, n in held if n)


def pile(table: Table, big: bool) -> Grid:
    """The discard pile, and what may be played on it."""
    if not any(table.pile):
        return _labelled("pile", Text("empty", LIGHT))
    top = max(rank for rank, count in enumerate(table.pile) if count)
    words = f"{RANK_NAMES[top]} or higher; {clearing_words(table.pile)}"
    cards = _cards(table.pile, big=big)
    above = "\n" * (cards[0].plain.count("\n") // 2)
    note = Text(f"{above}{words}{above}", LIGHT)
    return _labelled("pile", Row([*cards, note]))


def counts(table: Table) -> Grid:
    """The draw pile, and copies of each rank that have left play or have not been seen."""
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style=SOFT)
    grid.add_column(Text(f"draw pile {table.draw_pile_size}", LIGHT), style=SOFT, no_wrap=True)
    for name in RANK_NAMES:
        grid.add_column(name, justify="right", min_width=2, style=LIGHT, no_wrap=True)
    for words, copies in (("gone", table.out_of_play), ("unseen", table.unseen)):
        grid.add_row(f"{words} {sum(copies)}", *(str(n) if n else "·" for n in copies))
    return grid


def own(table: Table, choices: Iterable[int], big: bool) -> Grid:
    """The zone that the person plays from (R16); bright are the cards that can be played now."""
    place = next(place for place in table.places if place.seat == table.viewer)
    playable = {int(ACTION_RANK[action]) for action in choices}
    bright = playable if place.is_acting else range(NUM_RANKS)
    if any(place.hand):
        return _labelled("your hand", Row(_cards(place.hand, bright, big)))
    if table.draw_pile_size:
        return _labelled("your hand", Text("empty", LIGHT))
    if any(place.face_up):
        return _labelled("your face-up cards", Row(_cards(place.face_up, bright, big)))
    return _labelled("your face-down cards", _inline(hidden=len(place.face_down)))


def actions(choices: Sequence[int], keys: Sequence[str], hint: int | None) -> Row:
    """The legal actions with their keys; a click on one calls the app's `choose`."""
    labels = []
    for i, action in enumerate(choices):
        click = Style(meta={"@click": f"app.choose({action})"})
        label = Text()
        key = keys[i] if i < len(keys) else "·"
        is_hint = action == hint
        label.append(f" {key} ", Style.parse(f"bold {DARK} on {MARK}") + click)
        ground = "#b35900" if is_hint else DARK
        words = f" {ACTION_NAMES[action]}{' ★' * is_hint} "
        label.append(words, Style.parse(f"bold {LIGHT} on {ground}") + click)
        labels.append(label)
    return Row(labels, gap=2)


def log(lines: Sequence[str], seat: int) -> Text:
    """What has happened, a line an action; the person's own stand out."""
    text = Text()
    for line in lines:
        text.append(f"{line}\n", f"bold {LIGHT}" if line.startswith(f"seat {seat} ") else SOFT)
    text.rstrip()
    return text


def _labelled(label: str, content: RenderableType) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_row(Text(label.ljust(9), SOFT, no_wrap=True), content)
    return grid


def _cards(
    copies: Copies, bright: Iterable[int] = range(NUM_RANKS), big: bool = False
) -> list[Text]:
    """A block a card; of many cards one a rank."""
    bright, many = set(bright), sum(copies) > MANY
    blocks = []
    for rank, count in enumerate(copies):
        style = _style(rank) if rank in bright else _UNPLAYABLE
        if many:
            words = [RANK_NAMES[rank] + f" x{count}" * (count > 1)] * bool(count)
        else:
            words = [RANK_NAMES[rank]] * count
        blocks += [_block(word, style, big and not many) for word in words]
    return blocks


def _inline(copies: Copies = (), hidden: int = 0) -> Text:
    """A few cards on one line, backs last."""
    line = Text()
    for block in [*_cards(copies), *[Text("▒", _BACK)] * hidden]:
        line.append(block).append(" ")
    return line


def _block(words: str, style: str, big: bool) -> Text:
    line = f"  {words}  " if big else f" {words} "
    return Text("\n".join([" " * len(line), line, " " * len(line)]) if big else line, style)


def _style(rank: int) -> str:
    fill, ink = CLEAR_COLOURS.get(rank, (_PAPER, DARK))
    return f"bold {ink} on {fill}"
