"""The agent `careful`: a page of rules that count cards, for people to read and to beat."""

from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import DRAW, FLIP, MAX_PLAYED, PICK_UP, PLAY_ONE
from threeup_env.engine.cards import CLEAR, NUM_RANKS, VARIANT_COPIES
from threeup_env.engine.checks import checked_masks, checked_observations
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import write_seen
from threeup_env.engine.rules import CLEARING_RUN
from threeup_env.engine.state import STATE_DTYPE, Record

# Tuned by matches against `greedy` and among versions of itself. Prices are in ranks.
EQUAL_LAID: Final = 3.0
"""A number that can be laid twice is worth laying as if it were so much higher."""
HIGH: Final = 6
"""Of this number and higher ones, one at a time while the draw pile lasts."""
BLOCK: Final = 8.0
"""What it is worth that the next seat, about to go out, surely can't answer."""
DUEL_BLOCK: Final = 2.0
"""The same of the only other seat, however many cards it has."""
FEW: Final = 2
"""Cards with which the next seat is about to go out."""
DUEL_CLEAR: Final = -3.0
"""Between two, a Clear goes that much earlier once the draw pile is gone..."""
DUEL_CLEAR_OWED: Final = -5.0
"""...and still earlier from the table as an extra discard."""
CERTAIN: Final = 0.1
"""Between two, a third copy doesn't clear the pile if the other seat fails so often."""


