"""The chance of winning a game in the middle, for searches that don't play each rollout out.

What a drawn world does after a few turns is mostly chance. A small network, fitted by
`training.fit_value` to the ends of rollouts, says how they end on average: far less noise, so
that far fewer worlds tell two actions apart. It reads a game in full. That is for worlds that
a search has drawn; no agent ever gets the true one.
"""

from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.files import check_fields, one_of, parse_json, read_tensors, whole
from threeup_agents.search.rollouts import rollout_action
from threeup_env.engine.cards import MAX_FACE_DOWN, MAX_SEATS, MIN_SEATS, NUM_RANKS, VARIANT_NAMES
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import MANY_STEPS
from threeup_env.engine.rules import apply_action, win_share, write_legal_actions
from threeup_env.engine.state import EMPTY, ENV_ID, Record

HORIZON: Final = 2
"""Choices of the searcher after the first; before the next one the network judges."""
VARIANT: Final = VARIANT_NAMES.index("standard")
"""The variant that the networks are fitted to; in others rollouts go on to the end."""
HIDDEN: Final = (64, 32)
"""Sizes of the hidden layers."""
SHIPPED: Final = Path(__file__).parent / "values"
"""Where the fitted networks lie, one a table size."""
FACTS: Final = "threeup_value"
"""Under which the file's header holds how it was made."""

# Features are facts that hold or don't. These are the first ones of each kind, those of the
# table and those of a seat, and how many numbers of copies are told apart.
_PILE_COPIES: Final = 2
_DRAW_COPIES: Final = 7
_HAND_COPIES: Final = 4
_FACE_UP_COPIES: Final = 3
_NEXT_DRAWS: Final = 6
_LARGEST: Final = 15
_MOST_OWED: Final = 3
_PILE: Final = NUM_RANKS + 1
_DRAW_PILE: Final = _PILE + _PILE_COPIES * NUM_RANKS
_NEXT: Final = _DRAW_PILE + _DRAW_COPIES * NUM_RANKS
_DRAW_SIZE: Final = _NEXT + _NEXT_DRAWS * NUM_RANKS
_TURN: Final = _DRAW_SIZE + _LARGEST + 1
_TABLE_SIZE: Final = _TURN + 2 * (_MOST_OWED + 1)
_FACE_UP: Final = _HAND_COPIES * NUM_RANKS
_FACE_DOWN: Final = _FACE_UP + _FACE_UP_COPIES * NUM_RANKS
_HAND_SIZE: Final = _FACE_DOWN + MAX_FACE_DOWN * NUM_RANKS
_SHOWN: Final = _HAND_SIZE + _LARGEST + 1
_SEAT_SIZE: Final = _SHOWN + (MAX_FACE_DOWN + 1) ** 2

MOST_FEATURES: Final = (2 * NUM_RANKS + _NEXT_DRAWS + 3, 2 * NUM_RANKS + MAX_FACE_DOWN + 2)
"""Of the table, and of each seat, at most so many hold at once."""


class ValueNetwork(NamedTuple):
    """Three layers, ReLU between them; float32, V features of a game."""

    first: npt.NDArray[np.float32]
    """`[V + 1, 64]`; the last row is of no feature, and all zero."""
    first_biases: npt.NDArray[np.float32]
    second: npt.NDArray[np.float32]
    """`[64, 32]`."""
    second_biases: npt.NDArray[np.float32]
    last: npt.NDArray[np.float32]
    """`[S + 1, 32]`: to win for each seat, the one to act first, and that nobody wins."""
    last_biases: npt.NDArray[np.float32]


@compiled
def value_size(num_players: int) -> int:
    """Features of a game, V."""
    return _TABLE_SIZE + _SEAT_SIZE * num_players


