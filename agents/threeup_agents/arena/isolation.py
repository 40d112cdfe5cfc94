"""Agents in processes of their own: what breaks there is that agent's failure."""

import atexit
import math
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import cloudpickle
import numpy as np
import numpy.typing as npt

from threeup_agents.arena.host import ACTIONS, FAILURE, LENGTH, MEMORY
from threeup_agents.programs.child import MEMORY as MEMORY_LIMIT
from threeup_agents.programs.child import Child, FailureError, TooLongError

IDLE: Final = 8
"""Processes that are kept for the next block: one takes seconds to start."""
_BOOT: Final = """
import os, sys
# Several threads cost a policy's small products more than they save.
for library in ("OPENBLAS", "MKL", "VECLIB"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
sys.path[:] = sys.argv[1:]
from threeup_agents.arena import host
host.serve()
"""

_idle: dict[tuple[int, str], Child] = {}


class Isolated:
    """An agent that is made and asked in a process of its own.

    Args:
        name: of the agent, and of its process: one that is left by this name is taken.
        maker: makes it there.
        log: file for what it prints, see `Child`.
        memory: bytes that it may hold.

    Attributes:
        deadline: when its time is up, on the clock of `time.perf_counter`.
        begin: as for `MemoryAgent`, once it is open; None if it has no memory.

    Raises:
        ValueError: it can't be sent to another process.
    """

    def __init__(
        self,
        name: str,
        maker: Callable[[], object],
        log: Path | None = None,
        memory: int = MEMORY_LIMIT,
    ) -> None:
        self.name = name
        self.deadline = math.inf
        self.begin: Callable[..., None] | None = None
        self._maker = pickled(name, maker)
        self._log = log
        self._memory = memory
        self._child: Child | None = None

    def open(self) -> None:
        """Make the agent.

        Raises:
            FailureError: it raised there, or its process has ended.
        """
        self._child = _idle.pop((os.getpid(), self.name), None)
        if self._child is None or not self._child.is_running:
            command = [sys.executable, "-c", _BOOT, *map(os.path.abspath, sys.path)]
            self._child = Child(command, self._log, self._memory)
        if self._ask("make", self._maker) == MEMORY:
            self.begin = self._begin

    def try_out(self, seconds: float) -> None:
        """Make the agent before any game, and leave its process for the first.

        Raises:
            ValueError: it couldn't be made in this time.
        """
        self.deadline = time.perf_counter() + seconds
        try:
            self.open()
        except (FailureError, TooLongError) as error:
            reason = str(error) or f"expected it to be made in {seconds:g} s"
            raise ValueError(f"agent {self.name!r}: {reason}") from error
        finally:
            self.close()

    def act(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        slots: npt.NDArray[np.int64] | None = None,
        events: Sequence[npt.NDArray[np.int8]] = (),
    ) -> npt.NDArray[np.int64]:
        """See `Agent` and `MemoryAgent`.

        Raises:
            FailureError: it raised there, gave no integers, or its process has ended.
        """
        told: tuple[Any, ...] = ()
        if slots is not None:
            ends = np.cumsum([len(event) for event in events])[:-1]
            told = (slots, np.concatenate(events), ends)
        answer = self._ask("act", observations, action_masks, *told)
        return np.frombuffer(answer, np.int64, offset=len(ACTIONS))

    def close(self) -> None:
        """Leave its process to the next of its name, or end it if it is still busy."""
        if self._child is None:
            return
        if self._child.is_running:
            _idle[os.getpid(), self.name] = self._child
        else:
            self._child.kill()
        self._child = None
        while len(_idle) > IDLE:
            _idle.pop(next(iter(_idle))).close()

    def _begin(
        self, slots: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], num_players: int
    ) -> None:
        self._ask("begin", slots, seats, num_players)

    def _ask(self, method: str, *arguments: Any) -> bytes:
        if self._child is None:
            raise RuntimeError("call open() before the agent is asked")
        question = pickle.dumps((method, arguments), protocol=5)
        data = len(question).to_bytes(LENGTH, "little") + question
        answer = self._child.exchange(data, _size_of, self.deadline)[LENGTH:]
        if answer[:1] == FAILURE:
            self._child.kill()  # it may be in any state
            raise FailureError(answer[1:].decode(errors="replace"))
        return answer


def pickled(name: str, maker: Callable[[], object]) -> bytes:
    """A function as bytes that another process makes it of.

    Raises:
        ValueError: it, or what it holds, can't leave this process.
    """
    try:
        blob: bytes = cloudpickle.dumps(maker)
    except Exception as error:  # whatever an object's own reduction raises
        raise ValueError(
            f"agent {name!r}: expected one that can be sent to a process of its own; got "
            f"{type(error).__name__}: {error}. Give a function that makes it, or don't isolate it"
        ) from error
    return blob


def end_idle() -> None:
    """End the processes that are kept for a next block."""
    while _idle:
        _idle.popitem()[1].close()


atexit.register(end_idle)


@contextmanager
def keeping_processes() -> Iterator[None]:
    """Keep processes from block to block, and end them after the last."""
    try:
        yield
    finally:
        end_idle()


def _size_of(found: bytearray) -> int | None:
    if len(found) < LENGTH:
        return None
    size = LENGTH + int.from_bytes(found[:LENGTH], "little")
    return size if len(found) >= size else None
