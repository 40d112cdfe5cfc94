"""The rules R1-R22 over one game record, compiled; they know nothing of any API.

Callers check first: an action passed to `apply_action` is one of the legal ones.
"""

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import (
    ACTION_COPIES,
    ACTION_RANK,
    DRAW,
    FIRST_PLAY,
    FLIP,
    MAX_PLAYED,
    PICK_UP,
    PLAY_ONE,
)
from threeup_env.engine.cards import (
    CLEAR,
    CLEAR_1,
    CLEAR_2,
    MAX_HAND,
    NUM_RANKS,
    VARIANT_DECK_SIZE,
    VARIANT_HAND_SIZE,
    VARIANT_NUM_FACE_DOWN,
    VARIANT_NUM_FACE_UP,
)
from threeup_env.engine.compiled import compiled, compiled_part
from threeup_env.engine.state import CUT_OFF, EMPTY, Record

CLEARING_RUN = 3
"""Equal numbers on top of the pile that clear it, in every variant (R9)."""


@compiled
def deal(game: Record, deck: npt.NDArray[np.int8]) -> None:
    """Deal `deck` front first and start the laying (R4, R5).

    Args:
        game: `variant`, `num_seats` and `max_steps` are read, `rng` is kept, all else
            is overwritten.
        deck: a permutation of the variant's deck, rank ids; int8 `[deck size]` or longer.
    """
    clear_table(game)
    position = 0
    for seat in range(game.num_seats):
        size = VARIANT_NUM_FACE_DOWN[game.variant]
        game.face_down_size[seat] = size
        for i in range(size):
            game.face_down[seat, size - 1 - i] = deck[position]
            position += 1
    for seat in range(game.num_seats):
        size = VARIANT_HAND_SIZE[game.variant] + VARIANT_NUM_FACE_UP[game.variant]
        game.hand_size[seat] = size
        for _ in range(size):
            game.hand[seat, deck[position]] += 1
            position += 1
    size = VARIANT_DECK_SIZE[game.variant] - position
    game.draw_pile_size = size
    for i in range(size):
        game.draw_pile[size - 1 - i] = deck[position + i]


@compiled_part
def clear_table(game: Record) -> None:
    """Reset every field but `rng`, `variant`, `num_seats` and `max_steps` to before the deal."""
    game.steps = 0
    game.seat = 0
    game.laying = VARIANT_NUM_FACE_UP[game.variant]
    game.owed = 0
    game.may_draw = 0
    game.winner = EMPTY
    game.top = EMPTY
    game.draw_pile_size = 0
    for rank in range(NUM_RANKS):
        game.pile[rank] = 0
        game.out_of_play[rank] = 0
    clear_places(game)


@compiled
def clear_places(game: Record) -> None:
    """Empty the places of all seats and the draw pile, so that equal games are equal records."""
    for seat in range(len(game.hand_size)):
        game.hand_size[seat] = 0
        game.face_up_size[seat] = 0
        game.face_down_size[seat] = 0
        for rank in range(NUM_RANKS):
            game.hand[seat, rank] = 0
            game.face_up[seat, rank] = 0
            game.known[seat, rank] = 0
        for i in range(MAX_HAND):
            game.bounds[seat, i] = 0
        for i in range(game.face_down.shape[1]):
            game.face_down[seat, i] = 0
    for i in range(len(game.draw_pile)):
        game.draw_pile[i] = 0


