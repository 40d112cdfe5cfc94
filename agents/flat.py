"""Flat Monte Carlo: every legal action rolled out in the same drawn worlds."""

import numpy as np
import numpy.typing as npt

from agents.careful import careful_action
from agents.worlds import (
    choose,
    compare,
    decision_stream,
    first_of,
    roll_out,
    write_masked,
)
from threeup_env.actions import NUM_ACTIONS
from threeup_env.cards import MAX_DECK_SIZE
from threeup_env.compiled import compiled
from threeup_env.determinize import deal_unseen, write_seen, write_unseen
from threeup_env.observation import SEAT
from threeup_env.rules import apply_action, win_share
from threeup_env.state import STATE_DTYPE


@compiled
def flat_rows(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    seed: np.uint64,
    num_worlds: int,
    worlds: npt.NDArray[np.void],
    visits: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
    actions: npt.NDArray[np.int64],
) -> None:
    """Decide every row on its own.

    Args:
        observations: of the seats to act; int8 `[B, F]`.
        action_masks: the actions to choose from; bool `[B, A]`.
        seed: the agent's own.
        num_worlds: worlds rolled out for each action.
        worlds: `DRAWN_WORLDS`, or records to use in turn instead; `STATE_DTYPE` `[W]`.
        visits: rollouts of each action; int64 `[B, A]`, overwritten.
        totals: sum of the seat's win shares over them; float64 `[B, A]`, overwritten.
        actions: the choices; int64 `[B]`, overwritten.
    """
    games = np.zeros(3, STATE_DTYPE)
    cards = np.empty(MAX_DECK_SIZE, np.int8)
    legal = np.empty(NUM_ACTIONS, np.int64)
    comparisons = np.empty((NUM_ACTIONS, 3), np.float64)
    stream = np.empty(1, np.uint64)
    for row in range(len(observations)):
        vector = observations[row]
        observer = int(vector[SEAT])
        stream[0] = decision_stream(seed, vector, action_masks[row])
        for action in range(NUM_ACTIONS):
            visits[row, action] = 0
            totals[row, action] = 0.0
            for i in range(3):
                comparisons[action, i] = 0.0

        # games: what the seat sees, one world, and the rollout that it is copied to
        write_seen(vector, games[0])
        size = write_unseen(vector, cards)
        count = write_masked(action_masks[row], legal)
        first_of(legal, count, careful_action(games[0]))
        for i in range(num_worlds):
            if len(worlds) > 0:
                games[1] = worlds[i % len(worlds)]
            else:
                games[1] = games[0]
                deal_unseen(games[1], cards, size, stream)
            reference_share = 0.0
            for k in range(count):
                games[2] = games[1]
                game = games[2]
                apply_action(game, legal[k])
                roll_out(game, observer)
                share = win_share(game, observer)
                if k == 0:
                    reference_share = share
                visits[row, legal[k]] += 1
                totals[row, legal[k]] += share
                compare(comparisons, legal[k], share, reference_share)
        actions[row] = choose(comparisons, legal[0])
