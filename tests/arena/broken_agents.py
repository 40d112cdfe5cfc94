"""Agents that break, each in its own way, at their fifth call; the first legal action before."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from threeup_env.engine.compiled import compiled

Rows = npt.NDArray[Any]


@compiled
def spin(count: int) -> int:
    """Go round and round; no signal gets in."""
    found = 1
    while found != 0:
        found = (found + count) | 1
    return found


def run_out_of_memory() -> None:
    """Ask for a gigabyte more, again and again."""
    held = []
    while True:
        held.append(np.ones(2**27))


def loop() -> None:
    """Never come back."""
    while True:
        pass


def shrug_off() -> None:
    """Never come back, whatever is raised."""
    while True:
        try:
            time.sleep(0.1)
        except BaseException:
            continue


def write_nowhere() -> None:
    """Read from where nothing lies."""
    ctypes.string_at(0)


BREAKS: dict[str, Callable[[], Any]] = {
    "sys.exit": lambda: sys.exit(3),
    "os._exit": lambda: os._exit(5),
    "segfault": write_nowhere,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory": run_out_of_memory,
    "loop": loop,
    "compiled loop": lambda: spin(2),
    "shrug": shrug_off,
    "raises": lambda: os.environ["WEIGHTS"],
    "prints": lambda: print("a word on standard output"),
}


class Breaks:
    """The first legal action, four times."""

    def __init__(self, how: str) -> None:
        self.name = how
        self._calls = 0

    def act(self, observations: Rows, action_masks: Rows) -> Rows:
        """As `Agent.act`."""
        self._calls += 1
        if self._calls == 5:
            BREAKS[self.name]()
        return np.asarray(action_masks.argmax(axis=1))


class Counts:
    """Says in which process it is, by failing."""

    name = "counts"

    def act(self, observations: Rows, action_masks: Rows) -> Rows:
        """As `Agent.act`."""
        raise RuntimeError(f"process {os.getpid()}")
