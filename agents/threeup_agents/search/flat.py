"""Flat Monte Carlo: every legal action rolled out in the same drawn worlds."""

import numpy as np
import numpy.typing as npt

from threeup_agents.search.decision import choose, compare, draw_world, new_desk, open_decision
from threeup_agents.search.rollouts import roll_out
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import SEAT
from threeup_env.engine.rules import apply_action, win_share


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
    desk = new_desk()
    legal = desk.legal
    for row in range(len(observations)):
        observer = int(observations[row, SEAT])
        count, size = open_decision(
            desk, seed, observations[row], action_masks[row], visits[row], totals[row]
        )
        for i in range(num_worlds):
            draw_world(desk, size, worlds, i)
            reference_share = 0.0
            for k in range(count):
                desk.games[2] = desk.games[1]
                game = desk.games[2]
                apply_action(game, legal[k])
                roll_out(game, observer)
                share = win_share(game, observer)
                if k == 0:
                    reference_share = share
                visits[row, legal[k]] += 1
                totals[row, legal[k]] += share
                compare(desk.comparisons, legal[k], share, reference_share)
        actions[row] = choose(desk.comparisons, legal[0])
