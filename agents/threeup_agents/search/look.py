"""One look ahead: every action played on in the same drawn worlds for a few turns. No tree.

It looks in play without a draw pile, where looking is worth most for its time; elsewhere
`careful` plays.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.search.decision import (
    DRAWN_WORLDS,
    Desk,
    choose,
    compare,
    draw_world,
    new_desk,
    open_decision,
)
from threeup_agents.search.value import (
    ValueNetwork,
    horizon,
    play_on,
    shipped,
    write_shares,
)
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.checks import checked_observations
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import num_players_of
from threeup_env.engine.rng import AGENTS, streams
from threeup_env.engine.rules import apply_action


class LookedAhead(NamedTuple):
    """What each action gains over what `careful` does, in win share."""

    gains: npt.NDArray[np.float64]
    """0 for the action of `careful`, and for what is illegal or was not looked at; `[B, A]`."""
    errors: npt.NDArray[np.float64]
    """Their standard errors; `[B, A]`."""
    habits: npt.NDArray[np.int64]
    """What `careful` does; `[B]`."""


def looked_ahead(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    num_worlds: int,
    seed: int = 0,
) -> LookedAhead:
    """Look ahead in some decisions, whether there is a draw pile or not.

    Args:
        observations: of the seats to act, none of them laying; int8 `[B, F]`.
        action_masks: the legal actions; bool `[B, A]`.
        num_worlds: worlds drawn for each; all actions are played on in the same ones.
        seed: starts their streams.

    Example:
        >>> from threeup_env import Batch
        >>> batch = Batch(num_games=1, seed=2)
        >>> batch.reset()
        >>> for _ in range(6):
        ...     batch.step(batch.action_masks.argmax(axis=1))
        >>> found = looked_ahead(batch.observations, batch.action_masks, num_worlds=8)
        >>> float(found.gains[0, found.habits[0]])
        0.0
    """
    observations = checked_observations(observations)
    shape = action_masks.shape
    comparisons = np.zeros((*shape, 3))
    habits = np.empty(len(observations), np.int64)
    own = streams(seed, 1, AGENTS)[0]
    network = shipped(num_players_of(observations))
    write_comparisons(observations, action_masks, own, num_worlds, comparisons, habits, network)
    worlds = np.maximum(comparisons[..., 0], 1)
    gains = comparisons[..., 1] / worlds
    variances = comparisons[..., 2] / worlds - gains**2
    return LookedAhead(gains, np.sqrt(np.maximum(variances, 0) / worlds), habits)


@compiled
def write_comparisons(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    seed: np.uint64,
    num_worlds: int,
    comparisons: npt.NDArray[np.float64],
    habits: npt.NDArray[np.int64],
    network: ValueNetwork,
) -> None:
    """Fill in what `compare` notes; float64 `[B, A, 3]`. `habits`: int64 `[B]`, overwritten."""
    desk = new_desk()
    visits = np.empty(NUM_ACTIONS, np.int64)
    totals = np.empty(NUM_ACTIONS, np.float64)
    for row in range(len(observations)):
        count, size = open_decision(
            desk, seed, observations[row], action_masks[row], visits, totals
        )
        habits[row] = desk.legal[0]
        look(desk, count, size, num_worlds, DRAWN_WORLDS, visits, totals, network)
        comparisons[row] = desk.comparisons


@compiled
def look(
    desk: Desk,
    count: int,
    size: int,
    num_worlds: int,
    worlds: npt.NDArray[np.void],
    visits: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
    network: ValueNetwork,
) -> None:
    """Play each action of the decision on the desk on in each of its worlds.

    Args:
        desk: with the decision laid out on it.
        count: actions to choose from.
        size: unseen cards.
        num_worlds: worlds to draw.
        worlds: see `look_rows`.
        visits: added to; int64 `[A]`.
        totals: added to; float64 `[A]`.
        network: judges how they go on; of this table size.
    """
    legal = desk.legal
    scratch = np.empty(NUM_ACTIONS, np.int64)
    sheet = desk.sheet[0]
    observer = int(desk.games[0].seat)
    for i in range(num_worlds):
        draw_world(desk, size, worlds, i)
        reference_share = 0.0
        for k in range(count):
            desk.games[2] = desk.games[1]
            game = desk.games[2]
            choices = horizon(game)
            apply_action(game, legal[k])
            play_on(game, observer, choices, scratch)
            write_shares(game, network, sheet)
            share = float(sheet.shares[observer])
            if k == 0:
                reference_share = share
            visits[legal[k]] += 1
            totals[legal[k]] += share
            compare(desk.comparisons, legal[k], share, reference_share)


@compiled
def look_rows(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    seed: np.uint64,
    num_worlds: int,
    worlds: npt.NDArray[np.void],
    visits: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
    actions: npt.NDArray[np.int64],
    network: ValueNetwork,
) -> None:
    """Decide every row on its own: by looking ahead without a draw pile, else by habit.

    Args:
        observations: of the seats to act; int8 `[B, F]`.
        action_masks: the actions to choose from; bool `[B, A]`.
        seed: the agent's own.
        num_worlds: worlds drawn for a decision.
        worlds: `DRAWN_WORLDS`, or records to use in turn instead; `STATE_DTYPE` `[W]`.
        visits: worlds in which each action was played on; int64 `[B, A]`, overwritten.
        totals: sum of the seat's win shares over them; float64 `[B, A]`, overwritten.
        actions: the choices; int64 `[B]`, overwritten.
        network: judges how they go on; of this table size.
    """
    desk = new_desk()
    for row in range(len(observations)):
        count, size = open_decision(
            desk, seed, observations[row], action_masks[row], visits[row], totals[row]
        )
        seen = desk.games[0]
        if seen.laying == 0 and seen.draw_pile_size == 0:
            look(desk, count, size, num_worlds, worlds, visits[row], totals[row], network)
        actions[row] = choose(desk.comparisons, desk.legal[0])
