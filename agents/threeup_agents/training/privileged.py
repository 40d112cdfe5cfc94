"""What no seat may know, for a critic in training: hidden cards and the draws to come.

A critic that sees the deal takes most of the luck out of the advantages. Nothing that
acts may read this: agents get observations only, and no agent ever gets a record.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import MAX_COPIES, MAX_FACE_DOWN, NUM_RANKS
from threeup_env.engine.compiled import compiled
from threeup_env.engine.state import Record

NUM_DRAWS: Final = 12
"""How many cards of the draw pile the critic sees coming."""
NO_CARD: Final = 0
"""In place of a rank + 1 where there is no card."""

OTHER_SIZE: Final = MAX_FACE_DOWN + NUM_RANKS
"""Features of one other seat: its face-down cards, then its hidden cards by rank."""


def privileged_size(num_players: int) -> int:
    """Features that `write_privileged` fills, P; a smaller table's are a prefix of a larger's."""
    return NUM_DRAWS + MAX_FACE_DOWN + OTHER_SIZE * (num_players - 1)


def privileged_bounds(num_players: int) -> npt.NDArray[np.int8]:
    """The highest value of each feature, for scaling; int8 `[P]`. The lowest is 0."""
    cards = np.full(NUM_DRAWS + MAX_FACE_DOWN, NUM_RANKS)
    other = np.array([*[NUM_RANKS] * MAX_FACE_DOWN, *MAX_COPIES])
    return np.concatenate([cards, *[other] * (num_players - 1)]).astype(np.int8)


@compiled
def write_privileged(game: Record, observer: int, vector: npt.NDArray[np.int8]) -> None:
    """Write what `observer` may not know.

    In order: the next cards of the draw pile, first drawn first; the observer's
    face-down cards, first turned first; for each other seat clockwise its face-down
    cards, then the copies by rank in its hand (while laying, of its laid cards too,
    R5). A card is its rank + 1, no card is 0.

    Args:
        game: read only.
        observer: a seat.
        vector: int8 `[P]`; overwritten.
    """
    num_seats = int(game.num_seats)
    for i in range(NUM_DRAWS):
        at = game.draw_pile_size - 1 - i
        vector[i] = game.draw_pile[at] + 1 if at >= 0 else NO_CARD
    position = NUM_DRAWS
    for i in range(num_seats):
        seat = observer + i
        if seat >= num_seats:
            seat -= num_seats
        for card in range(MAX_FACE_DOWN):
            at = game.face_down_size[seat] - 1 - card
            vector[position] = game.face_down[seat, at] + 1 if at >= 0 else NO_CARD
            position += 1
        if i > 0:
            for rank in range(NUM_RANKS):
                laid = game.face_up[seat, rank] if game.laying > 0 else 0
                vector[position] = game.hand[seat, rank] + laid
                position += 1


@compiled
def write_privileged_rows(
    states: npt.NDArray[np.void],
    rows: npt.NDArray[np.int64],
    vectors: npt.NDArray[np.int8],
) -> None:
    """Write what the seat to act in some games may not know.

    Args:
        states: `STATE_DTYPE` `[B]`, read only.
        rows: the games; int64 `[K]`.
        vectors: int8 `[K, P]`; overwritten.
    """
    for i in range(len(rows)):
        game = states[rows[i]]
        write_privileged(game, int(game.seat), vectors[i])
