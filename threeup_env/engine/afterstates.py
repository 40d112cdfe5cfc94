"""What a seat knows after its own action, before chance answers: afterstates.

Most actions are certain for who takes them: cards move from one open place to another. What
chance adds are cards drawn at the end of a turn, and what the others have laid; here they
count, but have no rank yet, as other hidden cards.
"""

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import ACTION_NAMES, FLIP, NUM_ACTIONS
from threeup_env.engine.checks import checked_observations
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import write_seen
from threeup_env.engine.observation import SEAT, write_observation
from threeup_env.engine.rules import apply_action, write_legal_actions
from threeup_env.engine.state import STATE_DTYPE, Record


def afterstates(
    observations: npt.NDArray[np.int8], actions: npt.NDArray[np.int64]
) -> npt.NDArray[np.int8]:
    """Observations as they will be right after an action, but for what chance adds.

    Where nothing is drawn (and nobody shows what it has laid) this is what the seat will
    observe. Else the drawn cards count in `hand_size[0]`, are missing from `hand[0]` and stay in
    `unseen`; what the others have laid (R5) stays hidden.

    Args:
        observations: of the seats to act; int8 `[B, F]`.
        actions: legal ones, not `flip`, whose card nobody knows; int64 `[B]`.

    Returns:
        int8 `[B, F]`; agents don't take it where cards were drawn.

    Raises:
        ValueError: not observations, or another action; names row and action.

    Example:
        >>> from threeup_env import Batch, action_id, describe
        >>> batch = Batch(num_games=1, seed=2)
        >>> batch.reset()
        >>> actions = batch.action_masks.argmax(axis=1)
        >>> after = afterstates(batch.observations, actions)
        >>> int(batch.observations[0, 2]), int(after[0, 2])  # the field `laying`
        (3, 2)
    """
    vectors = checked_observations(observations)
    actions = np.asarray(actions)
    if actions.shape != (len(vectors),) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"actions: expected integers of shape {(len(vectors),)}; "
            f"got {actions.dtype} of shape {actions.shape}"
        )
    found = np.empty_like(vectors)
    row = write_afterstates(vectors, actions.astype(np.int64), found)
    if row >= 0:
        action = int(actions[row])
        name = ACTION_NAMES[action] if 0 <= action < NUM_ACTIONS else "no action"
        raise ValueError(
            f"actions: expected one of the seat to act, legal and not 'flip'; "
            f"row {row} has {action} {name!r}"
        )
    return found


@compiled
def write_afterstates(
    vectors: npt.NDArray[np.int8],
    actions: npt.NDArray[np.int64],
    found: npt.NDArray[np.int8],
) -> int:
    """Fill `found`, int8 `[B, F]`; gives the first row whose action is refused, or -1."""
    games = np.zeros(1, STATE_DTYPE)
    legal = np.empty(NUM_ACTIONS, np.int64)
    for row in range(len(vectors)):
        write_seen(vectors[row], games[0])
        observer = int(vectors[row, SEAT])
        allowed = False
        if games[0].seat == observer and actions[row] != FLIP:
            for i in range(write_legal_actions(games[0], legal)):
                allowed = allowed or legal[i] == actions[row]
        if not allowed:
            return row
        write_after(games[0], int(actions[row]))
        write_observation(games[0], observer, found[row])
    return -1


@compiled
def write_after(seen: Record, action: int) -> None:
    """Take an action in what its seat sees.

    Args:
        seen: as `write_seen` leaves it. Changed: the cards that the seat draws count in its
            `hand_size` and have no rank, as other hidden cards; `deal_unseen` deals them.
        action: a legal one of the seat to act, not `flip`; not checked.
    """
    seat = int(seen.seat)
    before = int(seen.draw_pile_size)
    apply_action(seen, action)
    # A hidden draw pile holds zeros: what was drawn from it came as cards of rank 0.
    seen.hand[seat, 0] -= before - seen.draw_pile_size
