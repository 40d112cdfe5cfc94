"""What everybody saw, action by action: the public log of a batch's games (R22)."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import ACTION_NAMES, FLIP, PICK_UP
from threeup_env.engine.cards import RANK_NAMES
from threeup_env.engine.compiled import compiled, compiled_part
from threeup_env.engine.rules import apply_action
from threeup_env.engine.state import STATE_DTYPE, Record

HIDDEN: Final = -1
"""`action` of another seat's lay until all have laid (R5)."""
HIDDEN_NAME: Final = "lay ?"
"""Its name in `event_columns`."""
NOTHING: Final = -1
"""`turned` of an action that turns no card over."""

EVENT_DTYPE: Final = np.dtype(
    (
        np.record,
        [
            ("seat", np.int8),  # who acted
            ("action", np.int8),  # its id, or HIDDEN
            ("turned", np.int8),  # rank turned over by a flip (R18), else NOTHING
            ("drawn", np.int8),  # cards drawn, by the action or at the turn's end (R12, R15)
            ("picked_up", np.int8),  # cards taken into hand, a turned one included (R14, R18)
            ("cleared", np.int8),  # 1 if the pile left play, an empty one too (R9, R10)
        ],
    )
)
"""One action as the table saw it."""
EVENT_SIZE: Final = EVENT_DTYPE.itemsize
NO_EVENT: Final = -1
"""Every field of a row that stands for no event, see `EventLog.last`."""


class EventLog:
    """The events of each row's game; a row starts anew with the first action after a deal.

    Args:
        num_games: rows, B.
    """

    def __init__(self, num_games: int) -> None:
        self._events: npt.NDArray[Any] = np.zeros((num_games, 64), EVENT_DTYPE)
        self.counts = np.zeros(num_games, np.int64)
        """Events of each row's game so far; int64 `[B]`, read only."""
        self._laying = np.zeros(num_games, np.bool_)  # not all seats have laid
        self._scratch: npt.NDArray[Any] = np.zeros(1, STATE_DTYPE)

    def forget(self, rows: npt.NDArray[np.int64]) -> None:
        """Drop what has been seen in these rows."""
        self.counts[rows] = 0

    def write(
        self,
        states: npt.NDArray[Any],
        rows: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
    ) -> None:
        """Note one legal action a row, before it is taken; `states` is left as it is."""
        size = self._events.shape[1]
        if self.counts.max() == size:
            self._events = np.concatenate([self._events, np.zeros_like(self._events)], axis=1)
        write_events(states, rows, actions, self._scratch, self._events, self.counts, self._laying)

    def known_to(self, row: int, seat: int) -> npt.NDArray[Any]:
        """One game's events as a seat may know them; `EVENT_DTYPE` `[T]`, a new array."""
        events: npt.NDArray[Any] = self._events[row, : self.counts[row]].copy()
        if self._laying[row]:
            events["action"][events["seat"] != seat] = HIDDEN
        return events

    def last(self, seats: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int8]:
        """The latest events of every game, each as one of its seats may know them.

        Args:
            seats: one a game; int64 `[B]`.
            size: events a game, K.

        Returns:
            int8 `[B, K, 6]`, the fields of `EVENT_DTYPE` in order, the oldest event first; where
            a game has had fewer the first rows are NO_EVENT throughout.
        """
        numbers = self.counts[:, None] + np.arange(-size, 0)
        found = np.take_along_axis(self._events, np.maximum(numbers, 0), axis=1)
        hidden = self._laying[:, None] & (found["seat"] != seats[:, None])
        found["action"][hidden] = HIDDEN
        rows = event_rows(found)
        rows[numbers < 0] = NO_EVENT
        return rows


@compiled
def write_events(
    states: npt.NDArray[np.void],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
    scratch: npt.NDArray[np.void],
    events: npt.NDArray[np.void],
    counts: npt.NDArray[np.int64],
    laying: npt.NDArray[np.bool_],
) -> None:
    """Append one event a row: what its action is going to do.

    Args:
        states: `[B]`, before the actions; read only.
        rows: int64 `[K]`.
        actions: legal ones; int64 `[K]`.
        scratch: one record; overwritten.
        events: `EVENT_DTYPE` `[B, T]`, with room.
        counts: events of each row; int64 `[B]`.
        laying: overwritten: some seat has still to lay after the action; bool `[B]`.
    """
    after = scratch[0]
    for i in range(len(rows)):
        row = rows[i]
        before = states[row]
        scratch[0] = before
        apply_action(after, actions[i])
        count = counts[row] if before.steps > 0 else 0
        write_event(before, after, actions[i], events[row, count])
        counts[row] = count + 1
        laying[row] = after.laying > 0


@compiled_part
def write_event(before: Record, after: Record, action: int, event: Record) -> None:
    """Write what the table sees when `action` makes `after` of `before`."""
    seat = before.seat
    event.seat = seat
    event.action = action
    event.turned = NOTHING
    event.picked_up = 0
    if action == FLIP:
        event.turned = before.face_down[seat, before.face_down_size[seat] - 1]
    if action in (FLIP, PICK_UP):  # neither draws (R14, R16)
        event.picked_up = after.hand_size[seat] - before.hand_size[seat]
    event.drawn = before.draw_pile_size - after.draw_pile_size
    event.cleared = 0
    for rank in range(len(before.out_of_play)):
        if after.out_of_play[rank] != before.out_of_play[rank]:
            event.cleared = 1


def event_rows(events: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Put the fields of events side by side, in the order of `EVENT_DTYPE`; int8 `[..., 6]`."""
    return np.stack([events[name] for name in EVENT_DTYPE.names or ()], axis=-1)


def event_columns(events: npt.NDArray[Any]) -> dict[str, list[Any]]:
    """Put events into columns with names, e.g. for `pandas.DataFrame`.

    Args:
        events: of `Batch.events`; `EVENT_DTYPE` `[T]`.

    Returns:
        A list of T entries for each field; `turned` is None where no card was turned over.

    Example:
        >>> from threeup_env.engine.batch import Batch
        >>> batch = Batch(num_games=1, history=True)
        >>> batch.reset()
        >>> batch.step(batch.action_masks.argmax(axis=1))
        >>> event_columns(batch.events(row=0, seat=1))["action"]
        ['lay ?']
    """
    columns: dict[str, list[Any]] = {
        name: events[name].tolist() for name in EVENT_DTYPE.names or ()
    }
    columns["action"] = [
        HIDDEN_NAME if action == HIDDEN else ACTION_NAMES[action] for action in columns["action"]
    ]
    columns["turned"] = [
        None if rank == NOTHING else RANK_NAMES[rank] for rank in columns["turned"]
    ]
    return columns
