"""What comes from outside: records, observations and masks, each refused by the field that is off.

Compiled code trusts what it is given, so these stand at every border.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import NUM_ACTIONS, first_empty
from threeup_env.engine.cards import (
    CLEAR,
    MAX_HAND,
    MAX_SEATS,
    NUM_RANKS,
    VARIANT_COPIES,
    VARIANT_HAND_SIZE,
    VARIANT_NAMES,
    VARIANT_NUM_FACE_DOWN,
    VARIANT_NUM_FACE_UP,
    VARIANTS,
)
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import (
    ACTING,
    BOUNDS,
    DRAW_PILE_SIZE,
    EXPOSED,
    FACE_DOWN_SIZE,
    FACE_UP,
    HAND,
    HAND_SIZE,
    LAYING,
    MAX_OWED,
    OUT_OF_PLAY,
    PILE,
    SEAT_SIZE,
    TABLE_SIZE,
    TOP,
    UNSEEN,
    VARIANT,
    num_players_of,
    observation_bounds,
    observation_fields,
)
from threeup_env.engine.rules import CLEARING_RUN
from threeup_env.engine.state import CUT_OFF, EMPTY, STATE_DTYPE, Record

_SOUND: Final = -1
_MAX_PLAYERS: Final = np.array([variant.max_players for variant in VARIANTS.values()], np.int8)


def checked_masks(action_masks: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Give masks of any dtype of 0 and 1 as bool `[B, A]`, one that compiled code takes.

    The same array if it is one already; what is read only is copied, since for that numba
    would compile everything once more.

    Raises:
        ValueError: another shape, another value, or a row that allows nothing.
    """
    given = np.asarray(action_masks)
    if given.ndim != 2 or given.shape[1] != NUM_ACTIONS or given.dtype.kind not in "biuf":
        raise ValueError(
            f"action_masks: expected 0 and 1, [B, {NUM_ACTIONS}]; "
            f"got {given.dtype} of shape {given.shape}"
        )
    masks: npt.NDArray[np.bool_] = np.require(given, np.bool_, ("C", "W"))
    if given.dtype != np.bool_ and (masks != given).any():
        raise ValueError(f"action_masks: expected 0 and 1; got {given[masks != given][0]!r}")
    if (row := first_empty(masks)) != _SOUND:
        raise ValueError(f"action_masks: expected a legal action in each row; row {row} has none")
    return masks


