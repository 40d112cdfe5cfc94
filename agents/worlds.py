"""What the search agents share: a stream for each decision, rollouts, and their reading.

All of it is compiled. Searches see observations and masks; the games that they play out
are drawn by `threeup_env.determinize` and nothing here is given any other. Only
`tests/benchmarks` hands in true cards, to see how much hidden cards cost.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from agents.careful import HIGH, card_to_lay
from threeup_env.actions import DRAW, FLIP, MAX_PLAYED, NUM_ACTIONS, PICK_UP, PLAY_ONE
from threeup_env.cards import NUM_RANKS
from threeup_env.compiled import compiled
from threeup_env.rules import apply_action
from threeup_env.state import EMPTY, STATE_DTYPE, Record

DRAWN_WORLDS: Final = np.empty(0, STATE_DTYPE)
"""Given for `worlds` to a search: draw them from the observation."""
CAUTION: Final = 1.0
"""Standard errors by which an action must beat what `careful` does."""

_FNV_PRIME: Final = np.uint64(1099511628211)
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT: Final = np.uint64(29)


@compiled
def mix(key: np.uint64, value: int) -> np.uint64:
    """Fold a small number, 0 or more, into a hash."""
    bits = (key ^ np.uint64(value + 1)) * _MIX
    mixed: np.uint64 = bits ^ (bits >> _SHIFT)
    return mixed


@compiled
def decision_stream(
    seed: np.uint64, vector: npt.NDArray[np.int8], mask: npt.NDArray[np.bool_]
) -> np.uint64:
    """Start the stream of one decision.

    It depends on the agent's seed and on what is to be decided, on nothing else: so the
    choice is the same in any row of any batch, on any number of threads.

    Args:
        seed: the agent's own.
        vector: int8 `[F]`.
        mask: bool `[A]`.
    """
    key = seed
    for value in vector:
        key = (key ^ np.uint64(value)) * _FNV_PRIME
    for action in range(NUM_ACTIONS):
        if mask[action]:
            key = (key ^ np.uint64(action)) * _FNV_PRIME
    return mix(key, 0)


@compiled
def write_masked(mask: npt.NDArray[np.bool_], actions: npt.NDArray[np.int64]) -> int:
    """List the actions of a mask, ascending, in `actions`; gives their number."""
    count = 0
    for action in range(NUM_ACTIONS):
        if mask[action]:
            actions[count] = action
            count += 1
    return count


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


@compiled
def compare(
    comparisons: npt.NDArray[np.float64], action: int, share: float, reference_share: float
) -> None:
    """Note how an action and the reference ended in one and the same world.

    `comparisons`, float64 `[A, 3]`, holds for each action the number of worlds, the sum of
    its win share less the reference's, and the sum of the squares of that.
    """
    gain = share - reference_share
    comparisons[action, 0] += 1.0
    comparisons[action, 1] += gain
    comparisons[action, 2] += gain * gain


@compiled
def choose(comparisons: npt.NDArray[np.float64], reference: int) -> int:
    """Choose by how much better than the reference each action did in the same worlds.

    Most decisions change the result by less than a search can measure. Taking the best mean
    then plays at random among good and less good actions: worse than a plain player's
    habit, above all at a full table. So the reference, which is that habit, is left only for
    an action that gains more than `CAUTION` standard errors of its gain. One world in which
    it gains or loses all is added to those seen, so that none is certain.

    Args:
        comparisons: as `compare` writes them, float64 `[A, 3]`.
        reference: what is chosen if no action is better.
    """
    best = reference
    lead = 0.0
    for action in range(NUM_ACTIONS):
        worlds = comparisons[action, 0]
        if worlds == 0.0:
            continue
        gain = comparisons[action, 1] / worlds
        variance = (comparisons[action, 2] + 1.0) / worlds - gain * gain
        gain -= CAUTION * np.sqrt(variance / worlds)
        if gain > lead:
            lead = gain
            best = action
    return best


@compiled
def first_of(actions: npt.NDArray[np.int64], count: int, habit: int) -> None:
    """Move the habit, if it is among them, before the other actions; int64 `[A]`."""
    for i in range(count):
        if actions[i] == habit:
            actions[i] = actions[0]
            actions[0] = habit
