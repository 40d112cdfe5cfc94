"""What an agent with memory is told beside what it sees: its slots, and the events between."""

from typing import Any

import numpy as np
import numpy.typing as npt

from threeup_env.engine.batch import Batch
from threeup_env.engine.events import EventLog


class Slots:
    """The seats that one agent plays in the games of a block, numbered game by game.

    Args:
        batch: just dealt.
        log: the batch's.
        played: True where the agent sits; bool `[B, S]`.
    """

    def __init__(self, batch: Batch, log: EventLog, played: npt.NDArray[np.bool_]) -> None:
        self._batch = batch
        self._log = log
        self.seats: npt.NDArray[np.int64] = np.nonzero(played)[1]
        """The seat of each slot; int64 `[N]`."""
        self.numbers: npt.NDArray[np.int64] = np.arange(len(self.seats))
        """All slots; int64 `[N]`."""
        self._slot_at = np.full(played.shape, -1)
        self._slot_at[played] = self.numbers
        self._told = np.zeros(len(self.seats), np.int64)  # events before its last decision

    def tell(
        self, rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int8]]]:
        """The slots to act in these games, and what each has not been told yet.

        Returns:
            int64 `[K]`, and K arrays int8 `[T, 6]`; see `MemoryAgent.act`.
        """
        acting = self._batch.seats
        slots = self._slot_at[rows, acting[rows]]
        counts = self._log.counts[rows]
        new = counts - self._told[slots]
        self._told[slots] = counts
        size = int(new.max())
        latest: npt.NDArray[Any] = self._log.last(acting, size)[rows]
        events = [seen[size - count :] for seen, count in zip(latest, new.tolist(), strict=True)]
        return slots, events
