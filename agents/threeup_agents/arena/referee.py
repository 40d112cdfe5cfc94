"""Watches the agents of a match: what they answer, and how long they take."""

import signal
import threading
import time
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.agent import Agent
from threeup_env.engine.actions import ACTION_NAMES, NUM_ACTIONS

PATIENCE: Final = 30.0
"""Seconds that an agent may take in a block of games beside its time per decision, for
loading and compiling."""
SECONDS_PER_DECISION: Final = 1.0
_TICK: Final = 0.25


class AgentError(Exception):
    """An agent broke its contract in a match.

    Attributes:
        agent: its name.
        reason: what it did.
        row: row of the game that shows it; the first of the call where no one game does.
        where: that game as a mapping of line_up, deal, rotation and step, once known.
    """

    def __init__(self, agent: str, reason: str, row: int) -> None:
        super().__init__(agent, reason, row)
        self.agent = agent
        self.reason = reason
        self.row = row
        self.where: dict[str, Any] = {}

    def __str__(self) -> str:
        where = ", ".join(f"{name} {value}" for name, value in self.where.items())
        return f"agent {self.agent!r}: {self.reason}" + (f" ({where})" if where else "")


class Referee:
    """Asks the agents of one block of games, and checks every answer.

    Each agent has a bank of time: `PATIENCE` and `limit` for each decision, so that one
    that hangs and one that loses a little at every call are both found. In a `with` block
    in the main thread of a system with signals a hanging agent is interrupted, unless it
    hangs in compiled code; elsewhere it is found when its answer comes.

    Args:
        names: of the agents.
        agents: the same, themselves.
        limit: seconds per decision.
    """

    def __init__(
        self,
        names: Sequence[str],
        agents: Sequence[Agent],
        limit: float = SECONDS_PER_DECISION,
    ) -> None:
        self.names = names
        self.agents = agents
        self.limit = limit
        self.seconds = [0.0] * len(agents)
        self.decisions = [0] * len(agents)
        self._deadline: float | None = None
        self._previous: Any = None

    def __enter__(self) -> "Referee":
        # One slow timer for the whole block: setting one for each call would cost more
        # than a fast agent takes.
        main = threading.current_thread() is threading.main_thread()
        if main and hasattr(signal, "setitimer"):
            self._previous = signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous)
            self._previous = None

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if self._deadline is not None and time.perf_counter() > self._deadline:
            self._deadline = None
            raise _TooLongError

    def ask(
        self,
        index: int,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Ask one agent for an action in each of its games.

        Args:
            index: which agent.
            observations: int8 `[K, F]`.
            action_masks: bool `[K, A]`.
            rows: the games' rows in the batch; int64 `[K]`.

        Raises:
            AgentError: it raised, took too long, or gave no legal action in some row.
        """
        start = time.perf_counter()
        self.decisions[index] += len(rows)
        bank = PATIENCE + self.limit * self.decisions[index] - self.seconds[index]
        try:
            self._deadline = start + bank
            # A copy: the answer is checked against the masks that the agent can't write to.
            actions = self.agents[index].act(observations, action_masks.copy())
            self._deadline = None
        except _TooLongError:
            pass  # the time taken says so
        except Exception as error:
            self._deadline = None
            reason = f"raised {type(error).__name__}: {error}"
            raise AgentError(self.names[index], reason, int(rows[0])) from error
        took = time.perf_counter() - start
        self.seconds[index] += took
        if took > bank:
            reason = (
                f"expected at most {self.limit:g} s per decision, and {PATIENCE:g} s beside; "
                f"got {self.seconds[index]:.1f} s for {self.decisions[index]:,} decisions"
            )
            raise AgentError(self.names[index], reason, int(rows[0]))
        return check_answer(self.names[index], actions, action_masks, rows)


class _TooLongError(BaseException):
    """Ends a call from outside; not an Exception, so that no agent catches it by mistake."""


def check_answer(
    name: str,
    actions: Any,
    action_masks: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Check that an answer is one legal action a row.

    Raises:
        AgentError: it isn't; names what would have been right.
    """
    shape = getattr(actions, "shape", None)
    kind = getattr(actions, "dtype", np.dtype(object)).kind
    if shape != rows.shape or kind not in "iu":
        got = f"{type(actions).__name__} {actions!r}"[:80]
        reason = f"expected an array of {len(rows)} integers; got {got}"
        raise AgentError(name, reason, int(rows[0]))
    ids: npt.NDArray[np.int64] = actions.astype(np.int64, copy=False)
    known = (ids >= 0) & (ids < NUM_ACTIONS)
    legal = known & action_masks[np.arange(len(ids)), np.where(known, ids, 0)]
    if not legal.all():
        wrong = int(np.argmin(legal))
        choices = ", ".join(repr(ACTION_NAMES[a]) for a in np.flatnonzero(action_masks[wrong]))
        action = int(ids[wrong])
        words = f"{action} {ACTION_NAMES[action]!r}" if known[wrong] else str(action)
        reason = f"expected one of {choices}; got {words}"
        raise AgentError(name, reason, int(rows[wrong]))
    return ids
