"""What a seat may know (R22), as one flat int8 vector.

The dtype is the layout, the documentation and the decoder: a table block, then one
block a seat, the observer's first and then clockwise. A game of n seats uses a prefix
of the six-seat vector.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import (
    MAX_COPIES,
    MAX_DRAW_PILE,
    MAX_FACE_DOWN,
    MAX_HAND,
    MAX_SEATS,
    MIN_SEATS,
    NUM_RANKS,
    VARIANT_COPIES,
    VARIANT_DECK_SIZE,
    VARIANT_HAND_SIZE,
    VARIANT_NAMES,
    VARIANT_NUM_FACE_UP,
)
from threeup_env.engine.compiled import compiled
from threeup_env.engine.state import EMPTY, Record

MANY_STEPS: Final = 127
"""`steps_left` when the step limit is at least that far away."""
MAX_OWED: Final = 3
"""The most extra discards owed: a Clear +2 as the first of another's two (R13)."""

TABLE_DTYPE: Final = np.dtype(
    [
        ("variant", np.int8),  # index into VARIANT_NAMES
        ("seat", np.int8),  # the observer's seat
        ("laying", np.int8),  # cards that the seat to act still has to lay; 0 in play (R5)
        ("owed", np.int8),  # extra discards owed (R13)
        ("may_draw", np.int8),  # 1 exactly when `draw` is legal (R12)
        ("steps_left", np.int8),  # actions before the cut-off (R21); 127 means that or more
        ("draw_pile_size", np.int8),  # cards in the draw pile
        ("top", np.int8, NUM_RANKS),  # one-hot; all zero on an empty pile
        ("pile", np.int8, NUM_RANKS),  # copies of each rank in the discard pile
        ("out_of_play", np.int8, NUM_RANKS),  # copies that have left play
        ("unseen", np.int8, NUM_RANKS),  # copies whose place the observer doesn't know
        ("exposed", np.int8, NUM_RANKS),  # of the observer's hand, what the others know
    ]
)
SEAT_DTYPE: Final = np.dtype(
    [
        ("acting", np.int8),  # 1 if it is this seat's decision
        ("hand_size", np.int8),  # cards in hand
        ("face_down_size", np.int8),  # cards face down
        ("hand", np.int8, NUM_RANKS),  # copies known to be in hand (the observer's: all of it)
        ("face_up", np.int8, NUM_RANKS),  # copies face up; others' are zero while laying
        ("bounds", np.int8, MAX_HAND),  # of its other cards, for all to infer; 13 says nothing
    ]
)


def observation_dtype(num_players: int) -> np.dtype[np.void]:
    """The layout for one table size: the table's fields, then `seats`, one record a seat."""
    fields = [(name, TABLE_DTYPE[name]) for name in TABLE_DTYPE.names or ()]
    return np.dtype([*fields, ("seats", SEAT_DTYPE, (num_players,))])


OBSERVATION_DTYPE: Final = observation_dtype(MAX_SEATS)
"""The full layout; smaller tables use a prefix of it."""
TABLE_SIZE: Final = TABLE_DTYPE.itemsize
SEAT_SIZE: Final = SEAT_DTYPE.itemsize


def observation_size(num_players: int) -> int:
    """Features of one observation, F."""
    return TABLE_SIZE + SEAT_SIZE * num_players


@lru_cache
def observation_fields(num_players: int) -> Mapping[str, slice]:
    """Name each part of the flat vector.

    Returns:
        Field name -> slice: the table's fields by name, the fields of the i-th seat
        block as e.g. `hand[i]`, with 0 for the observer.

    Example:
        >>> observation_fields(2)["draw_pile_size"], observation_fields(2)["acting[1]"]
        (slice(6, 7, None), slice(104, 105, None))
    """
    parts = {}
    for block, dtype, start in (
        ("", TABLE_DTYPE, 0),
        *((f"[{i}]", SEAT_DTYPE, TABLE_SIZE + SEAT_SIZE * i) for i in range(num_players)),
    ):
        for name in dtype.names or ():
            field, offset = dtype.fields[name][:2]  # type: ignore[index]
            parts[name + block] = slice(start + offset, start + offset + field.itemsize)
    return MappingProxyType(parts)


def observation_bounds(num_players: int) -> npt.NDArray[np.int8]:
    """The highest value of each feature over all variants, for `Box` and for scaling; int8 `[F]`.

    The lowest is 0 everywhere.
    """
    high: dict[str, Any] = {
        "variant": len(VARIANT_NAMES) - 1,
        "seat": num_players - 1,
        "laying": VARIANT_NUM_FACE_UP.max(),
        "owed": MAX_OWED,
        "may_draw": 1,
        "steps_left": MANY_STEPS,
        "draw_pile_size": MAX_DRAW_PILE,
        "top": 1,
        "acting": 1,
        "hand_size": VARIANT_DECK_SIZE.max(),
        "face_down_size": MAX_FACE_DOWN,
        "bounds": NUM_RANKS,
    }
    bounds = np.empty(observation_size(num_players), np.int8)
    for name, part in observation_fields(num_players).items():
        bounds[part] = high.get(name.partition("[")[0], MAX_COPIES)
    return bounds


# Offsets for compiled code, read off the dtypes above.
def _offset(dtype: np.dtype[np.void], name: str) -> int:
    return int(dtype.fields[name][1])  # type: ignore[index]


