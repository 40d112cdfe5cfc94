"""Decisions by the network on the position after each action, with a look ahead or without.

`policy_rows` plays; `write_lessons` is for those who train the network.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.search.decision import (
    DRAWN_WORLDS,
    Desk,
    choose,
    new_desk,
    open_decision,
    pays,
)
from threeup_agents.search.look import look
from threeup_agents.search.position import (
    NUM_LOOKED,
    PositionNetwork,
    add_features,
    score,
    write_looked,
    write_position,
)
from threeup_agents.search.value import HORIZON, VARIANT, ValueNetwork, horizon
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.afterstates import write_after
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import write_seen
from threeup_env.engine.state import STATE_DTYPE, Record


class Sheet(NamedTuple):
    """What the network is computed on, made once for all of a call's rows."""

    after: npt.NDArray[np.void]
    """The position after an action; `[1]`."""
    features: npt.NDArray[np.float32]
    """`[P]`."""
    before: npt.NDArray[np.float32]
    """The features that `first` stands for; `[P]`."""
    first: npt.NDArray[np.float32]
    """`[H]`."""
    second: npt.NDArray[np.float32]
    """`[G]`."""


@compiled
def new_sheet(network: PositionNetwork) -> Sheet:
    """Room for one position at a time."""
    size = len(network.first)
    return Sheet(
        np.zeros(1, STATE_DTYPE),
        np.zeros(size, np.float32),
        np.zeros(size, np.float32),
        network.first_biases.copy(),
        np.empty(len(network.last), np.float32),
    )


@compiled
def is_scored(seen: Record, variant: int) -> bool:
    """Whether a network for one variant decides here: where looking pays.

    Not near the step limit (R21), which it doesn't see, in the variant that is played by `value`.
    """
    return bool(
        pays(seen) and seen.variant == variant and (variant != VARIANT or horizon(seen) == HORIZON)
    )


@compiled
def write_scored(
    observations: npt.NDArray[np.int8], variant: int, scored: npt.NDArray[np.bool_]
) -> None:
    """Write `is_scored` of each row; int8 `[K, F]` of the seats to act, bool `[K]` overwritten."""
    games = np.zeros(1, STATE_DTYPE)
    for row in range(len(observations)):
        write_seen(observations[row], games[0])
        scored[row] = is_scored(games[0], variant)


@compiled
def write_scores(
    desk: Desk,
    count: int,
    sheet: Sheet,
    network: PositionNetwork,
    margin: float,
    scores: npt.NDArray[np.float64],
) -> int:
    """Score the actions of the decision on the desk by where they lead, and choose.

    Args:
        desk: with the decision laid out on it, looked ahead in or not.
        count: actions to choose from.
        sheet: overwritten.
        network: of this table size.
        margin: win share that an action must gain over the habit to be preferred to it.
        scores: expected gains over the habit, in win shares; float64 `[A]`, those of the actions
            to choose from overwritten.

    Returns:
        The action that gains most, or the habit.
    """
    legal = desk.legal
    observer = int(desk.games[0].seat)
    features = sheet.features
    for k in range(count):
        action = legal[k]
        sheet.after[0] = desk.games[0]
        write_after(sheet.after[0], action)
        write_position(sheet.after[0], observer, features)
        worlds, total, squares = desk.comparisons[action]
        looked = features[len(features) - NUM_LOOKED :]
        write_looked(worlds, total, squares, k == 0, looked)
        add_features(network, features, sheet.before, sheet.first)
        scores[action] = score(network, sheet.first, sheet.second)
    best = legal[0]
    habit = scores[best]
    lead = margin
    for k in range(count):
        action = legal[k]
        scores[action] -= habit
        if scores[action] > lead:
            lead = scores[action]
            best = action
    return int(best)


@compiled
def policy_rows(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    seed: np.uint64,
    num_worlds: int,
    margin: float,
    visits: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
    actions: npt.NDArray[np.int64],
    values: ValueNetwork,
    network: PositionNetwork,
    variant: int,
) -> None:
    """Decide every row on its own: by the network, by the look alone, or by habit.

    The network doesn't know other variants, nor how near the step limit is (R21). There the look
    decides, which then plays its worlds to the end, if there is one.

    Args:
        observations: of the seats to act; int8 `[B, F]`.
        action_masks: the actions to choose from; bool `[B, A]`.
        seed: the agent's own.
        num_worlds: worlds drawn to look ahead in; 0 for the network alone.
        margin: see `write_scores`.
        visits: worlds in which each action was played on; int64 `[B, A]`, overwritten.
        scores: see `write_scores`; float64 `[B, A]`, overwritten.
        actions: the choices; int64 `[B]`, overwritten.
        values: judges how they go on; of this table size.
        network: likewise.
        variant: that the network knows.
    """
    desk = new_desk()
    sheet = new_sheet(network)
    totals = np.empty(NUM_ACTIONS, np.float64)
    for row in range(len(observations)):
        count, size = open_decision(
            desk, seed, observations[row], action_masks[row], visits[row], totals
        )
        actions[row] = desk.legal[0]
        for action in range(NUM_ACTIONS):
            scores[row, action] = 0.0
        seen = desk.games[0]
        if num_worlds > 0 and pays(seen):
            look(desk, count, size, num_worlds, DRAWN_WORLDS, visits[row], totals, values)
        if is_scored(seen, variant):
            actions[row] = write_scores(desk, count, sheet, network, margin, scores[row])
        else:
            actions[row] = choose(desk.comparisons, desk.legal[0])


