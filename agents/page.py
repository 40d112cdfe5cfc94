"""A recorded game as one self-contained web page.

The page holds the finished drawings of the views that it was made for and nothing else: one
made for a seat has no card in its source that the seat doesn't know.

    python -m agents.page game.json --out replay.html
    python -m agents.page game.json --viewers 0 --out replay.html
    python -m agents.page FOLDER_OF_A_RUN --game 31 --out replay.html
"""

import html
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tyro

import agents
from agents.files import write_text
from agents.recording import Recording, Weights
from agents.session import PERSON
from threeup_env.actions import ACTION_NAMES
from threeup_env.picture import draw
from threeup_env.table import OPEN, SPECTATOR, Viewer, look

TEMPLATE: Final = Path(__file__).parent / "page.html"
_DATA: Final = "/*DATA*/"
_TITLE: Final = "<!--TITLE-->"


@dataclass(frozen=True)
class Config:
    """Write a recorded game as a web page that needs nothing else."""

    source: tyro.conf.Positional[Path]
    """A recording, or the folder of a run of evaluate.py."""
    game: int = 0
    """The game's number in the games.csv of the run."""
    viewers: tuple[str, ...] = ()
    """Whose views the page holds: seats by number, spectator, open; none for all of these.
    A page for one seat alone holds no card that it doesn't know."""
    explain: bool = False
    """Ask the agents anew what they think of each choice (a search takes its time)."""
    out: Path = Path("replay.html")
    """The page."""


def page(recording: Recording, viewers: Sequence[Viewer] = ()) -> str:
    """Write the game as HTML.

    Args:
        recording: the game.
        viewers: whose views it holds, the first one shown first; empty for all.

    Raises:
        ValueError: no such viewer, or a game that breaks the rules.
    """
    chosen = tuple(viewers) or all_viewers(recording)
    lines: dict[str, int] = {}
    views = [_View(viewer, recording.agents, lines) for viewer in chosen]
    for step, (batch, last) in enumerate(recording.play()):
        weights = recording.weights[step] if step < len(recording.weights) else None
        taken = recording.actions[step] if step < len(recording.actions) else None
        for view in views:
            view.add(look(batch, 0, view.viewer, last), int(batch.seats[0]), weights, taken)
    data = {"lines": list(lines), "views": [view.facts() for view in views]}
    # What ends a script must not stand in one, not even in an agent's name.
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    title = f"3UP 3DOWN: {', '.join(recording.agents)}"
    template = TEMPLATE.read_text(encoding="utf-8")
    return template.replace(_TITLE, html.escape(title)).replace(_DATA, written)


def write_page(recording: Recording, path: Path, viewers: Sequence[Viewer] = ()) -> None:
    """Write the page of a game, whole or not at all; see `page`."""
    write_text(path, page(recording, viewers))


def as_frame(recording: Recording, viewers: Sequence[Viewer] = ()) -> str:
    """The page as a part of another one, for a notebook."""
    source = html.escape(page(recording, viewers))
    style = "width:100%;height:680px;border:0"
    return f'<iframe srcdoc="{source}" style="{style}" title="3UP 3DOWN"></iframe>'


def all_viewers(recording: Recording) -> tuple[Viewer, ...]:
    """Everybody who can look at a game."""
    return (OPEN, SPECTATOR, *range(recording.num_players))


class _View:
    """The frames of one looker; `lines` is shared by all views of a page."""

    def __init__(self, viewer: Viewer, names: Sequence[str], lines: dict[str, int]) -> None:
        self.viewer = viewer
        self._names = names
        self._lines = lines
        self._frames: dict[str, list[list[int]]] = {"wide": [], "tall": []}
        self._words: list[str] = []
        self._bars: list[list[list[Any]] | None] = []

    def add(self, table: Any, seat: int, weights: Weights | None, taken: int | None) -> None:
        """Add what is seen after an action, and the choice that comes next."""
        for name, frames in self._frames.items():
            drawing = draw(table, self._names, tall=name == "tall").splitlines()
            frames.append([self._lines.setdefault(line, len(self._lines)) for line in drawing])
        self._words.append(table.last_action)
        # What an agent may choose from tells its hand.
        told = weights is not None and self.viewer in (OPEN, seat)
        self._bars.append(_bars(weights, taken) if told and weights else None)

    def facts(self) -> dict[str, Any]:
        """What the page needs."""
        name = f"seat {self.viewer}" if isinstance(self.viewer, int) else self.viewer
        return {"name": name, "words": self._words, "bars": self._bars, **self._frames}


def _bars(weights: Weights, taken: int | None) -> list[list[Any]]:
    """Name, share and whether it was taken of each action, the likeliest first."""
    total = sum(weights.values()) or 1
    return [
        [ACTION_NAMES[action], round(weight / total, 4), action == taken]
        for action, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = tyro.cli(Config, args=list(arguments), prog="python -m agents.page")
    try:
        recording = _read(config.source, config.game)
        if config.explain:
            names = recording.agents
            recording = recording.explained(
                [None if name == PERSON else agents.make(name) for name in names]
            )
        viewers = [int(name) if name.isdigit() else name for name in config.viewers]
        write_page(recording, config.out, viewers)  # type: ignore[arg-type]  # page() checks them
    except (ValueError, OSError, ImportError) as error:
        print(f"agents.page: {error}", file=sys.stderr)
        return 2
    print(f"page: {config.out}")
    return 0


def _read(source: Path, game: int) -> Recording:
    if not source.is_dir():
        return Recording.load(source)
    from agents.replay import recording_of

    return recording_of(source, game)


if __name__ == "__main__":
    sys.exit(main())
