"""A progress bar that shows itself only when there is something to wait for."""

import time
from datetime import timedelta
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.text import Text

DELAY: Final = 2.0
"""Seconds before the bar appears."""


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} {self._unit}/s")


class _Left(ProgressColumn):
    """Time that is left: what was told last, counted down, else what the speed so far says."""

    max_refresh = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.ends: float | None = None

    def render(self, task: Task) -> Text:
        left = task.time_remaining if self.ends is None else self.ends - time.monotonic()
        words = "-:--:--" if left is None else str(timedelta(seconds=int(max(left, 0))))
        return Text(words, style="progress.remaining")


class Bar:
    """Counts up to `total` on standard error, from the third second on.

    Args:
        label: what is going on.
        total: how many are expected.
        unit: of what.
        show: False never shows it.
    """

    def __init__(self, label: str, total: int, unit: str = "games", show: bool = True) -> None:
        self._show = show
        self._start = time.monotonic()
        self._shown = False
        self._done = 0
        self._left = _Left()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(unit),
            self._left,
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(label, total=total)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown:
            self._progress.stop()

    def expect(self, seconds: float | None) -> None:
        """Tell how long it still takes; None leaves that to the speed so far."""
        self._left.ends = None if seconds is None else time.monotonic() + seconds

    def advance(self, count: int = 1) -> None:
        """Count on by `count`."""
        self._progress.advance(self._task, count)
        if self._show and not self._shown and time.monotonic() - self._start > DELAY:
            self._progress.start()
            self._shown = True
