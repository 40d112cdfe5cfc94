"""How good an action is by the position that it leads to: a small network, compiled.

It reads what the seat knows right after an action (`threeup_env.engine.afterstates`), and what
looking ahead has found out about the action if there was a look. Its scores are compared within
one decision: their differences are expected gains in win share.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import CLEAR, MAX_HAND, NUM_RANKS, VARIANT_COPIES
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import num_missing
from threeup_env.engine.observation import MAX_OWED
from threeup_env.engine.rules import cards_left
from threeup_env.engine.state import EMPTY, Record

LAYOUT: Final = 1
"""Version of the features: goes up when one of them means something else."""
NUM_LOOKED: Final = 5
"""Inputs from looking ahead, the last ones: see `write_looked`."""
GAIN_SCALE: Final = 10.0
"""Gains are fed in and read out in tenths of a win."""
DOUBT: Final = 0.01
"""Win share added to a gain's error before the gain is divided by it."""
STEADY: Final = 4.0
"""Errors at which that ratio is cut off."""

_PILE_LEVELS: Final = 2  # a third copy clears the pile (R9)
_CARD_LEVELS: Final = 3
_SIZE_LEVELS: Final = 6
_FEW_LEVELS: Final = 3
_HAND_SCALE: Final = 8.0
_DRAW_SCALE: Final = 16.0
_COPIES_SCALE: Final = 7.0

# Places of a feature; those of a seat are counted from the seat's first one.
_PILE: Final = NUM_RANKS + 1
_UNSEEN: Final = _PILE + _PILE_LEVELS * CLEAR
_UNSEEN_LEFT: Final = _UNSEEN + NUM_RANKS
_TURN: Final = _UNSEEN_LEFT + NUM_RANKS
_TABLE_SIZE: Final = _TURN + 7 + MAX_OWED
_FACE_UP: Final = _CARD_LEVELS * NUM_RANKS
_ANSWERS: Final = 2 * _CARD_LEVELS * NUM_RANKS
_SIZES: Final = _ANSWERS + NUM_RANKS
_SEAT_SIZE: Final = _SIZES + _SIZE_LEVELS + 3 * _FEW_LEVELS + 4


class PositionNetwork(NamedTuple):
    """Three layers, ReLU between them; `[in, out]`, float32, P features of a position."""

    first: npt.NDArray[np.float32]
    """`[P, H]`."""
    first_biases: npt.NDArray[np.float32]
    second: npt.NDArray[np.float32]
    """`[H, G]`."""
    second_biases: npt.NDArray[np.float32]
    last: npt.NDArray[np.float32]
    """`[G]`."""


def position_size(num_players: int) -> int:
    """Features that `write_position` and `write_looked` fill, P."""
    return _TABLE_SIZE + _SEAT_SIZE * num_players + NUM_LOOKED


@compiled
def write_position(after: Record, observer: int, features: npt.NDArray[np.float32]) -> None:
    """Write what the network sees of the position after an action.

    In order: the pile's top, one-hot, with one more for an empty pile; which numbers have at
    least 1 and 2 copies in it; unseen copies by rank, and which ranks have any; the draw pile,
    discards owed, laying, the observer's draws, whether it plays on or has won. Then for each
    seat, the observer first and then clockwise: which ranks have at least 1, 2, 3 copies known
    in hand and face up; the chance that the seat can play on each rank, the observer's seat:
    which ranks of its hand the others know; sizes, by thermometers too, and whether it acts.

    Args:
        after: as `write_after` leaves it; read only.
        observer: who has acted.
        features: float32 `[P]`; all but the last `NUM_LOOKED` are overwritten.
    """
    for i in range(len(features) - NUM_LOOKED):
        features[i] = 0.0
    unseen = np.empty(NUM_RANKS, np.int64)
    count_unseen(after, unseen)
    features[after.top if after.top != EMPTY else NUM_RANKS] = 1.0
    for rank in range(CLEAR):
        for level in range(_PILE_LEVELS):
            features[_PILE + _PILE_LEVELS * rank + level] = after.pile[rank] > level
    for rank in range(NUM_RANKS):
        features[_UNSEEN + rank] = unseen[rank] / _COPIES_SCALE
        features[_UNSEEN_LEFT + rank] = unseen[rank] > 0
    features[_TURN] = after.draw_pile_size / _DRAW_SCALE
    features[_TURN + 1] = after.draw_pile_size == 0
    features[_TURN + 2] = after.may_draw
    features[_TURN + 3] = after.laying / _FEW_LEVELS
    features[_TURN + 4] = num_missing(after, observer) / _FEW_LEVELS
    features[_TURN + 5] = after.winner == EMPTY and after.seat == observer
    features[_TURN + 6] = after.winner == observer
    for i in range(MAX_OWED):
        features[_TURN + 7 + i] = after.owed > i
    start = _TABLE_SIZE
    for i in range(after.num_seats):
        seat = observer + i if observer + i < after.num_seats else observer + i - after.num_seats
        write_seat(after, seat, seat == observer, unseen, features[start : start + _SEAT_SIZE])
        start += _SEAT_SIZE


