"""The table of actions: one numbering for all variants and table sizes."""

from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import CLEAR_1, MAX_COPIES, NUM_RANKS, RANK_NAMES
from threeup_env.engine.compiled import compiled


def _copies_played(rank: int) -> int:
    """The most copies in one discard: Clear +1 and Clear +2 go one at a time (R8)."""
    return 1 if rank >= CLEAR_1 else MAX_COPIES[rank]


_PLAYS: Final = [
    (rank, copies) for rank in range(NUM_RANKS) for copies in range(1, _copies_played(rank) + 1)
]

FIRST_PLAY: Final = NUM_RANKS
"""Ids below it lay the rank of that id (R5)."""
DRAW: Final = FIRST_PLAY + len(_PLAYS)
FLIP: Final = DRAW + 1
PICK_UP: Final = FLIP + 1
NUM_ACTIONS: Final = PICK_UP + 1

ACTION_NAMES: Final = (
    *(f"lay {name}" for name in RANK_NAMES),
    *(f"play {RANK_NAMES[rank]}" + (f" x{n}" if n > 1 else "") for rank, n in _PLAYS),
    "draw",
    "flip",
    "pick up",
)
"""Name of each action, `[A]`; an action id is an index into it."""

# Tables for compiled code. A lay's rank and copies stand here too.
ACTION_RANK: Final = np.array([*range(NUM_RANKS), *(r for r, _ in _PLAYS), -1, -1, -1], np.int8)
ACTION_COPIES: Final = np.array([*[1] * NUM_RANKS, *(n for _, n in _PLAYS), 0, 0, 0], np.int8)
PLAY_ONE: Final = np.array([FIRST_PLAY + _PLAYS.index((r, 1)) for r in range(NUM_RANKS)], np.int64)
"""Id of playing one copy of each rank, `[R]`; k copies are k - 1 ids further on."""
MAX_PLAYED: Final = np.array([_copies_played(rank) for rank in range(NUM_RANKS)], np.int8)
"""The most copies of each rank in one discard, `[R]` (R8)."""

_IDS: Final = {name: action for action, name in enumerate(ACTION_NAMES)}


class IllegalActionError(ValueError):
    """An action that the rules do not allow in this position; nothing has changed."""


def action_id(name: str) -> int:
    """The id of an action by its name, the inverse of `ACTION_NAMES`.

    Raises:
        ValueError: no action has that name.

    Example:
        >>> action_id("play 7 x2"), ACTION_NAMES[action_id("draw")]
        (56, 'draw')
    """
    if name not in _IDS:
        raise ValueError(
            "action name: expected e.g. 'lay 7', 'play 7 x2', 'play C+1', 'draw', 'flip' or "
            f"'pick up'; got {name!r}"
        )
    return _IDS[name]


def check_actions(
    actions: npt.NDArray[np.int64],
    games: npt.NDArray[np.int64],
    seats: npt.NDArray[np.int64],
    action_masks: npt.NDArray[np.bool_],
) -> None:
    """Check one action a game against the masks.

    Args:
        actions: int64 `[K]`.
        games: the games' numbers, for the message; int64 `[K]`.
        seats: the seats to act; int64 `[K]`.
        action_masks: bool `[K, A]`.

    Raises:
        IllegalActionError: names the first offending game, its seat and what would be legal.
    """
    known = (actions >= 0) & (actions < NUM_ACTIONS)
    legal = known & action_masks[np.arange(len(actions)), np.where(known, actions, 0)]
    if legal.all():
        return
    row = int(np.argmin(legal))
    action = int(actions[row])
    choices = ", ".join(f"{a} {ACTION_NAMES[a]!r}" for a in np.flatnonzero(action_masks[row]))
    name = f"{ACTION_NAMES[action]!r}" if known[row] else f"(ids are 0..{NUM_ACTIONS - 1})"
    raise IllegalActionError(
        f"game {games[row]}, seat {seats[row]}: expected one of {choices}; got {action} {name}"
    )


@compiled
def first_empty(masks: npt.NDArray[np.bool_]) -> int:
    """The first row of bool `[B, A]` that allows nothing; -1 if there is none."""
    for row in range(len(masks)):
        action = 0
        while action < NUM_ACTIONS and not masks[row, action]:
            action += 1
        if action == NUM_ACTIONS:
            return row
    return -1
