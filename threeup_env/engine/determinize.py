"""Worlds that agree with what a seat knows, drawn from its observation alone.

A search that starts here cannot peek: no function of this module is given a state to
read, it only writes one.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import (
    MAX_DECK_SIZE,
    MAX_HAND,
    NUM_RANKS,
    VARIANT_HAND_SIZE,
    VARIANT_NUM_FACE_UP,
)
from threeup_env.engine.checks import checked_observations
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
    MANY_STEPS,
    MAY_DRAW,
    OUT_OF_PLAY,
    OWED,
    PILE,
    SEAT,
    SEAT_SIZE,
    STEPS_LEFT,
    TABLE_SIZE,
    TOP,
    UNSEEN,
    VARIANT,
)
from threeup_env.engine.rng import WORLDS, next_uint64, random_below, shuffle, streams
from threeup_env.engine.rules import cards_left, clear_places
from threeup_env.engine.state import CUT_OFF, EMPTY, STATE_DTYPE, Record

FAR_LIMIT: Final = 1000
"""Steps given to a drawn game whose observation says only that its limit is far (R21)."""


def determinize(
    observations: npt.NDArray[np.int8], seed: int, num_worlds: int = 1
) -> npt.NDArray[np.void]:
    """Draw games that agree with everything that the observers know.

    What a seat knows stands in its observation: its hand, the face-up cards, pile, cards out
    of play, all sizes, of each hand the known cards and the bounds of the others, whose turn it
    is and what is owed. All other cards are dealt to the places that may hold them, every way
    alike that keeps the bounds: the rest of the other
    hands, every face-down card, the draw pile in its order, and while the seats are laying
    what the others have laid (R5). Observing a drawn game from the observer's seat gives the
    observation back, bit for bit. Steps are counted from 0 to what is left of them.

    Args:
        observations: of any seat, to act or not, of running or finished games; int8 `[B, F]`.
        seed: starts one stream a row; the worlds of row i depend on it, i and the observation.
        num_worlds: worlds drawn for each row, W.

    Returns:
        `STATE_DTYPE` `[B, W]`; each record's `rng` is drawn too, never the true game's.

    Raises:
        ValueError: not observations, e.g. cards missing; names row and field.

    Example:
        >>> from threeup_env import Batch
        >>> batch = Batch(num_games=2, num_players=3)
        >>> batch.reset()
        >>> worlds = determinize(batch.observations, seed=1, num_worlds=5)
        >>> worlds.shape, bool((worlds["hand"][:, :, 0] == batch.states["hand"][:, None, 0]).all())
        ((2, 5), True)
    """
    if num_worlds < 1:
        raise ValueError(f"num_worlds: expected at least 1; got {num_worlds!r}")
    vectors = checked_observations(observations)
    worlds = np.zeros((len(vectors), num_worlds), STATE_DTYPE)
    write_worlds(vectors, streams(seed, len(vectors), WORLDS), worlds)
    return worlds


@compiled
def write_worlds(
    vectors: npt.NDArray[np.int8],
    row_streams: npt.NDArray[np.uint64],
    worlds: npt.NDArray[np.void],
) -> None:
    """Fill every row of `worlds` `[B, W]` from sound observations."""
    cards = np.empty(MAX_DECK_SIZE, np.int8)
    stream = np.empty(1, np.uint64)
    for row in range(len(vectors)):
        stream[0] = row_streams[row]
        size = write_unseen(vectors[row], cards)
        for i in range(worlds.shape[1]):
            game = worlds[row, i]
            write_seen(vectors[row], game)
            deal_unseen(game, cards, size, stream)
            game.rng = next_uint64(stream)


@compiled
def write_seen(vector: npt.NDArray[np.int8], game: Record) -> None:
    """Write what the observer sees; hidden places keep their sizes and hold no cards yet.

    Args:
        vector: int8 `[F]`, read only.
        game: overwritten.
    """
    num_seats = (len(vector) - TABLE_SIZE) // SEAT_SIZE
    observer = int(vector[SEAT])
    clear_places(game)

    # Table
    game.variant = vector[VARIANT]
    game.num_seats = num_seats
    game.steps = 0
    steps_left = int(vector[STEPS_LEFT])
    game.max_steps = steps_left if steps_left < MANY_STEPS else FAR_LIMIT
    game.laying = vector[LAYING]
    game.owed = vector[OWED]
    game.may_draw = vector[MAY_DRAW]
    game.draw_pile_size = vector[DRAW_PILE_SIZE]
    game.top = EMPTY
    for rank in range(NUM_RANKS):
        game.pile[rank] = vector[PILE + rank]
        game.out_of_play[rank] = vector[OUT_OF_PLAY + rank]
        if vector[TOP + rank] > 0:
            game.top = rank

    # Seats
    game.seat = observer
    game.winner = CUT_OFF
    for i in range(num_seats):
        seat = observer + i if observer + i < num_seats else observer + i - num_seats
        block = TABLE_SIZE + SEAT_SIZE * i
        write_seat(vector, block, game, seat)
        if vector[block + ACTING] > 0:
            game.seat = seat
            game.winner = EMPTY
    if game.winner == CUT_OFF:
        for seat in range(num_seats):
            if cards_left(game, seat) == 0:
                game.winner = seat
    for rank in range(NUM_RANKS):
        game.known[observer, rank] = vector[EXPOSED + rank]


@compiled
def write_seat(vector: npt.NDArray[np.int8], block: int, game: Record, seat: int) -> None:
    """Write one seat from its block: for the observer all its hand, else the known cards of it."""
    game.hand_size[seat] = vector[block + HAND_SIZE]
    game.face_down_size[seat] = vector[block + FACE_DOWN_SIZE]
    size = 0
    for rank in range(NUM_RANKS):
        game.hand[seat, rank] = vector[block + HAND + rank]
        game.known[seat, rank] = vector[block + HAND + rank]
        game.face_up[seat, rank] = vector[block + FACE_UP + rank]
        size += vector[block + FACE_UP + rank]
    for i in range(MAX_HAND):
        bound = vector[block + BOUNDS + i]
        game.bounds[seat, i] = bound if bound < NUM_RANKS else 0
    if game.laying > 0:
        # What isn't in hand any more has been laid, though nobody else saw which (R5).
        full = VARIANT_HAND_SIZE[game.variant] + VARIANT_NUM_FACE_UP[game.variant]
        size = full - game.hand_size[seat]
    game.face_up_size[seat] = size


@compiled
def write_unseen(vector: npt.NDArray[np.int8], cards: npt.NDArray[np.int8]) -> int:
    """List the unseen cards, lowest first, in `cards`; gives their number."""
    size = 0
    for rank in range(NUM_RANKS):
        for _ in range(vector[UNSEEN + rank]):
            cards[size] = rank
            size += 1
    return size


@compiled
def deal_unseen(
    game: Record,
    cards: npt.NDArray[np.int8],
    size: int,
    stream: npt.NDArray[np.uint64],
) -> None:
    """Deal the unseen cards to the hidden places: every way that keeps the bounds, alike.

    The places with the tightest bound come first, each filled with any of the cards left
    below it. Bounds are nested, so how many cards that is doesn't depend on those drawn
    before: all ways are equally likely. What no bound holds down is shuffled.

    Args:
        game: as `write_seen` leaves it; its hidden places are filled.
        cards: the unseen cards in any order, as many as there are places; int8, shuffled.
        size: their number.
        stream: uint64 `[1]`; advanced.
    """
    bound = 0
    while True:
        bound = next_bound(game, bound)
        if bound == NUM_RANKS:
            break
        size = deal_below(game, bound, cards, size, stream)
    shuffle(stream, cards, size)
    position = 0
    for i in range(game.draw_pile_size):
        game.draw_pile[i] = cards[position]
        position += 1
    for seat in range(game.num_seats):
        for i in range(game.face_down_size[seat]):
            game.face_down[seat, i] = cards[position]
            position += 1
        in_hand = int(game.hand_size[seat])
        laid = int(game.face_up_size[seat])
        for rank in range(NUM_RANKS):
            in_hand -= game.hand[seat, rank]
            laid -= game.face_up[seat, rank]
        for _ in range(in_hand):
            game.hand[seat, cards[position]] += 1
            position += 1
        for _ in range(laid):
            game.face_up[seat, cards[position]] += 1
            position += 1


@compiled
def num_missing(game: Record, seat: int) -> int:
    """Cards in a seat's hand that have no rank yet."""
    missing = int(game.hand_size[seat])
    for rank in range(NUM_RANKS):
        missing -= game.hand[seat, rank]
    return missing