def most_features(num_players: int) -> int:
    """Places that `write_features` needs: at most so many hold at once, filled up to fours."""
    return -(-(MOST_FEATURES[0] + MOST_FEATURES[1] * num_players) // 4) * 4


SHEET_DTYPE: Final = np.dtype(
    (
        np.record,
        [
            ("features", np.int64, most_features(MAX_SEATS)),
            ("draws", np.int8, NUM_RANKS),  # copies of each rank in the draw pile
            ("first", np.float32, HIDDEN[0]),
            ("second", np.float32, HIDDEN[1]),
            ("shares", np.float64, MAX_SEATS),  # by seat
        ],
    ),
    align=True,
)
"""What one judgement is worked out on."""


def shipped_file(num_players: int) -> Path:
    """Where the fitted network for one table size lies."""
    return SHIPPED / f"value-{num_players}.safetensors"


@lru_cache
def shipped(num_players: int) -> ValueNetwork:
    """The fitted network for one table size."""
    return read(shipped_file(num_players), num_players)


def read(path: Path, num_players: int) -> ValueNetwork:
    """Read a fitted network.

    Raises:
        ValueError: no such file, a damaged one, or one for another table size or layout.
    """
    where = repr(str(path))
    metadata, tensors = read_tensors(path, f"{where}: expected a value network", "numpy")
    try:
        facts = parse_json(metadata[FACTS])
        layers = [tensors[name] for name in ValueNetwork._fields]
    except (KeyError, ValueError) as error:
        raise ValueError(f"{where}: expected a value network; got {error}") from error
    fields = {"num_players": whole(MIN_SEATS, MAX_SEATS), "env": one_of(ENV_ID)}
    check_fields(where, facts, fields)
    first, second = HIDDEN
    outputs = num_players + 1
    expected = [(value_size(num_players) + 1, first), (first,), HIDDEN, (second,)]
    expected += [(outputs, second), (outputs,)]
    shapes = [layer.shape for layer in layers]
    if shapes != expected or facts["num_players"] != num_players:
        raise ValueError(
            f"{where}: expected a value network for {num_players} players, layers "
            f"{expected}; got one for {facts['num_players']}, {shapes}"
        )
    for name, layer in zip(ValueNetwork._fields, layers, strict=True):
        if layer.dtype != np.float32 or not np.isfinite(layer).all():
            raise ValueError(f"{where}: expected finite float32 numbers in tensor {name!r}")
    return ValueNetwork(*(np.ascontiguousarray(layer, np.float32) for layer in layers))


@compiled
def write_features(game: Record, sheet: Record) -> int:
    """List the features that hold in a game in which all have laid.

    Of the table: its top; copies by rank in the pile; copies by rank in the draw pile and its next
    cards in order; its size; discards owed and whether to draw is legal. Then for each seat, the
    one to act first and then clockwise: copies by rank in hand and face up; the face-down cards
    by place; the size of the hand, and those of the other two zones.

    Args:
        game: read only.
        sheet: `SHEET_DTYPE`; the first of its `features` are overwritten. The last ones are V,
            which is no feature, so that their number is a multiple of four.

    Returns:
        That number.
    """
    features = sheet.features
    features[0] = game.top - EMPTY
    count = write_copies(game.pile, _PILE_COPIES, _PILE, features, 1)
    count = write_draw_pile(game, sheet, count)
    features[count] = _TURN + 2 * min(int(game.owed), _MOST_OWED) + game.may_draw
    count += 1
    start = _TABLE_SIZE
    for i in range(game.num_seats):
        seat = clockwise(game, i)
        if game.hand_size[seat] > 0:
            count = write_copies(game.hand[seat], _HAND_COPIES, start, features, count)
        if game.face_up_size[seat] > 0:
            face_up = start + _FACE_UP
            count = write_copies(game.face_up[seat], _FACE_UP_COPIES, face_up, features, count)
        size = int(game.face_down_size[seat])
        for k in range(size):
            features[count] = start + _FACE_DOWN + NUM_RANKS * k + game.face_down[seat, k]
            count += 1
        shown = int(game.face_up_size[seat]) * (MAX_FACE_DOWN + 1) + size
        features[count] = start + _HAND_SIZE + min(int(game.hand_size[seat]), _LARGEST)
        features[count + 1] = start + _SHOWN + shown
        count += 2
        start += _SEAT_SIZE
    while count % 4 > 0:
        features[count] = start
        count += 1
    return count


@compiled
def clockwise(game: Record, distance: int) -> int:
    """The seat so far behind the one to act."""
    seat = int(game.seat) + distance
    return seat if seat < game.num_seats else seat - int(game.num_seats)


@compiled
def write_copies(
    cards: npt.NDArray[np.int8], most: int, start: int, features: npt.NDArray[np.int64], count: int
) -> int:
    """Append how many copies of each rank lie in a place, int8 `[R]`; gives the new count."""
    for rank in range(NUM_RANKS):
        copies = min(int(cards[rank]), most)
        features[count] = start + most * rank + copies - 1
        count += copies > 0  # without a branch, since nothing foretells what is held
    return count


@compiled
def write_draw_pile(game: Record, sheet: Record, count: int) -> int:
    """Append what lies in the draw pile; gives the new count."""
    features = sheet.features
    size = int(game.draw_pile_size)
    if size > 0:
        for rank in range(NUM_RANKS):
            sheet.draws[rank] = 0
        for i in range(size):
            sheet.draws[game.draw_pile[i]] += 1
        count = write_copies(sheet.draws, _DRAW_COPIES, _DRAW_PILE, features, count)
        for i in range(min(size, _NEXT_DRAWS)):
            features[count] = _NEXT + NUM_RANKS * i + game.draw_pile[size - 1 - i]
            count += 1
    features[count] = _DRAW_SIZE + min(size, _LARGEST)
    return count + 1


@compiled
def write_shares(game: Record, network: ValueNetwork, sheet: Record) -> None:
    """Write each seat's win share, 0 to 1: what it is if the game has ended, else as expected.

    Inputs are added four at a time: so an output is read and written less often, and the order
    of the sums is the same on every machine.

    Args:
        game: read only.
        network: of this table size.
        sheet: `SHEET_DTYPE`; `shares` is overwritten, float64 `[S]` by seat, and all else too.
    """
    if game.winner != EMPTY:
        for seat in range(game.num_seats):
            sheet.shares[seat] = win_share(game, seat)
        return
    add_features(write_features(game, sheet), network, sheet)
    add_hidden(network, sheet)
    num_outputs = int(game.num_seats) + 1
    total = 0.0
    for i in range(num_outputs):
        logit = network.last_biases[i]
        for k in range(0, HIDDEN[1], 4):
            a = sheet.second[k] * network.last[i, k]
            b = sheet.second[k + 1] * network.last[i, k + 1]
            c = sheet.second[k + 2] * network.last[i, k + 2]
            d = sheet.second[k + 3] * network.last[i, k + 3]
            logit += (a + b) + (c + d)
        share = np.exp(float(logit))
        total += share
        if i < game.num_seats:
            sheet.shares[clockwise(game, i)] = share
    for seat in range(game.num_seats):
        sheet.shares[seat] /= total


@compiled
def add_features(count: int, network: ValueNetwork, sheet: Record) -> None:
    """The first layer: the sum of the rows of so many features that hold."""
    weights = network.first
    for k in range(HIDDEN[0]):
        sheet.first[k] = network.first_biases[k]
    for i in range(0, count, 4):
        a, b = weights[sheet.features[i]], weights[sheet.features[i + 1]]
        c, d = weights[sheet.features[i + 2]], weights[sheet.features[i + 3]]
        for k in range(HIDDEN[0]):
            sheet.first[k] += (a[k] + b[k]) + (c[k] + d[k])


@compiled
def add_hidden(network: ValueNetwork, sheet: Record) -> None:
    """The second layer, ReLU before it and behind it."""
    zero = np.float32(0.0)
    for k in range(HIDDEN[1]):
        sheet.second[k] = network.second_biases[k]
    for i in range(0, HIDDEN[0], 4):
        a, b = network.second[i], network.second[i + 1]
        c, d = network.second[i + 2], network.second[i + 3]
        x, y = max(sheet.first[i], zero), max(sheet.first[i + 1], zero)
        z, w = max(sheet.first[i + 2], zero), max(sheet.first[i + 3], zero)
        for k in range(HIDDEN[1]):
            sheet.second[k] += (x * a[k] + y * b[k]) + (z * c[k] + w * d[k])
    for k in range(HIDDEN[1]):
        sheet.second[k] = max(sheet.second[k], zero)


@compiled
def horizon(game: Record) -> int:
    """Choices of the searcher from here to where the network judges: `HORIZON`, or no end.

    It can't judge a variant that it doesn't know, nor when the step limit (R21), which it
    doesn't see, is near.
    """
    judged = game.variant == VARIANT and game.max_steps - game.steps > MANY_STEPS
    return HORIZON if judged else int(game.max_steps)


@compiled
def is_own_turn(game: Record, observer: int) -> bool:
    """Whether the searcher is to play; its choices there are what `horizon` counts."""
    return bool(game.laying == 0 and game.seat == observer)


@compiled
def play_on(game: Record, observer: int, choices: int, legal: npt.NDArray[np.int64]) -> None:
    """Play a rollout up to where the network judges.

    Args:
        game: a drawn world; all seats follow `rollout_action`.
        observer: the searcher's seat.
        choices: how many of its choices to play; what stands before the next one is judged.
        legal: scratch; int64 `[A]`.
    """
    while game.winner == EMPTY:
        if is_own_turn(game, observer) and write_legal_actions(game, legal) > 1:
            if choices == 0:
                return
            choices -= 1
        apply_action(game, rollout_action(game, observer))
