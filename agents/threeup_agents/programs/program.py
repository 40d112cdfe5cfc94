"""A program in any language as an agent: one JSON object a line, on its standard input and output.

| line to the program | its answer |
| --- | --- |
| `{"type": "hello", "version": 1, "env": "threeup-v1", "num_players": S, "seed": n,` | |
| ` "layout": {field: [start, stop]}, "actions": [name], "event": [field]}` | `{"version": 1}` |
| `{"type": "begin", "slots": [0, 1, ...], "seats": [seat, ...]}` | none |
| `{"type": "act", "slots": [slot], "observations": [[int]], "legal": [[action]],` | |
| ` "events": [[[int]]]}` | `{"actions": [action]}`, one a row |

`layout` says where each field of an observation lies, as `observation_fields` names them; an
action is its place in `actions`; `legal` holds the actions that the mask allows; slots and events
are those of `MemoryAgent`, an event has the fields `event`. The end of its input is the end of
the program. What it writes to standard error is kept for its author.
"""

import json
import math
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.files import parse_json
from threeup_agents.programs.child import MEMORY, Child, FailureError
from threeup_env.engine.actions import ACTION_NAMES
from threeup_env.engine.events import EVENT_DTYPE
from threeup_env.engine.observation import observation_fields
from threeup_env.engine.state import ENV_ID

VERSION: Final = 1
"""Version of the protocol."""
_SHOWN: Final = 60


class Program:
    """A program as an agent with memory; it starts when its games begin.

    Args:
        command: words as a shell would read them; no shell runs.
        seed: told to the program, for its own random stream.

    Attributes:
        deadline: when its time is up, on the clock of `time.perf_counter`.
        log: file for its standard error, see `Child`.
        memory: bytes that it may hold, likewise.

    Raises:
        ValueError: no words, or no such program.
    """

    def __init__(self, command: str, seed: int = 0) -> None:
        self.name = f"program:{command}"
        self._words = _words(command)
        self._seed = seed
        self._child: Child | None = None
        self.deadline = math.inf
        self.log: Path | None = None
        self.memory = MEMORY
        self._unsaid = b""  # a line that needs no answer, sent with the next that does

    def begin(
        self, slots: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], num_players: int
    ) -> None:
        """See `MemoryAgent`.

        Raises:
            FailureError: it doesn't speak this protocol, or has ended.
        """
        if self._child is None:
            self._child = Child(self._words, self.log, self.memory)
            answer = self._ask(self._child, hello(num_players, self._seed))
            if answer.get("version") != VERSION:
                got = repr(answer)[:_SHOWN]
                raise FailureError(f'expected {{"version": {VERSION}}} to hello; got {got}')
        games = {"type": "begin", "slots": slots.tolist(), "seats": seats.tolist()}
        self._unsaid = _line(games)

    def act(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        slots: npt.NDArray[np.int64],
        events: Sequence[npt.NDArray[np.int8]],
    ) -> npt.NDArray[np.int64]:
        """See `MemoryAgent`.

        Raises:
            FailureError: it answers with anything but a list of integers, or has ended.
        """
        if self._child is None:
            raise RuntimeError("call begin() before act()")
        question = {
            "type": "act",
            "slots": slots.tolist(),
            "observations": observations.tolist(),
            "legal": [np.flatnonzero(mask).tolist() for mask in action_masks],
            "events": [event.tolist() for event in events],
        }
        answer = self._ask(self._child, question)
        actions = answer.get("actions")
        if not isinstance(actions, list) or not all(type(action) is int for action in actions):
            got = repr(answer)[:_SHOWN]
            raise FailureError(f'expected {{"actions": [...]}} with integers; got {got}')
        return np.array(actions, np.int64)

    def close(self) -> None:
        """End the program."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def data_files(self, num_players: int) -> list[Path]:
        """The words of its command that are files, which decide what it plays."""
        found = [Path(word) for word in self._words]
        return [path for path in found if path.is_file()]

    def _ask(self, child: Child, question: dict[str, Any]) -> dict[str, Any]:
        data, self._unsaid = self._unsaid + _line(question), b""
        line = child.exchange(data, _size_of_line, self.deadline)
        try:
            answer = parse_json(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise FailureError(f"expected a line with a JSON object; got {line[:_SHOWN]!r}")
        return answer


def hello(num_players: int, seed: int) -> dict[str, Any]:
    """The first line that a program is told."""
    fields = observation_fields(num_players).items()
    return {
        "type": "hello",
        "version": VERSION,
        "env": ENV_ID,
        "num_players": num_players,
        "layout": {name: [part.start, part.stop] for name, part in fields},
        "actions": list(ACTION_NAMES),
        "event": list(EVENT_DTYPE.names or ()),
        "seed": seed,
    }


def _words(command: str) -> list[str]:
    """The words of a command whose first one can be run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"agent 'program:{command}': expected a command; {error}") from error
    if not words or shutil.which(words[0]) is None:
        example = "'program:python bot.py'"
        got = repr(words[0]) if words else "nothing"
        raise ValueError(
            f"agent 'program:{command}': expected a program that can be run, e.g. {example}; "
            f"got {got}"
        )
    return words


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _size_of_line(found: bytearray) -> int | None:
    return found.find(b"\n") + 1 or None