@compiled
def write_legal_actions(game: Record, legal: npt.NDArray[np.int64]) -> int:
    """List the legal actions of the seat to act.

    Args:
        game: read only.
        legal: int64 `[A]`; its first entries are overwritten by the ids, ascending.

    Returns:
        The number of legal actions: 0 once the game has ended, else at least 1.
    """
    if game.winner != EMPTY:
        return 0
    seat = game.seat
    count = 0
    if game.laying > 0:
        for rank in range(NUM_RANKS):
            if game.hand[seat, rank] > 0:
                legal[count] = rank
                count += 1
        return count
    # The active zone: hand, draw pile (none, R17), face-up, face-down (R16, R18).
    if game.hand_size[seat] > 0:
        count = write_plays(game.hand[seat], game.top, legal)
    elif game.draw_pile_size > 0:
        count = 0
    elif game.face_up_size[seat] > 0:
        count = write_plays(game.face_up[seat], game.top, legal)
    else:
        legal[0] = FLIP
        return 1
    if game.may_draw:
        legal[count] = DRAW
        count += 1
    elif count == 0:
        legal[0] = PICK_UP
        count = 1
    return count


@compiled_part
def write_plays(cards: npt.NDArray[np.int8], top: int, legal: npt.NDArray[np.int64]) -> int:
    """List the discards from one zone.

    A rank may be played if it is at least as high as the top of the pile (R6); the
    Clear cards rank above all numbers, so they need no case of their own (R7). Any
    number of its copies may go together (R8).

    Args:
        cards: copies of each rank in the zone; int8 `[R]`, read only.
        top: rank on top of the pile, EMPTY if none.
        legal: int64 `[A]`; its first entries are overwritten.

    Returns:
        The number of discards.
    """
    count = 0
    for rank in range(max(top, 0), NUM_RANKS):
        for extra in range(min(cards[rank], MAX_PLAYED[rank])):
            legal[count] = PLAY_ONE[rank] + extra
            count += 1
    return count


@compiled
def apply_action(game: Record, action: int) -> None:
    """Take one action of the seat to act: the whole game in one function (R21).

    Args:
        game: changed in place.
        action: a legal action's id; not checked.
    """
    # int64 throughout, else numba compiles each callee once for every integer type.
    seat = int(np.int64(game.seat))
    game.steps += 1
    if action < FIRST_PLAY:
        lay(game, seat, action)
    elif action == DRAW:
        draw_up(game, seat)
        game.may_draw = 0
    elif action == PICK_UP:
        pick_up(game, seat)
    elif action == FLIP:
        flip(game, seat)
    else:
        rank, copies = np.int64(ACTION_RANK[action]), np.int64(ACTION_COPIES[action])
        play_from_zone(game, seat, int(rank), int(copies))
    if game.winner == EMPTY and game.steps >= game.max_steps:
        game.winner = CUT_OFF
        game.may_draw = 0


@compiled_part
def lay(game: Record, seat: int, rank: int) -> None:
    """Lay one card face up; after a seat's last one the next seat lays (R5)."""
    game.hand[seat, rank] -= 1
    game.hand_size[seat] -= 1
    game.face_up[seat, rank] += 1
    game.face_up_size[seat] += 1
    game.laying -= 1
    if game.laying == 0:
        pass_turn(game)
        if game.seat != 0:
            game.laying = VARIANT_NUM_FACE_UP[game.variant]


@compiled_part
def pass_turn(game: Record) -> None:
    """End the turn without a draw: nothing more is owed (R14)."""
    game.owed = 0
    game.may_draw = 0
    game.seat += 1
    if game.seat == game.num_seats:
        game.seat = 0


@compiled_part
def draw_up(game: Record, seat: int) -> None:
    """Draw until the hand is full or the draw pile is gone (R12, R15)."""
    full = VARIANT_HAND_SIZE[game.variant]
    while game.hand_size[seat] < full and game.draw_pile_size > 0:
        game.draw_pile_size -= 1
        rank = game.draw_pile[game.draw_pile_size]
        game.draw_pile[game.draw_pile_size] = 0
        game.hand[seat, rank] += 1
        game.hand_size[seat] += 1


@compiled_part
def pick_up(game: Record, seat: int) -> None:
    """Take the pile into hand, seen by all, as is that no card of the hand could be played.

    That ends the turn at once (R14, R22).
    """
    unknown = int(game.hand_size[seat])
    for rank in range(NUM_RANKS):
        copies = game.pile[rank]
        unknown -= game.known[seat, rank]
        game.pile[rank] = 0
        game.hand[seat, rank] += copies
        game.known[seat, rank] += copies
        game.hand_size[seat] += copies
    for i in range(unknown):
        bound = game.bounds[seat, i]
        game.bounds[seat, i] = min(bound, game.top) if bound > 0 else game.top
    game.top = EMPTY
    pass_turn(game)


