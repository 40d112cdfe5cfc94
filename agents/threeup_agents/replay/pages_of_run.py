"""Replay pages of a run, beside its report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from threeup_agents.replay.from_run import recordings_of
from threeup_agents.replay.page import page
from threeup_env.view.table import OPEN

REPLAYS: Final = "replays"
MOST_SECONDS: Final = 5.0
"""Time that agents may take to play blocks of games again for their pages. Only whole blocks
can be played, and a block of a deep search takes minutes."""
SHARE: Final = 0.1
"""Of the time that they took for the run: where that is more, they may take it."""


def write_pages(folder: Path, games: Sequence[int], seconds: float) -> set[int]:
    """Write `replays/GAME.html`, with all cards open, in place of the pages that are there.

    The run has just played, so its agents may play once more, whatever code they are.

    Args:
        folder: of the run.
        games: their numbers in `games.csv`, those wanted most first.
        seconds: that agents took for the run.

    Returns:
        The games that have a page; the others would have taken too long.

    Raises:
        ValueError: no such game, or the agents of the run now play otherwise.
        OSError: a page can't be written.
    """
    most = max(MOST_SECONDS, SHARE * seconds)
    recordings = recordings_of(folder, games, most, trust=True)
    (folder / REPLAYS).mkdir(exist_ok=True)
    for old in (folder / REPLAYS).glob("[0-9]*.html"):
        old.unlink()
    for game, recording in recordings.items():
        page(recording, (OPEN,)).save(folder / REPLAYS / f"{game}.html")
    return set(recordings)
