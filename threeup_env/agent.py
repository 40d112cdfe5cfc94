"""What every agent promises: one method, from what a seat may see to an action."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Agent(Protocol):
    """Chooses actions for many games at once, from what a seat may see.

    An agent never gets a game's state. One object may play several seats of
    one game, so it keeps no memory of a game between calls. If it has an attribute `name`,
    it is called so in results.
    """

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row.

        The rows of one call may be of any phase of any game of one table size.

        Args:
            observations: int8 `[B, F]`, laid out as `OBSERVATION_DTYPE`; read only.
            action_masks: bool `[B, A]`, True where legal; each row has a True; read only.

        Returns:
            int64 `[B]`, with `action_masks[row, actions[row]]` True in every row.
        """
        ...


class MemoryAgent(Protocol):
    """Chooses actions for many games at once, from what a seat has seen of its game so far.

    A recurrent policy, or an agent that reads the public events. What it remembers it keeps by
    slot: one seat of one game. One object may play several seats of one game; each is a slot
    of its own, and what one seat knows is not the other's to use.
    """

    def begin(
        self, slots: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], num_players: int
    ) -> None:
        """Get ready for new games; called before the first decision in any of them.

        Args:
            slots: all that it is going to play; int64 `[N]`, 0 to N-1. What it has kept by
                these numbers is of games that are over.
            seats: the seat that each slot plays; int64 `[N]`.
            num_players: seats at each table, S.
        """
        ...

    def act(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        slots: npt.NDArray[np.int64],
        events: Sequence[npt.NDArray[np.int8]],
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row.

        Args:
            observations: as for `Agent.act`.
            action_masks: as for `Agent.act`.
            slots: whose decisions these are, each once; int64 `[B]`.
            events: by row, what the table has seen since the slot's last decision, which comes
                first, or since the deal; int8 `[T, 6]`, the fields of `EVENT_DTYPE` in order, as
                the slot's seat may know them.

        Returns:
            As `Agent.act`.
        """
        ...


def has_memory(agent: object) -> bool:
    """Whether it is a `MemoryAgent`: whether it has a method `begin`."""
    return callable(getattr(agent, "begin", None))


def check_plain(where: str, agent: object) -> None:
    """Refuse an agent with memory where nobody tells it slots and events.

    Raises:
        ValueError: it has memory.
    """
    if has_memory(agent):
        raise ValueError(
            f"{where}: expected agents that choose from the observation alone; "
            f"got {name_of(agent)!r}, which has memory (a method begin)"
        )


def name_of(agent: object) -> str:
    """What an agent, or a function that makes one, is called in results."""
    given = getattr(agent, "name", None) or getattr(agent, "__name__", None)
    return str(given or type(agent).__name__)
