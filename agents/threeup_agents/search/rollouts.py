"""Games played out fast by every seat: what a search judges an action by. All compiled."""

import numpy as np
import numpy.typing as npt

from threeup_agents.players.careful import HIGH, card_to_lay
from threeup_env.engine.actions import DRAW, FLIP, MAX_PLAYED, PICK_UP, PLAY_ONE
from threeup_env.engine.cards import NUM_RANKS
from threeup_env.engine.compiled import compiled
from threeup_env.engine.rules import apply_action
from threeup_env.engine.state import EMPTY, Record


@compiled
def rollout_action(game: Record, observer: int) -> int:
    """Choose fast, for rollouts: about as `careful` at the searcher's seat, else as `greedy`.

    The searcher's seat holds back high cards while the draw pile lasts, but gives no thought
    to the next seat. It reads nothing that the seat to act doesn't know.
    """
    seat = int(game.seat)
    if game.laying > 0:
        return card_to_lay(game, seat)
    if game.may_draw > 0:
        return DRAW
    high = HIGH if seat == observer and game.draw_pile_size > 0 else NUM_RANKS
    if game.hand_size[seat] > 0:
        return lowest_play(game.hand[seat], int(game.top), high)
    if game.face_up_size[seat] > 0:
        return lowest_play(game.face_up[seat], int(game.top), high)
    return FLIP


@compiled
def lowest_play(cards: npt.NDArray[np.int8], top: int, high: int) -> int:
    """The lowest rank that may be played from a zone, int8 `[R]`, or PICK_UP.

    All copies of it, or one from the rank `high` on.
    """
    for rank in range(max(top, 0), NUM_RANKS):
        copies = min(int(cards[rank]), int(MAX_PLAYED[rank]))
        if copies > 0:
            return int(PLAY_ONE[rank]) + (0 if rank >= high else copies - 1)
    return PICK_UP


@compiled
def roll_out(game: Record, observer: int) -> None:
    """Play a game to its end; every seat follows `rollout_action`."""
    while game.winner == EMPTY:
        apply_action(game, rollout_action(game, observer))
