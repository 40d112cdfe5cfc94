"""What every agent promises: one method, from what a seat may see to an action."""

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


def name_of(agent: object) -> str:
    """What an agent, or a function that makes one, is called in results."""
    given = getattr(agent, "name", None) or getattr(agent, "__name__", None)
    return str(given or type(agent).__name__)