class Careful:
    """Counts cards, keeps high ones for later, and doesn't let the next seat go out.

    It lays its highest cards, equal ones by preference, and draws when it may. While the
    draw pile lasts it plays its lowest cards, but high numbers and Clears one at a time.
    After that it plays whatever is cheapest: low, and hard to answer for the next seat as
    far as the cards that it has seen tell. Where the mask leaves its choice out, it takes the
    lowest action that is in.

    Args:
        seed: not used; the same observation always gets the same action.
    """

    def __init__(self, seed: int = 0) -> None:
        self.name = "careful"

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`."""
        action_masks = checked_masks(action_masks)
        actions = np.empty(len(observations), np.int64)
        choose_careful(checked_observations(observations), actions)
        # Its rules know all legal actions; a mask may leave some of them out.
        left_out = np.flatnonzero(~action_masks[np.arange(len(actions)), actions])
        actions[left_out] = action_masks[left_out].argmax(axis=1)
        return actions


@compiled
def choose_careful(observations: npt.NDArray[np.int8], actions: npt.NDArray[np.int64]) -> None:
    """Choose as `Careful` does; int8 `[B, F]` of the seats to act, int64 `[B]` overwritten."""
    games = np.zeros(1, STATE_DTYPE)
    for row in range(len(observations)):
        write_seen(observations[row], games[0])
        actions[row] = careful_action(games[0])


@compiled
def careful_action(game: Record) -> int:
    """Choose for the seat to act; reads nothing that this seat doesn't know."""
    seat = int(game.seat)
    if game.laying > 0:
        return card_to_lay(game, seat)
    if game.may_draw > 0:
        return DRAW
    if game.hand_size[seat] > 0:
        return cheapest_play(game, seat, game.hand[seat])
    if game.face_up_size[seat] > 0:
        return cheapest_play(game, seat, game.face_up[seat])
    return FLIP


@compiled
def card_to_lay(game: Record, seat: int) -> int:
    """The highest card, a number held twice or laid already counting as higher."""
    best = 0
    highest = -1.0
    for rank in range(NUM_RANKS):
        held = game.hand[seat, rank]
        value = float(rank)
        if rank < CLEAR and held + game.face_up[seat, rank] > 1:
            value += EQUAL_LAID
        if held > 0 and value > highest:
            highest = value
            best = rank
    return best


@compiled
def cheapest_play(game: Record, seat: int, cards: npt.NDArray[np.int8]) -> int:
    """The play of lowest price from a zone, int8 `[R]`, or PICK_UP.

    A play that empties the seat's last zone wins and needs no price.
    """
    best = PICK_UP
    lowest = np.inf
    left = game.hand_size[seat] + game.face_up_size[seat] + game.face_down_size[seat]
    for rank in range(max(int(game.top), 0), NUM_RANKS):
        held = min(int(cards[rank]), int(MAX_PLAYED[rank]))
        if held == 0:
            continue
        copies = copies_to_play(game, seat, rank, held)
        cost = price(game, seat, rank, copies)
        if held == left:
            copies = held
            cost = -np.inf
        if cost < lowest:
            lowest = cost
            best = int(PLAY_ONE[rank]) + copies - 1
    return best


@compiled
def copies_to_play(game: Record, seat: int, rank: int, held: int) -> int:
    """All copies, but one of a high rank while the draw pile lasts.

    Between two, not the copy that would clear the pile (R9) if the other seat may fail to
    answer it as it stands.
    """
    if game.draw_pile_size > 0:
        return 1 if rank >= HIGH else held
    spare = CLEARING_RUN - 1 - int(game.pile[rank])
    may_hold = rank < CLEAR and 0 < spare < held and game.num_seats == 2 and game.owed <= 1
    if may_hold and blocking_chance(game, seat, rank) > CERTAIN:
        return spare
    return held


@compiled
def price(game: Record, seat: int, rank: int, copies: int) -> float:
    """How much a play costs, in ranks."""
    cost = float(rank)
    if game.draw_pile_size > 0:
        return cost
    duel = game.num_seats == 2
    if rank == CLEAR and duel:
        cost += DUEL_CLEAR
        if game.owed > 0 and game.hand_size[seat] == 0:
            cost += DUEL_CLEAR_OWED
    # What the next seat has to answer: only a pile that stays, and only if my turn ends.
    if rank < CLEAR and game.pile[rank] + copies < CLEARING_RUN and game.owed <= 1:
        other = next_seat(game, seat)
        left = game.hand_size[other] + game.face_up_size[other] + game.face_down_size[other]
        weight = DUEL_BLOCK if duel else 0.0
        if left <= FEW:
            weight = BLOCK
        if weight > 0.0:
            cost -= weight * blocking_chance(game, seat, rank)
    return cost


@compiled
def next_seat(game: Record, seat: int) -> int:
    """The seat after `seat`."""
    return seat + 1 if seat + 1 < game.num_seats else 0


@compiled
def blocking_chance(game: Record, seat: int, top: int) -> float:
    """How probably the next seat can't play on `top`, as far as `seat` can tell.

    Open and known cards decide if they can be played; the others of its hand, or its
    next face-down card, are any of those that `seat` hasn't seen.
    """
    other = next_seat(game, seat)
    from_hand = game.hand_size[other] > 0 or game.draw_pile_size > 0
    if not from_hand and game.face_up_size[other] > 0:
        for rank in range(top, NUM_RANKS):
            if game.face_up[other, rank] > 0:
                return 0.0
        return 1.0
    hidden = int(game.hand_size[other]) if from_hand else 1
    below = 0
    unseen = 0
    for rank in range(NUM_RANKS):
        known = int(game.known[other, rank])
        if known > 0 and rank >= top:
            return 0.0
        hidden -= known
        copies = unseen_copies(game, seat, rank)
        unseen += copies
        if rank < top:
            below += copies
    chance = 1.0
    for i in range(hidden):
        chance *= max(below - i, 0) / max(unseen - i, 1)
    return chance


@compiled
def unseen_copies(game: Record, seat: int, rank: int) -> int:
    """Copies of a rank whose place `seat` doesn't know."""
    copies = int(VARIANT_COPIES[game.variant, rank])
    copies -= int(game.pile[rank] + game.out_of_play[rank] + game.hand[seat, rank])
    for other in range(game.num_seats):
        copies -= int(game.face_up[other, rank])
        if other != seat:
            copies -= int(game.known[other, rank])
    return copies