VARIANT: Final = _offset(TABLE_DTYPE, "variant")
SEAT: Final = _offset(TABLE_DTYPE, "seat")
LAYING: Final = _offset(TABLE_DTYPE, "laying")
OWED: Final = _offset(TABLE_DTYPE, "owed")
MAY_DRAW: Final = _offset(TABLE_DTYPE, "may_draw")
STEPS_LEFT: Final = _offset(TABLE_DTYPE, "steps_left")
DRAW_PILE_SIZE: Final = _offset(TABLE_DTYPE, "draw_pile_size")
TOP: Final = _offset(TABLE_DTYPE, "top")
PILE: Final = _offset(TABLE_DTYPE, "pile")
OUT_OF_PLAY: Final = _offset(TABLE_DTYPE, "out_of_play")
UNSEEN: Final = _offset(TABLE_DTYPE, "unseen")
EXPOSED: Final = _offset(TABLE_DTYPE, "exposed")
# Within a seat block; add TABLE_SIZE + SEAT_SIZE * i.
ACTING: Final = _offset(SEAT_DTYPE, "acting")
HAND_SIZE: Final = _offset(SEAT_DTYPE, "hand_size")
FACE_DOWN_SIZE: Final = _offset(SEAT_DTYPE, "face_down_size")
HAND: Final = _offset(SEAT_DTYPE, "hand")
FACE_UP: Final = _offset(SEAT_DTYPE, "face_up")
BOUNDS: Final = _offset(SEAT_DTYPE, "bounds")


@compiled
def write_observation(game: Record, observer: int, vector: npt.NDArray[np.int8]) -> None:
    """Write what `observer` may know (R22), whoever is to act.

    Args:
        game: read only.
        observer: a seat.
        vector: int8 `[F]`; overwritten.
    """
    _write_table(game, observer, vector)
    running = game.winner == EMPTY
    unseen = vector[UNSEEN : UNSEEN + NUM_RANKS]
    for i in range(game.num_seats):
        seat = observer + i
        if seat >= game.num_seats:
            seat -= game.num_seats
        start = TABLE_SIZE + SEAT_SIZE * i
        block = vector[start : start + SEAT_SIZE]
        known = game.known[seat]
        block[ACTING] = running and seat == game.seat
        block[HAND_SIZE] = game.hand_size[seat]
        block[FACE_DOWN_SIZE] = game.face_down_size[seat]
        if i > 0:
            # What the others have laid is hidden until all have laid (R5).
            shown = np.int8(game.laying == 0)
            face_up = game.face_up[seat]
            for rank in range(NUM_RANKS):
                block[HAND + rank] = known[rank]
                block[FACE_UP + rank] = face_up[rank] * shown
                unseen[rank] -= known[rank] + face_up[rank] * shown
        _write_bounds(game, seat, block)


@compiled
def _write_table(game: Record, observer: int, vector: npt.NDArray[np.int8]) -> None:
    """Write the table's fields, and the observer's own cards."""
    vector[VARIANT] = game.variant
    vector[SEAT] = observer
    vector[LAYING] = game.laying
    vector[OWED] = game.owed
    vector[MAY_DRAW] = game.may_draw
    vector[STEPS_LEFT] = min(game.max_steps - game.steps, MANY_STEPS)
    vector[DRAW_PILE_SIZE] = game.draw_pile_size
    copies = VARIANT_COPIES[game.variant]
    pile = game.pile
    out = game.out_of_play
    hand = game.hand[observer]
    face_up = game.face_up[observer]
    exposed = game.known[observer]
    for rank in range(NUM_RANKS):
        vector[TOP + rank] = rank == game.top
        vector[PILE + rank] = pile[rank]
        vector[OUT_OF_PLAY + rank] = out[rank]
        vector[EXPOSED + rank] = exposed[rank]
        vector[TABLE_SIZE + HAND + rank] = hand[rank]
        vector[TABLE_SIZE + FACE_UP + rank] = face_up[rank]
        elsewhere = pile[rank] + out[rank] + hand[rank] + face_up[rank]
        vector[UNSEEN + rank] = copies[rank] - elsewhere


@compiled
def _write_bounds(game: Record, seat: int, block: npt.NDArray[np.int8]) -> None:
    """Write what binds the cards of a seat that others don't know."""
    known = game.known[seat]
    bounds = game.bounds[seat]
    unknown = int(game.hand_size[seat])
    for rank in range(NUM_RANKS):
        unknown -= known[rank]
    if unknown > VARIANT_HAND_SIZE[game.variant]:  # it is still to lay
        unknown = 0
    for k in range(MAX_HAND):
        bound = bounds[k]
        block[BOUNDS + k] = 0 if k >= unknown else bound if bound > 0 else NUM_RANKS


def decode(observations: npt.NDArray[np.int8]) -> npt.NDArray[np.void]:
    """See flat observations as records with named fields: the same memory, no copy.

    Args:
        observations: int8 `[..., F]`, each vector contiguous.

    Returns:
        `observation_dtype(n)` records `[...]`, with n the table size that F belongs to.

    Raises:
        TypeError: another dtype, whose bytes would decode to nonsense.
        ValueError: F belongs to no table size.

    Example:
        >>> decode(np.zeros((4, observation_size(3)), np.int8))["seats"]["hand"].shape
        (4, 3, 13)
    """
    if observations.dtype != np.int8:
        raise TypeError(f"observation: expected int8; got {observations.dtype}")
    dtype = observation_dtype(num_players_of(observations))
    return observations.view(dtype)[..., 0]


def num_players_of(observations: npt.NDArray[np.int8]) -> int:
    """The table size that the vectors' length belongs to.

    Raises:
        ValueError: it belongs to none.
    """
    size = observations.shape[-1]
    for num_players in range(MIN_SEATS, MAX_SEATS + 1):
        if observation_size(num_players) == size:
            return num_players
    sizes = ", ".join(str(observation_size(n)) for n in range(MIN_SEATS, MAX_SEATS + 1))
    raise ValueError(f"observation: expected one of {sizes} features; got {size}")
