"""Runs in a process of its own: makes one agent after another and asks it what the arena asks.

The arena's side is `isolation`. A message is its length, 8 bytes, and so many more: to the host
a pickle; from it a letter and what `isolation` makes of it, never a pickle, so that a broken
agent can't break who reads its answer.
"""

import os
import pickle
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.arena.referee import as_ids
from threeup_agents.arena.threads import one_blas_thread
from threeup_agents.programs.child import FailureError
from threeup_env.agent import has_memory

LENGTH: Final = 8
DONE: Final = b"D"
"""What was asked is done."""
MEMORY: Final = b"M"
"""The agent is made, and has memory."""
ACTIONS: Final = b"A"
"""Its actions follow, int64."""
FAILURE: Final = b"F"
"""What it did wrong follows, in words."""
_MOST_WORDS: Final = 1000


def serve() -> None:
    """Answer until there are no more questions."""
    # The agent may print and read what it likes: the pipes are not where it would look.
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    host = Host()
    while (question := _read(questions)) is not None:
        answer = host.answer(question)
        answers.write(len(answer).to_bytes(LENGTH, "little") + answer)
        answers.flush()


def _read(questions: BinaryIO) -> bytes | None:
    head = questions.read(LENGTH)
    return questions.read(int.from_bytes(head, "little")) if len(head) == LENGTH else None


class Host:
    """One agent, or none yet."""

    def __init__(self) -> None:
        self._agent: Any = None

    def answer(self, question: bytes) -> bytes:
        """Do what a message asks; whatever the agent raises is an answer too."""
        try:
            method, arguments = pickle.loads(question)
            answer: bytes = getattr(self, method)(*arguments)
        except FailureError as error:
            return FAILURE + str(error)[:_MOST_WORDS].encode()
        except BaseException as error:  # sys.exit of an agent ends no match
            words = f"raised {type(error).__name__}: {error}"
            return FAILURE + words[:_MOST_WORDS].encode(errors="replace")
        return answer

    def make(self, maker: bytes) -> bytes:
        """Make the next agent by a function without arguments, pickled."""
        self._agent = None
        self._agent = pickle.loads(maker)()
        one_blas_thread()  # from here on: the process asks agents for nothing else
        return MEMORY if has_memory(self._agent) else DONE

    def begin(
        self, slots: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], num_players: int
    ) -> bytes:
        """See `MemoryAgent.begin`."""
        self._agent.begin(slots, seats, num_players)
        return DONE

    def act(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        *told: npt.NDArray[Any],
    ) -> bytes:
        """See `Agent.act` and `MemoryAgent.act`.

        Args:
            observations: int8 `[K, F]`.
            action_masks: bool `[K, A]`.
            told: for an agent with memory: slots, int64 `[K]`; the events of all rows one
                after the other, int8 `[T, 6]`; where each row's end but the last, int64 `[K - 1]`.
        """
        if told:
            slots, events, ends = told
            told = (slots, np.split(events, ends))  # type: ignore[assignment]
        actions = self._agent.act(observations, action_masks, *told)
        return ACTIONS + as_ids(actions, len(observations)).tobytes()
