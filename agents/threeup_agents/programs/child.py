"""A process that can't hold up its parent, fill its memory, or stay when it is gone."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

MEMORY: Final = 8 * 2**30
"""Bytes of data that each of its processes may hold."""
LOG_SIZE: Final = 2**20
"""Bytes of standard error that a log file takes."""
GRACE: Final = 0.5
"""Seconds that a process has to end by itself once its input has ended."""
ANSWER_SIZE: Final = 2**20
"""Bytes that an answer may have."""
_CHUNK: Final = 2**16
_LOOK: Final = 0.2  # seconds between two looks whether it is still there
_TAIL: Final = 300  # bytes of standard error that a failure tells the last line of
_LAST_READS: Final = 64  # of standard error, once the process has ended


class TooLongError(BaseException):
    """An agent's time is up; not an Exception, so that no agent catches it by mistake."""


class FailureError(Exception):
    """What an agent did wrong, in words that `AgentError` takes as they are."""


class Child:
    """A command in a process of its own, with pipes to and from it.

    Args:
        command: words.
        log: file that its standard error is added to, up to `LOG_SIZE`; None keeps the end only.
        memory: bytes of data that each of its processes may hold.

    Raises:
        OSError: a system without what this needs, or no more processes.
    """

    def __init__(
        self, command: Sequence[str], log: Path | None = None, memory: int = MEMORY
    ) -> None:
        if not hasattr(select, "poll"):
            raise OSError(
                "a process for an agent: expected a system with poll, e.g. Linux or macOS"
            )
        launcher = str(Path(__file__).with_name("launch.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", launcher, str(os.getpid()), str(memory), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that it is killed with all that it has started
            bufsize=0,
        )
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in pipes if pipe)
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe, False)
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        self._inbox = bytearray()
        self._log = log
        self._tail = b""
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Whether it can still be asked."""
        return not self._is_closed and self._process.poll() is None

    def exchange(
        self, data: bytes, size_of: Callable[[bytearray], int | None], deadline: float
    ) -> bytes:
        """Write to it and wait for an answer; kill it if there is none.

        Args:
            data: what to write.
            size_of: bytes of the answer in what has come, None if more must come.
            deadline: when its time is up, on the clock of `time.perf_counter`.

        Raises:
            TooLongError: its time is up.
            FailureError: it has ended, or had answered before it was asked.
        """
        if self._inbox:
            self.kill()
            raise FailureError(f"expected one answer; got more: {bytes(self._inbox[:40])!r}")
        rest = memoryview(data)
        try:
            while True:
                rest = self._write(rest)
                size = size_of(self._inbox)
                if size is not None and not rest:
                    answer = bytes(self._inbox[:size])
                    del self._inbox[:size]
                    return answer
                self._wait(deadline)
        except BaseException:
            self.kill()
            raise

    def _write(self, rest: memoryview) -> memoryview:
        """Write what fits; what is left."""
        if not rest:
            return rest
        try:
            rest = rest[os.write(self._stdin, rest) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            raise self._ended() from None
        if rest:
            self._poll.register(self._stdin, select.POLLOUT)
        else:
            with suppress(KeyError):
                self._poll.unregister(self._stdin)
        return rest

    def _wait(self, deadline: float) -> None:
        """Wait until there is something to read, or it reads."""
        left = deadline - time.perf_counter()
        if left <= 0:
            raise TooLongError
        found = self._poll.poll(min(left, _LOOK) * 1000 + 1)
        if not found and not self.is_running:
            raise self._ended()
        for pipe, _ in found:
            if pipe == self._stderr:
                self._note()
            elif pipe == self._stdout:
                chunk = os.read(pipe, _CHUNK)
                if not chunk:
                    raise self._ended()
                self._inbox += chunk
        if len(self._inbox) > ANSWER_SIZE:
            start = bytes(self._inbox[:40])
            raise FailureError(
                f"expected an answer of at most {ANSWER_SIZE:,} bytes; got {start!r}..."
            )

    def _note(self) -> bool:
        """Keep what it writes to standard error; whether there was something."""
        try:
            chunk = os.read(self._stderr, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            with suppress(KeyError):
                self._poll.unregister(self._stderr)
            return False
        self._tail = (self._tail + chunk)[-_TAIL:]
        if self._log is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("ab") as file:
                room = max(0, LOG_SIZE - file.tell())
                file.write(chunk[:room])
        return True

    def _note_last(self) -> None:
        """Keep what is left of its standard error."""
        for _ in range(_LAST_READS):
            if not self._note():
                break

    def _ended(self) -> FailureError:
        """The failure of a process that has gone, or has closed its output."""
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return FailureError("expected an answer; its process closed its output")
        self._note_last()
        names = {number.value: number.name for number in signal.Signals}
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was ended by {names.get(-code, f'signal {-code}')}"
        words = self._tail.decode(errors="replace").strip().splitlines()
        last = f": {words[-1]}" if words else ""
        return FailureError(f"expected an answer; its process {how}{last}")

    def close(self) -> None:
        """End its input, give it a moment, and kill what is left."""
        if self._is_closed:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.kill()

    def kill(self) -> None:
        """End it, and every process that it has started."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._note_last()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