@compiled
def write_seat(
    after: Record,
    seat: int,
    is_own: bool,
    unseen: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32],
) -> None:
    """Write one seat's features, all 0 before."""
    hidden = after.laying > 0 and not is_own  # what others have laid (R5)
    for rank in range(NUM_RANKS):
        held = after.hand[seat, rank]
        laid = 0 if hidden else int(after.face_up[seat, rank])
        for level in range(_CARD_LEVELS):
            features[_CARD_LEVELS * rank + level] = held > level
            features[_FACE_UP + _CARD_LEVELS * rank + level] = laid > level
        if is_own:
            features[_ANSWERS + rank] = after.known[seat, rank] > 0
    if not is_own:
        write_answers(after, seat, unseen, features[_ANSWERS : _ANSWERS + NUM_RANKS])
    hand_size = int(after.hand_size[seat])
    place = _SIZES
    for level in range(_SIZE_LEVELS):
        features[place + level] = hand_size > level
    place += _SIZE_LEVELS
    left = cards_left(after, seat)
    for level in range(_FEW_LEVELS):
        features[place + level] = after.face_down_size[seat] > level
        features[place + _FEW_LEVELS + level] = after.face_up_size[seat] > level
        features[place + 2 * _FEW_LEVELS + level] = left <= level + 1
    place += 3 * _FEW_LEVELS
    features[place] = hand_size / _HAND_SCALE
    features[place + 1] = num_missing(after, seat) / _FEW_LEVELS
    features[place + 2] = after.bounds[seat, 0] / NUM_RANKS
    features[place + 3] = after.winner == EMPTY and after.seat == seat


@compiled
def count_unseen(after: Record, unseen: npt.NDArray[np.int64]) -> None:
    """Count the copies of each rank whose place the seat doesn't know; int64 `[R]`, overwritten."""
    for rank in range(NUM_RANKS):
        copies = int(VARIANT_COPIES[after.variant, rank])
        copies -= int(after.pile[rank] + after.out_of_play[rank])
        for seat in range(after.num_seats):
            copies -= int(after.hand[seat, rank] + after.face_up[seat, rank])
        unseen[rank] = copies


@compiled
def write_answers(
    after: Record,
    seat: int,
    unseen: npt.NDArray[np.int64],
    chances: npt.NDArray[np.float32],
) -> None:
    """How probably a seat can play on each rank, as far as the observer can tell.

    Open and known cards of the zone that it will play from decide if they can be played; each
    hidden one is any unseen card, below its bound if it has one, whatever the others are.

    Args:
        after: read only.
        seat: another seat.
        unseen: int64 `[R]`.
        chances: float32 `[R]`; overwritten.
    """
    from_hand = after.hand_size[seat] > 0 or after.draw_pile_size > 0
    from_table = not from_hand and after.face_up_size[seat] > 0
    cards = after.hand[seat] if from_hand else after.face_up[seat]
    hidden = 0 if from_table else 1  # the face-down card that it would turn
    if from_hand:
        hidden = num_missing(after, seat)
    fails = np.ones(NUM_RANKS, np.float64)
    for i in range(hidden):
        bound = NUM_RANKS
        if from_hand and i < MAX_HAND and after.bounds[seat, i] > 0:
            bound = int(after.bounds[seat, i])
        total = 0
        for rank in range(bound):
            total += unseen[rank]
        below = 0
        for rank in range(NUM_RANKS):
            if rank < bound:
                fails[rank] *= below / max(total, 1)
                below += unseen[rank]
    sure = False
    for rank in range(NUM_RANKS - 1, -1, -1):
        sure = sure or ((from_hand or from_table) and cards[rank] > 0)
        chances[rank] = 1.0 if sure else 1.0 - fails[rank]


@compiled
def write_looked(
    worlds: float, total: float, squares: float, is_habit: bool, looked: npt.NDArray[np.float32]
) -> None:
    """Write what looking ahead says of one action, all 0 where nobody has looked.

    Whether somebody has; the gain over the habit, its standard error, and the one by the other;
    then whether the action is the habit.

    Args:
        worlds: in which the action was played on, and the next two: as `compare` notes them.
        total: sum of its gains over the habit in them.
        squares: sum of the squares.
        is_habit: whether it is the habit.
        looked: float32 `[NUM_LOOKED]`; overwritten.
    """
    for i in range(NUM_LOOKED):
        looked[i] = 0.0
    looked[4] = is_habit
    if worlds == 0.0:
        return
    gain = total / worlds
    error = np.sqrt(max(squares / worlds - gain * gain, 0.0) / worlds)
    looked[0] = 1.0
    looked[1] = gain * GAIN_SCALE
    looked[2] = error * GAIN_SCALE
    looked[3] = min(max(gain / (error + DOUBT), -STEADY), STEADY) / STEADY


@compiled
def add_features(
    network: PositionNetwork,
    features: npt.NDArray[np.float32],
    before: npt.NDArray[np.float32],
    first: npt.NDArray[np.float32],
) -> None:
    """Bring the first layer's sums from one position's features to another's.

    Args:
        network: read only.
        features: of the position; float32 `[P]`.
        before: those that `first` stands for; float32 `[P]`, overwritten by `features`.
        first: float32 `[H]`; changed.
    """
    size = len(first)
    for i in range(len(features)):
        change = features[i] - before[i]
        if change != 0.0:
            before[i] = features[i]
            for k in range(size):
                first[k] += change * network.first[i, k]


@compiled
def score(
    network: PositionNetwork,
    first: npt.NDArray[np.float32],
    second: npt.NDArray[np.float32],
) -> float:
    """Finish from the first layer's sums, `[H]`; `second`, `[G]`, is scratch. In win shares."""
    size = len(second)
    for k in range(size):
        second[k] = network.second_biases[k]
    for i in range(len(first)):
        if first[i] > 0.0:
            for k in range(size):
                second[k] += first[i] * network.second[i, k]
    found = 0.0
    for k in range(size):
        if second[k] > 0.0:
            found += second[k] * network.last[k]
    return found / GAIN_SCALE
