"""Watches the agents of a match: what they answer, and how long they take."""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.programs.child import FailureError, TooLongError
from threeup_env.agent import Agent, MemoryAgent, has_memory
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

    Each agent has a bank of time: `patience` and `limit` for each decision, so that one
    that loses a little at every call is found; and no call may take more than `patience` and
    `limit` for each of its own decisions, so that one that hangs is found before all that it
    has saved is spent. An agent in a process of its own, told by its attribute `deadline`, is
    killed then. In a `with` block in the main thread of a system with signals any other is
    interrupted, unless it hangs in compiled code; elsewhere it is found when its answer comes.

    Args:
        names: of the agents.
        agents: the same, themselves.
        limit: seconds per decision.
        patience: seconds beside.
    """

    def __init__(
        self,
        names: Sequence[str],
        agents: Sequence[Agent | MemoryAgent],
        limit: float = SECONDS_PER_DECISION,
        patience: float = PATIENCE,
    ) -> None:
        self.names = names
        self.agents = agents
        self.limit = limit
        self.patience = patience
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
            raise TooLongError

    def open(self) -> list[bool]:
        """Let agents in processes of their own be made there; whether each has memory.

        Raises:
            AgentError: one couldn't be made in time.
        """
        for i, agent in enumerate(self.agents):
            if hasattr(agent, "open"):
                self._call(i, 0, 0, agent.open)
        return [has_memory(agent) for agent in self.agents]

    def begin(
        self, index: int, slots: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], players: int
    ) -> None:
        """Tell an agent with memory its slots, see `MemoryAgent.begin`.

        Raises:
            AgentError: it raised or took too long.
        """
        agent: Any = self.agents[index]
        self._call(index, 0, 0, agent.begin, slots, seats, players)

    def ask(
        self,
        index: int,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.int64],
        *told: Any,
    ) -> npt.NDArray[np.int64]:
        """Ask one agent for an action in each of its games.

        Args:
            index: which agent.
            observations: int8 `[K, F]`.
            action_masks: bool `[K, A]`.
            rows: the games' rows in the batch; int64 `[K]`.
            told: slots and events, for an agent with memory.

        Raises:
            AgentError: it raised, took too long, or gave no legal action in some row.
        """
        self.decisions[index] += len(rows)
        # A copy: the answer is checked against the masks that the agent can't write to.
        views = observations, action_masks.copy()
        agent = self.agents[index]
        actions = self._call(index, int(rows[0]), len(rows), agent.act, *views, *told)
        return check_answer(self.names[index], actions, action_masks, rows)

    def _time_for(self, decisions: int) -> float:
        return self.patience + (self.limit * decisions if decisions else 0.0)  # inf * 0 is nan

    def _call(
        self, index: int, row: int, decisions: int, method: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Call one agent within its time; charge it for what it takes."""
        start = time.perf_counter()
        bank = self._time_for(self.decisions[index]) - self.seconds[index]
        at_once = self._time_for(decisions)
        most = min(bank, at_once)
        agent: Any = self.agents[index]
        ends_itself = hasattr(agent, "deadline")  # an alarm could leave its process behind
        if ends_itself:
            agent.deadline = start + most
        result = None
        try:
            self._deadline = None if ends_itself else start + most
            result = method(*arguments)
            self._deadline = None
        except TooLongError:
            pass  # the time taken says so
        except Exception as error:
            self._deadline = None
            reason = f"raised {type(error).__name__}: {error}"
            if isinstance(error, FailureError):
                reason = str(error)
            raise AgentError(self.names[index], reason, row) from error
        took = time.perf_counter() - start
        self.seconds[index] += took
        if took > most:
            spent, count = self.seconds[index], self.decisions[index]
            if at_once < bank:
                spent, count = took, decisions
            reason = (
                f"expected at most {self.limit:g} s per decision, and {self.patience:g} s beside; "
                f"got {spent:.1f} s for {count:,} decisions"
            )
            raise AgentError(self.names[index], reason, row)
        return result


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
    try:
        ids = as_ids(actions, len(rows))
    except FailureError as error:
        raise AgentError(name, str(error), int(rows[0])) from None
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


def as_ids(actions: Any, num_rows: int) -> npt.NDArray[np.int64]:
    """Take an answer for integers, one a row; int64 `[K]`.

    Raises:
        FailureError: it is something else.
    """
    shape = getattr(actions, "shape", None)
    kind = getattr(actions, "dtype", np.dtype(object)).kind
    if shape != (num_rows,) or kind not in "iu":
        got = f"{type(actions).__name__} {actions!r}"[:80]
        raise FailureError(f"expected an array of {num_rows} integers; got {got}")
    ids: npt.NDArray[np.int64] = actions.astype(np.int64, copy=False)
    return ids