@compiled
def next_bound(game: Record, last: int) -> int:
    """The tightest bound above `last` of a card without a rank; `NUM_RANKS` if there is none."""
    found = NUM_RANKS
    for seat in range(game.num_seats):
        for i in range(MAX_HAND):
            bound = int(game.bounds[seat, i])
            if last < bound < found and num_missing(game, seat) > 0:
                found = bound
    return found


@compiled
def deal_below(
    game: Record,
    bound: int,
    cards: npt.NDArray[np.int8],
    size: int,
    stream: npt.NDArray[np.uint64],
) -> int:
    """Deal to each hidden place of this bound one of the cards below it.

    Args:
        game: its hands are filled.
        bound: an exclusive upper one.
        cards: those that are left come first; int8, put in another order.
        size: how many are left.
        stream: uint64 `[1]`; advanced.

    Returns:
        How many are left then.
    """
    for seat in range(game.num_seats):
        for i in range(MAX_HAND):
            if game.bounds[seat, i] != bound or num_missing(game, seat) == 0:
                continue
            below = 0
            for k in range(size):
                below += cards[k] < bound
            skipped = random_below(stream, below)
            k = 0
            while cards[k] >= bound or skipped > 0:
                skipped -= cards[k] < bound
                k += 1
            size -= 1
            game.hand[seat, cards[k]] += 1
            taken = cards[k]
            cards[k] = cards[size]
            cards[size] = taken
    return size