def checked_observations(observations: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Give observations as int8 `[B, F]` that compiled code takes; see `checked_masks`.

    Raises:
        ValueError: another shape or dtype, or what no seat of any game can see: a value out of
            its range, cards that don't add up; names row and field.
    """
    given = np.asarray(observations)
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise ValueError(
            f"observations: expected int8 [B, F]; got {given.dtype} of shape {given.shape}"
        )
    high = observation_bounds(num_players_of(given))
    vectors = np.require(given, np.int8, ("C", "W"))
    if given.dtype != np.int8 and (vectors != given).any():
        raise ValueError("observations: expected numbers that int8 can hold")
    row, place = first_fault(vectors, high)
    if row != _SOUND:
        fields = observation_fields(num_players_of(vectors))
        name, span = next((name, span) for name, span in fields.items() if place < span.stop)
        raise ValueError(
            f"observations: expected in row {row} a possible {name}; "
            f"got {vectors[row, span].tolist()}"
        )
    return vectors


@compiled
def first_fault(vectors: npt.NDArray[np.int8], high: npt.NDArray[np.int8]) -> tuple[int, int]:
    """The first row that no game can show, and a place in it that is off; -1 if all are sound."""
    for row in range(len(vectors)):
        for place in range(vectors.shape[1]):
            if vectors[row, place] < 0 or vectors[row, place] > high[place]:
                return row, place
        place = table_fault(vectors[row])
        if place == _SOUND:
            place = seats_fault(vectors[row])
        if place != _SOUND:
            return row, place
    return _SOUND, _SOUND


@compiled
def table_fault(vector: npt.NDArray[np.int8]) -> int:
    """A place of the table block that is off, or -1; values are within their ranges."""
    variant = vector[VARIANT]
    num_seats = (len(vector) - TABLE_SIZE) // SEAT_SIZE
    if num_seats > _MAX_PLAYERS[variant]:
        return VARIANT
    highest = -1
    for rank in range(NUM_RANKS):
        placed = vector[PILE + rank] + vector[OUT_OF_PLAY + rank] + vector[UNSEEN + rank]
        for i in range(num_seats):
            block = TABLE_SIZE + SEAT_SIZE * i
            placed += vector[block + HAND + rank] + vector[block + FACE_UP + rank]
        if placed != VARIANT_COPIES[variant, rank]:
            return UNSEEN
        if vector[PILE + rank] > 0:
            highest = rank
            if rank >= CLEAR or vector[PILE + rank] >= CLEARING_RUN:
                return PILE + rank
        exposed = vector[EXPOSED + rank]
        if exposed > vector[TABLE_SIZE + HAND + rank] or (exposed > 0 and vector[LAYING] > 0):
            return EXPOSED + rank
    for rank in range(NUM_RANKS):
        if vector[TOP + rank] != (rank == highest):
            return TOP
    return _SOUND


@compiled
def seats_fault(vector: npt.NDArray[np.int8]) -> int:
    """A place of the seats' blocks that is off, or -1; the table block is sound."""
    variant = vector[VARIANT]
    num_seats = (len(vector) - TABLE_SIZE) // SEAT_SIZE
    hidden = int(vector[DRAW_PILE_SIZE])
    acting = 0
    for i in range(num_seats):
        block = TABLE_SIZE + SEAT_SIZE * i
        acting += vector[block + ACTING]
        known = 0
        face_up = 0
        exposed = 0
        for rank in range(NUM_RANKS):
            known += vector[block + HAND + rank]
            face_up += vector[block + FACE_UP + rank]
            exposed += vector[EXPOSED + rank]
        size = int(vector[block + HAND_SIZE])
        if known > size or (i == 0 and known != size):
            return block + HAND
        if face_up > VARIANT_NUM_FACE_UP[variant]:
            return block + FACE_UP
        if vector[block + FACE_DOWN_SIZE] > VARIANT_NUM_FACE_DOWN[variant]:
            return block + FACE_DOWN_SIZE
        hidden += size - known + vector[block + FACE_DOWN_SIZE]
        if vector[LAYING] > 0:
            if i > 0 and known > 0:
                return block + HAND
            laid = VARIANT_HAND_SIZE[variant] + VARIANT_NUM_FACE_UP[variant] - size
            if laid < face_up or laid > VARIANT_NUM_FACE_UP[variant]:
                return block + HAND_SIZE
            hidden += laid - face_up
        if not bounds_are_sorted(vector, block, size - (exposed if i == 0 else known)):
            return block + BOUNDS
    for rank in range(NUM_RANKS):
        hidden -= vector[UNSEEN + rank]
    if hidden != 0:
        return DRAW_PILE_SIZE
    return TABLE_SIZE + ACTING if acting > 1 else bounds_fault(vector, num_seats)


@compiled
def bounds_are_sorted(vector: npt.NDArray[np.int8], block: int, unknown: int) -> bool:
    """Tell whether a seat has a bound for each unknown card, or, while laying, none."""
    count = 0
    for i in range(MAX_HAND):
        bound = vector[block + BOUNDS + i]
        if bound > 0:
            if count < i or (i > 0 and bound < vector[block + BOUNDS + i - 1]):
                return False
            count += 1
    return count == unknown or (count == 0 and vector[LAYING] > 0)


@compiled
def bounds_fault(vector: npt.NDArray[np.int8], num_seats: int) -> int:
    """A place of a bound that too few unseen cards lie below, or -1."""
    below = 0
    for bound in range(1, NUM_RANKS):
        below += vector[UNSEEN + bound - 1]
        held = 0
        place = _SOUND
        for i in range(1, num_seats):
            for k in range(MAX_HAND):
                at = TABLE_SIZE + SEAT_SIZE * i + BOUNDS + k
                if 0 < vector[at] <= bound:
                    held += 1
                    place = at
        if held > below:
            return place
    return _SOUND


def check_states(states: npt.NDArray[Any]) -> None:
    """Check records that come from outside.

    Args:
        states: `STATE_DTYPE` `[B]`; read only.

    Raises:
        ValueError: another dtype, or what no game can be: a value out of its range, sizes or
            cards that don't add up; names game and field.
    """
    if states.dtype != STATE_DTYPE or states.ndim != 1:
        raise ValueError(
            f"states: expected STATE_DTYPE records [B]; got {states.dtype.name} of shape "
            f"{states.shape}"
        )
    for name, wrong in _range_faults(states):
        _refuse(states, name, wrong)
    for name, wrong in _sum_faults(states):
        _refuse(states, name, wrong)


def _refuse(states: npt.NDArray[Any], name: str, wrong: npt.NDArray[np.bool_]) -> None:
    if wrong.any():
        game = int(wrong.argmax())
        raise ValueError(
            f"states: expected in game {game} a possible {name}; got {states[name][game].tolist()}"
        )


def _outside(values: npt.NDArray[Any], low: Any, high: Any) -> npt.NDArray[np.bool_]:
    """Which games have a value below `low` or above `high`; bool `[B]`."""
    off = (values < low) | (values > high)
    wrong: npt.NDArray[np.bool_] = off.reshape(len(values), -1).any(axis=1)
    return wrong


def _range_faults(states: npt.NDArray[Any]) -> Any:
    """Name each field of small range and the games in which it is out of it, one by one."""
    yield "variant", _outside(states["variant"], 0, len(VARIANT_NAMES) - 1)
    variant, seats = states["variant"], states["num_seats"]
    yield "num_seats", _outside(seats, 2, _MAX_PLAYERS[variant])
    yield "max_steps", states["max_steps"] < (states["winner"] == EMPTY)
    yield "steps", _outside(states["steps"], 0, states["max_steps"])
    yield "seat", _outside(states["seat"], 0, seats - 1)
    yield "laying", _outside(states["laying"], 0, VARIANT_NUM_FACE_UP[variant])
    yield "owed", _outside(states["owed"], 0, MAX_OWED)
    yield "may_draw", _outside(states["may_draw"], 0, 1)
    yield "winner", _outside(states["winner"], CUT_OFF, seats - 1)
    yield "top", _outside(states["top"], EMPTY, CLEAR - 1)
    yield "pile", _outside(states["pile"], 0, CLEARING_RUN - 1)
    copies = VARIANT_COPIES[variant]
    yield "out_of_play", _outside(states["out_of_play"], 0, copies)
    for name in ("hand", "face_up", "known"):
        yield name, _outside(states[name], 0, copies[:, None])
    yield "bounds", _outside(states["bounds"], 0, NUM_RANKS - 1)
    yield "face_down", _outside(states["face_down"], 0, NUM_RANKS - 1)
    yield "draw_pile", _outside(states["draw_pile"], 0, NUM_RANKS - 1)
    most = VARIANT_NUM_FACE_DOWN[variant][:, None]
    yield "face_down_size", _outside(states["face_down_size"], 0, most)
    yield "face_up_size", _outside(states["face_up_size"], 0, VARIANT_NUM_FACE_UP[variant][:, None])
    yield "draw_pile_size", _outside(states["draw_pile_size"], 0, states["draw_pile"].shape[1])


def _sum_faults(states: npt.NDArray[Any]) -> Any:
    """Name each field that must agree with others and the games in which it doesn't."""
    present = np.arange(states["hand"].shape[1]) < states["num_seats"][:, None]
    for name in ("hand", "face_up"):
        counted = states[name].sum(axis=2, dtype=np.int64)
        off = (counted != states[f"{name}_size"]) | ((counted > 0) & ~present)
        yield f"{name}_size", off.any(axis=1)
    laying = states["laying"] > 0  # nothing has been played or picked up yet
    yield "known", (states["known"] > states["hand"] * ~laying[:, None, None]).any(axis=(1, 2))
    yield "pile", states["pile"].any(axis=1) & laying
    yield "out_of_play", states["out_of_play"].any(axis=1) & laying
    for name in ("owed", "may_draw"):
        yield name, (states[name] > 0) & laying
    yield "face_down_size", ((states["face_down_size"] > 0) & ~present).any(axis=1)
    cards = states["pile"].astype(np.int64) + states["out_of_play"]
    cards += states["hand"].sum(axis=1, dtype=np.int64)
    cards += states["face_up"].sum(axis=1, dtype=np.int64)
    for name in ("face_down", "draw_pile"):
        sizes = states[f"{name}_size"][..., None]
        filled = np.arange(states[name].shape[-1]) < sizes
        yield name, ((states[name] > 0) & ~filled).reshape(len(states), -1).any(axis=1)
        for rank in range(NUM_RANKS):
            hits = (states[name] == rank) & filled
            cards[:, rank] += hits.reshape(len(states), -1).sum(axis=1)
    yield "draw_pile", (cards != VARIANT_COPIES[states["variant"]]).any(axis=1)
    ranks = np.arange(NUM_RANKS)
    highest = np.where(states["pile"] > 0, ranks, EMPTY).max(axis=1)
    yield "top", states["top"] != highest
    hold = np.empty(len(states), np.bool_)
    _bounds_hold(states, hold)
    yield "bounds", ~hold


@compiled
def _bounds_hold(states: npt.NDArray[np.void], hold: npt.NDArray[np.bool_]) -> None:
    """Whether the unknown cards of each hand lie below the bounds (R14, R22).

    Args:
        states: `[B]`, with hands and sizes that have been checked; read only.
        hold: bool `[B]`; overwritten.
    """
    for row in range(len(states)):
        hold[row] = True
        for seat in range(MAX_SEATS):
            hold[row] &= _bounds_of_seat_hold(states[row], seat)


@compiled
def _bounds_of_seat_hold(game: Record, seat: int) -> bool:
    bounds = game.bounds[seat]
    size = 0
    for k in range(MAX_HAND):
        if bounds[k] > 0:  # sorted, and no gap before it
            if k > size or (k > 0 and bounds[k] < bounds[k - 1]):
                return False
            size = k + 1
    if size > 0 and (seat >= game.num_seats or game.laying > 0):
        return False
    unknown = 0
    for rank in range(NUM_RANKS):
        for _ in range(game.hand[seat, rank] - game.known[seat, rank]):
            if unknown < size and rank >= bounds[unknown]:
                return False
            unknown += 1
    return size <= unknown and (unknown <= MAX_HAND or game.laying > 0)
