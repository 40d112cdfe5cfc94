"""Becomes a command that ends with its parent and stays within a memory limit; run as a file."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


def launch(parent: int, memory: int, command: list[str]) -> None:
    """Put another program in this one's place.

    Args:
        parent: id of the process whose end, by a kill too, is to end the command (on Linux;
            elsewhere a command that reads finds the end of its input).
        memory: bytes of data that each of its processes may hold.
        command: words.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            sys.exit(1)
    import resource  # not on Windows, where nothing of this works

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    os.execvp(command[0], command)


if __name__ == "__main__":
    launch(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
