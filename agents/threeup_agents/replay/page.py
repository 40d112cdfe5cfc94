"""A recorded game as one self-contained web page.

The page holds the finished drawings of the views that it was made for and nothing else: one
made for a seat has no card in its source that the seat doesn't know.
"""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from threeup_agents.files import write_text
from threeup_agents.pages import Markup, fill
from threeup_agents.replay.judge import MISTAKE, Judgement
from threeup_agents.replay.recording import Recording, Weights
from threeup_env.engine.actions import ACTION_NAMES
from threeup_env.view.picture import draw
from threeup_env.view.table import OPEN, SPECTATOR, Viewer, look

TEMPLATE: Final = Path(__file__).parent / "page.html"


@dataclass(frozen=True, repr=False)
class Page:
    """A finished page; shows itself in a notebook."""

    html: str

    def save(self, path: Path) -> None:
        """Write it, whole or not at all.

        Raises:
            OSError: it can't be written; then no file is left behind.
        """
        write_text(path, self.html)

    def _repr_html_(self) -> str:
        """The page as a part of another one."""
        style = "width:100%;height:680px;border:0"
        source = html.escape(self.html)
        return f'<iframe srcdoc="{source}" style="{style}" title="3UP 3DOWN"></iframe>'


def page(
    recording: Recording, viewers: Sequence[Viewer] = (), judgement: Judgement | None = None
) -> Page:
    """Draw a game as a page.

    Args:
        recording: the game.
        viewers: whose views it holds, the first one shown first; empty for all.
        judgement: of the game; a curve of the win share that each seat could expect, under the
            slider, and the best action beside the one played. A seat's view has its own alone.

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
    data = {"lines": list(lines), "views": [view.facts(judgement) for view in views]}
    if judgement is not None:
        data["odds"] = _legend(judgement)
    # What ends a script must not stand in one, not even in an agent's name.
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    title = f"3UP 3DOWN: {', '.join(recording.agents)}"
    return Page(fill(TEMPLATE, title=title, data=Markup(written)))


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

    def facts(self, judgement: Judgement | None) -> dict[str, Any]:
        """What the page needs."""
        name = f"seat {self.viewer}" if isinstance(self.viewer, int) else self.viewer
        odds = [] if judgement is None else _odds(judgement, self.viewer)
        facts = {"name": name, "words": self._words, "bars": self._bars, "odds": odds}
        return facts | self._frames


def _legend(judgement: Judgement) -> dict[str, Any]:
    """What the curves of all views share."""
    from threeup_agents import plots  # matplotlib takes a second to import

    return {
        "seats": [f"seat {seat} {name}" for seat, name in enumerate(judgement.agents)],
        "colours": plots.SEATS,
        "judge": judgement.judge,
        "fair": 1 / len(judgement.agents),
        "mistake": MISTAKE,
    }


def _odds(judgement: Judgement, viewer: Viewer) -> list[list[Any]]:
    """Step, seat, best, value, taken and its value of each choice that the looker may know."""
    after = judgement.value - judgement.cost
    rows = zip(
        *(judgement.step.tolist(), judgement.seat.tolist(), judgement.best),
        *(judgement.value.round(3).tolist(), judgement.taken, after.round(3).tolist()),
        strict=True,
    )
    return [list(row) for row in rows if viewer in (OPEN, row[1])]


def _bars(weights: Weights, taken: int | None) -> list[list[Any]]:
    """Name, share and whether it was taken of each action, the likeliest first."""
    total = sum(weights.values()) or 1
    return [
        [ACTION_NAMES[action], round(weight / total, 4), action == taken]
        for action, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