@compiled_part
def flip(game: Record, seat: int) -> None:
    """Turn over the next face-down card and play it, or pick it up with the pile (R18)."""
    last = game.face_down_size[seat] - 1
    rank = int(np.int64(game.face_down[seat, last]))
    game.face_down[seat, last] = 0
    game.face_down_size[seat] = last
    if rank >= game.top:
        discard(game, seat, rank, int(np.int64(1)))
    else:
        game.hand[seat, rank] += 1
        game.known[seat, rank] += 1
        game.hand_size[seat] += 1
        pick_up(game, seat)


@compiled_part
def play_from_zone(game: Record, seat: int, rank: int, copies: int) -> None:
    """Take the cards from the active zone and discard them (R8, R16)."""
    if game.hand_size[seat] > 0:
        game.hand[seat, rank] -= copies
        game.hand_size[seat] -= copies
        if game.bounds[seat, 0] > 0:
            for _ in range(copies - game.known[seat, rank]):
                drop_bound(game, seat, rank)
        game.known[seat, rank] = max(game.known[seat, rank] - copies, 0)
    else:
        game.face_up[seat, rank] -= copies
        game.face_up_size[seat] -= copies
    discard(game, seat, rank, copies)


@compiled_part
def drop_bound(game: Record, seat: int, rank: int) -> None:
    """Take away the tightest bound above a rank, for a card that not all had seen (R22)."""
    found = False
    for i in range(MAX_HAND):
        found = found or game.bounds[seat, i] > rank
        if found:
            game.bounds[seat, i] = game.bounds[seat, i + 1] if i + 1 < MAX_HAND else 0


@compiled_part
def discard(game: Record, seat: int, rank: int, copies: int) -> None:
    """Put cards that have left their zone on the pile, with all their effects.

    Clearing (R9, R10), winning at once (R20), what is owed (R11-R13), the end of the turn
    with its draw (R15) or by lapsing (R17).
    """
    if rank >= CLEAR:
        game.out_of_play[rank] += copies
        clear_pile(game)
    else:
        game.pile[rank] += copies
        game.top = rank
        if game.pile[rank] >= CLEARING_RUN:
            clear_pile(game)
    if cards_left(game, seat) == 0:
        game.winner = seat
        game.owed = 0
        game.may_draw = 0
        return
    if game.owed > 0:
        game.owed -= 1
    if rank == CLEAR_1:
        game.owed += 1
    elif rank == CLEAR_2:
        game.owed += 2
    can_fill = game.draw_pile_size > 0 and game.hand_size[seat] < VARIANT_HAND_SIZE[game.variant]
    game.may_draw = 1 if rank >= CLEAR_1 and can_fill else 0
    lapses = game.hand_size[seat] == 0 and game.draw_pile_size > 0 and not game.may_draw
    if game.owed == 0 or lapses:
        draw_up(game, seat)
        pass_turn(game)


@compiled_part
def clear_pile(game: Record) -> None:
    """Move the pile out of play for good (R9, R10)."""
    for rank in range(NUM_RANKS):
        game.out_of_play[rank] += game.pile[rank]
        game.pile[rank] = 0
    game.top = EMPTY


@compiled
def cards_left(game: Record, seat: int) -> int:
    """Cards that a seat has still to shed: hand, face-up and face-down (R1, R21)."""
    return int(game.hand_size[seat] + game.face_up_size[seat] + game.face_down_size[seat])


@compiled
def win_share(game: Record, seat: int) -> float:
    """A seat's share of the win: 1 for the winner (R20), nobody's in a game cut off (R21)."""
    return 1.0 if seat == game.winner else 0.0