@compiled
def write_lessons(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    states: npt.NDArray[np.void],
    seed: np.uint64,
    num_worlds: int,
    margin: float,
    true_share: float,
    looked: npt.NDArray[np.float32],
    gains: npt.NDArray[np.float32],
    actions: npt.NDArray[np.int64],
    values: ValueNetwork,
    network: PositionNetwork,
) -> None:
    """Look ahead twice: in some worlds for the network to see, in others for it to predict.

    The true game is one of the others. It holds what the seats' play tells of their hands, which
    drawn worlds don't, so that the network can learn that too.

    Args:
        observations: of the seats to act; int8 `[K, F]`.
        action_masks: the legal actions; bool `[K, A]`.
        states: the true games; `STATE_DTYPE` `[K]`, read only.
        seed: starts the streams of the worlds.
        num_worlds: worlds drawn for each look.
        margin: see `write_scores`.
        true_share: weight of the true game in `gains`; the drawn ones have the rest.
        looked: see `write_looked`; float32 `[K, A, NUM_LOOKED]`, overwritten where legal.
        gains: over the habit, in win share; float32 `[K, A]`, overwritten where legal.
        actions: what the network chooses, with the first look or, in every other row, without;
            int64 `[K]`, overwritten.
        values: judges how they go on; of this table size.
        network: likewise.
    """
    desk = new_desk()
    sheet = new_sheet(network)
    visits = np.empty(NUM_ACTIONS, np.int64)
    totals = np.empty(NUM_ACTIONS, np.float64)
    scores = np.zeros(NUM_ACTIONS, np.float64)
    for row in range(len(observations)):
        count, size = open_decision(
            desk, seed, observations[row], action_masks[row], visits, totals
        )
        if row % 2 == 1:
            actions[row] = write_scores(desk, count, sheet, network, margin, scores)
        look(desk, count, size, num_worlds, DRAWN_WORLDS, visits, totals, values)
        if row % 2 == 0:
            actions[row] = write_scores(desk, count, sheet, network, margin, scores)
        for k in range(count):
            action = desk.legal[k]
            worlds, total, squares = desk.comparisons[action]
            write_looked(worlds, total, squares, k == 0, looked[row, action])
            gains[row, action] = 0.0
        clear(desk, count)
        look(desk, count, size, num_worlds, DRAWN_WORLDS, visits, totals, values)
        add_gains(desk, count, (1.0 - true_share) / num_worlds, gains[row])
        clear(desk, count)
        look(desk, count, size, 1, states[row : row + 1], visits, totals, values)
        add_gains(desk, count, true_share, gains[row])


@compiled
def clear(desk: Desk, count: int) -> None:
    """Forget what has been compared of the actions to choose from."""
    for k in range(count):
        for i in range(desk.comparisons.shape[1]):
            desk.comparisons[desk.legal[k], i] = 0.0


@compiled
def add_gains(desk: Desk, count: int, weight: float, gains: npt.NDArray[np.float32]) -> None:
    """Add to each action's gain, float32 `[A]`, those of all worlds compared, times a weight."""
    for k in range(count):
        action = desk.legal[k]
        gains[action] += weight * desk.comparisons[action, 1]


@compiled
def write_inputs(
    observations: npt.NDArray[np.int8],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32],
) -> None:
    """Write the features of positions, but for what looking ahead has found.

    Args:
        observations: of the seats to act; int8 `[N, F]`.
        rows: whose decision it is; int64 `[M]`.
        actions: the action before the position; int64 `[M]`.
        features: float32 `[M, P]`; all but the last `NUM_LOOKED` of each row are overwritten.
    """
    games = np.zeros(2, STATE_DTYPE)
    last = -1
    for i in range(len(rows)):
        if rows[i] != last:
            last = rows[i]
            write_seen(observations[last], games[0])
        games[1] = games[0]
        write_after(games[1], actions[i])
        write_position(games[1], int(games[0].seat), features[i])
