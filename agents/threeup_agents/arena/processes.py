"""A run's processes: workers end with their parent, a lost one is named, SIGTERM is as Ctrl-C."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Final, NoReturn

from joblib.externals.loky.process_executor import BrokenProcessPool

_PULSE: Final = 0.5
"""Seconds between two looks for the parent."""


class WorkerLostError(RuntimeError):
    """A worker process ended in the middle of its games."""


class TerminatedError(KeyboardInterrupt):
    """Someone sent SIGTERM; like Ctrl-C, no `except Exception` stops it."""


@cache
def end_with(parent: int) -> None:
    """Let this process end within a second of the one that has started it, however that ends.

    It needs a system that gives orphans another parent, as all but Windows do.

    Args:
        parent: its process id. In that process itself this does nothing.
    """
    if os.getpid() != parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PULSE)
    os._exit(1)  # what the main thread does, and whom it would tell, no longer matters


@contextmanager
def naming_lost_workers() -> Iterator[None]:
    """Turn joblib's paragraph about a dead worker into one line.

    Raises:
        WorkerLostError: a worker was killed.
    """
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerLostError(
            "a worker process was killed or has crashed, perhaps for want of memory "
            "(fewer --workers need less)"
        ) from error


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise `TerminatedError` where SIGTERM would end the process at once.

    Only the main thread of a process can.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise TerminatedError
