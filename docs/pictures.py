"""Draws the pictures of the pages: the same bytes each time.

python -m docs.pictures
"""

import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Final

import threeup_env
from tests.builders import dealt, play, position
from tests.test_structure import ALLOWED
from threeup_env import Batch

FOLDER: Final = Path(__file__).parent / "pictures"
TOP, HEIGHT, WIDTH = 276, 524, 1280
"""What is left of a drawing without the words on top and the seat opposite."""


def table() -> str:
    """A table of three in mid-game, as the seat to act sees it."""
    game = threeup_env.env(num_players=3, render_mode="ansi")
    game.reset(seed=7)
    for _ in range(34):
        game.step(int(game.last()[4]["action_mask"].argmax()))
    return str(game.unwrapped.picture().svg)


def near(batch: Batch) -> str:
    """The pile and the seat in front, seat 0."""
    size = f'viewBox="0 {TOP} {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    svg = threeup_env.show(batch, viewer=0).svg
    return re.sub(r'viewBox="[^"]+" width="\d+" height="\d+"', size, svg, count=1)


def owing() -> Batch:
    """After a Clear +2, with fewer than three cards in hand."""
    batch = position("5 8 C+2", pile="4 6", draw_pile="3 9 1 10", face_up="2 6 9")
    return play(batch, "play C+2")


ROOM, FLOOR, LEFT = 150, 58, 16
"""Width of a room, height of a floor, margin; in pixels."""


def floors() -> list[list[str]]:
    """The rooms by floor, the lowest first: each one above all rooms that it imports."""
    height: dict[str, int] = {}
    for room, names in ALLOWED.items():
        below = [full for name in names.split() for full in ALLOWED if is_called(full, name)]
        height[room] = 1 + max((height[name] for name in below), default=-1)
    return [[r for r in height if height[r] == floor] for floor in range(max(height.values()) + 1)]


def is_called(room: str, name: str) -> bool:
    """Whether the table of rooms calls a room so."""
    return room.rpartition(".")[2] == name or (room, name) == ("threeup_env", "env")


def rooms() -> str:
    """The house: a line of boxes for each floor, the environment's in green."""
    lines = floors()[::-1]
    width = LEFT * 2 + max(map(len, lines)) * ROOM
    height = LEFT * 2 + len(lines) * FLOOR
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" text-anchor="middle" '
            'font-family="\'DejaVu Sans\', Verdana, sans-serif" font-size="13">',
            f'<rect width="{width}" height="{height}" rx="14" fill="#f4f6f5"/>',
            *(box for i, line in enumerate(lines) for box in boxes(line, i, width)),
            "</svg>",
        ]
    )


def boxes(line: list[str], floor: int, width: int) -> Iterator[str]:
    """The rooms of one floor, in the middle of the drawing."""
    start = (width - len(line) * ROOM) / 2
    for i, room in enumerate(line):
        x, y = start + i * ROOM + 5, LEFT + floor * FLOOR + 7
        ours = room.startswith("threeup_env")
        name = escape(room.replace("threeup_agents.", "").replace("threeup_env.", ""))
        fill, stroke = ("#cfe8dc", "#0f6b52") if ours else ("#dbe6f4", "#2f5d9b")
        yield (
            f'<rect x="{x:g}" y="{y}" width="{ROOM - 10}" height="{FLOOR - 14}" rx="6" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )
        yield f'<text x="{x + ROOM / 2 - 5:g}" y="{y + 27}" fill="#122">{name}</text>'


PICTURES: Final[dict[str, Callable[[], str]]] = {
    "table": table,
    "lay": lambda: near(dealt("3 4 9 2 2 8 1 5 7 7 10 C 1 4 6 3 8 9")),
    "discard": lambda: near(
        position("3 7 9 9 C", pile="2 4 7", draw_pile="1 2 3 8", face_up="2 6 10")
    ),
    "three": lambda: near(position("7 8 10", pile="3 7 7", draw_pile="1 2 9", face_up="1 4 4")),
    "owed": lambda: near(owing()),
    "pick_up": lambda: near(position("2 4 6", pile="5 8 9", draw_pile="1 3", face_up="6 8 10")),
    "flip": lambda: near(position(pile="4 6", face_down="3")),
    "rooms": rooms,
}
"""What makes each picture, by name."""


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
