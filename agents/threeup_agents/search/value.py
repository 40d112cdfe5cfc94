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
from threeup_env.engine.cards import MAX_SEATS, MIN_SEATS, NUM_RANKS, VARIANT_NAMES
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import MANY_STEPS
from threeup_env.engine.rules import apply_action, cards_left, win_share, write_legal_actions
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

# Places of a feature; those of a seat are counted from the seat's first one.
_TOP: Final = NUM_RANKS
_DRAW_PILE: Final = 2 * NUM_RANKS
_TURN: Final = 3 * NUM_RANKS
_TABLE_SIZE: Final = _TURN + 4
_FACE_UP: Final = NUM_RANKS
_FACE_DOWN: Final = 2 * NUM_RANKS
_SIZES: Final = 3 * NUM_RANKS
_SEAT_SIZE: Final = _SIZES + 7
_HAND_SCALE: Final = 4.0
_DRAW_SCALE: Final = 16.0
_FEW: Final = 2


class ValueNetwork(NamedTuple):
    """Three layers, ReLU between them; `[in, out]`, float32, V features of a game."""

    first: npt.NDArray[np.float32]
    """`[V, 64]`."""
    first_biases: npt.NDArray[np.float32]
    second: npt.NDArray[np.float32]
    """`[64, 32]`."""
    second_biases: npt.NDArray[np.float32]
    last: npt.NDArray[np.float32]
    """`[32]`."""
    last_bias: npt.NDArray[np.float32]
    """`[1]`."""


def value_size(num_players: int) -> int:
    """Features that `write_features` fills, V."""
    return _TABLE_SIZE + _SEAT_SIZE * num_players


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
    expected = [(value_size(num_players), first), (first,), HIDDEN, (second,), (second,), (1,)]
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
def write_features(game: Record, seat: int, features: npt.NDArray[np.float32]) -> None:
    """Write what the network sees of a game in which all have laid.

    In order: copies by rank in the pile; its top, one-hot; copies by rank in the draw pile; its
    size, discards owed, whether to draw is legal, whether the draw pile is empty. Then for each
    seat, `seat` first and then clockwise: copies by rank in hand, face up and face down; the
    sizes of the three; whether it is to act, holds one card, holds two, and has two at most.

    Args:
        game: read only.
        seat: whose chance is asked.
        features: float32 `[V]`; overwritten.
    """
    for i in range(len(features)):
        features[i] = 0.0
    for rank in range(NUM_RANKS):
        features[rank] = game.pile[rank]
    if game.top != EMPTY:
        features[_TOP + game.top] = 1.0
    for i in range(game.draw_pile_size):
        features[_DRAW_PILE + game.draw_pile[i]] += 1.0
    features[_TURN] = game.draw_pile_size / _DRAW_SCALE
    features[_TURN + 1] = game.owed
    features[_TURN + 2] = game.may_draw
    features[_TURN + 3] = game.draw_pile_size == 0
    start = _TABLE_SIZE
    num_seats = int(game.num_seats)
    for i in range(num_seats):
        other = seat + i if seat + i < num_seats else seat + i - num_seats
        for rank in range(NUM_RANKS):
            features[start + rank] = game.hand[other, rank]
            features[start + _FACE_UP + rank] = game.face_up[other, rank]
        for k in range(game.face_down_size[other]):
            features[start + _FACE_DOWN + game.face_down[other, k]] += 1.0
        sizes = start + _SIZES
        features[sizes] = game.hand_size[other] / _HAND_SCALE
        features[sizes + 1] = game.face_up_size[other]
        features[sizes + 2] = game.face_down_size[other]
        features[sizes + 3] = game.seat == other
        features[sizes + 4] = game.hand_size[other] == 1
        features[sizes + 5] = game.hand_size[other] == _FEW
        features[sizes + 6] = cards_left(game, other) <= _FEW
        start += _SEAT_SIZE


@compiled
def worth(game: Record, seat: int, network: ValueNetwork) -> float:
    """A seat's win share, 0 to 1: what it is if the game has ended, else what is expected."""
    if game.winner != EMPTY:
        return win_share(game, seat)
    features = np.empty(len(network.first), np.float32)
    write_features(game, seat, features)
    first = network.first_biases.copy()
    for i in range(len(features)):
        if features[i] != 0.0:
            for k in range(len(first)):
                first[k] += features[i] * network.first[i, k]
    second = network.second_biases.copy()
    for i in range(len(first)):
        if first[i] > 0.0:
            for k in range(len(second)):
                second[k] += first[i] * network.second[i, k]
    logit = network.last_bias[0]
    for i in range(len(second)):
        if second[i] > 0.0:
            logit += second[i] * network.last[i]
    share: float = 1.0 / (1.0 + np.exp(-logit))
    return share


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
