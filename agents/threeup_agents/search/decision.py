"""What the searches share: how a decision is opened, its worlds drawn, and its end read.

All of it is compiled. A search sees an observation and a mask and plays on in worlds drawn
to agree with them. Its kernel can be given records to use instead: no agent does that, only
`tests/benchmarks`, to see how much hidden cards cost.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.players.careful import careful_action
from threeup_agents.search.value import SHEET_DTYPE
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_DECK_SIZE
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import deal_unseen, write_seen, write_unseen
from threeup_env.engine.state import STATE_DTYPE, Record

DRAWN_WORLDS: Final = np.empty(0, STATE_DTYPE)
"""Given for `worlds` to a search: draw them from the observation."""
CAUTION: Final = 1.0
"""Standard errors by which an action must beat what `careful` does."""


class Desk(NamedTuple):
    """What a search works with, made once for all of a call's rows."""

    games: npt.NDArray[np.void]
    """What the searcher sees, a world, and the copy of it that is played on; `[3]`."""
    cards: npt.NDArray[np.int8]
    """The unseen cards."""
    legal: npt.NDArray[np.int64]
    """The actions to choose from, the habit first; `[A]`."""
    comparisons: npt.NDArray[np.float64]
    """See `compare`; `[A, 3]`."""
    stream: npt.NDArray[np.uint64]
    """Of the decision; `[1]`."""
    sheet: npt.NDArray[np.void]
    """What judgements are worked out on, see `value`; `[1]`."""


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


@compiled
def pays(seen: Record) -> bool:
    """Whether looking ahead pays here: between two always, else without a draw pile.

    Elsewhere nothing that was tried gains anything over `careful`.
    """
    return bool(seen.num_seats == 2 or (seen.laying == 0 and seen.draw_pile_size == 0))


@compiled
def new_desk() -> Desk:
    """Room for one decision at a time."""
    return Desk(
        np.zeros(3, STATE_DTYPE),
        np.empty(MAX_DECK_SIZE, np.int8),
        np.empty(NUM_ACTIONS, np.int64),
        np.empty((NUM_ACTIONS, 3), np.float64),
        np.empty(1, np.uint64),
        np.zeros(1, SHEET_DTYPE),
    )


@compiled
def open_decision(
    desk: Desk,
    seed: np.uint64,
    vector: npt.NDArray[np.int8],
    mask: npt.NDArray[np.bool_],
    visits: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
) -> tuple[int, int]:
    """Lay out a decision on the desk, its counts at zero.

    Args:
        desk: overwritten.
        seed: the agent's own.
        vector: of the seat to act; int8 `[F]`.
        mask: the actions to choose from; bool `[A]`.
        visits: int64 `[A]`, overwritten with 0.
        totals: float64 `[A]`, likewise.

    Returns:
        How many actions there are to choose from, and how many cards are unseen.
    """
    desk.stream[0] = decision_stream(seed, vector, mask)
    for action in range(NUM_ACTIONS):
        visits[action] = 0
        totals[action] = 0.0
        for i in range(3):
            desk.comparisons[action, i] = 0.0
    write_seen(vector, desk.games[0])
    size = write_unseen(vector, desk.cards)
    count = write_masked(mask, desk.legal)
    first_of(desk.legal, count, careful_action(desk.games[0]))
    return count, size


@compiled
def draw_world(desk: Desk, size: int, worlds: npt.NDArray[np.void], number: int) -> None:
    """Put the next world into `desk.games[1]`: drawn, or one of `worlds` if there are any."""
    if len(worlds) > 0:
        desk.games[1] = worlds[number % len(worlds)]
    else:
        desk.games[1] = desk.games[0]
        deal_unseen(desk.games[1], desk.cards, size, desk.stream)
