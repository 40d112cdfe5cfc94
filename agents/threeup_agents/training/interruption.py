"""Ctrl-C and SIGTERM in a run: the first asks it to stop where it can go on, a second ends it."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

EXIT_CODE: Final = 128
"""Added to a signal's number, as shells do."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StoppedError(Exception):
    """A run has stopped as it was asked to, and all that it needs to go on has been written.

    Args:
        number: of the signal.
        folder: of the run.
        decisions: from which it goes on.
    """

    def __init__(self, number: int, folder: Path, decisions: int) -> None:
        super().__init__(goes_on(folder, decisions))
        self.number = number


def goes_on(folder: Path, decisions: int) -> str:
    """Say how an interrupted run goes on."""
    return f"interrupted; --resume {folder} goes on from decision {decisions:,}"


class StopRequest:
    """Notes that somebody has asked to stop, while it is entered; only in the main thread.

    A second request raises KeyboardInterrupt with the signal's number. A signal that was
    ignored before, as under nohup, stays so.

    Args:
        say: is told, in words, that the request has been heard.

    Attributes:
        number: of the signal that has asked, or None.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.number: int | None = None
        self._say = say
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt(number)
        self.number = number
        self._say("stopping after this update, so that the run can go on; once more ends it now")
