"""The two agents that need nothing but the mask: `random` and `greedy`."""

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import (
    DRAW,
    FIRST_PLAY,
    FLIP,
    MAX_PLAYED,
    NUM_ACTIONS,
    PICK_UP,
    PLAY_ONE,
)
from threeup_env.engine.cards import NUM_RANKS
from threeup_env.engine.checks import checked_masks
from threeup_env.engine.compiled import compiled
from threeup_env.engine.rng import AGENTS, random_below, streams


class Random:
    """Plays every legal action with the same probability, from a stream of its own.

    Args:
        seed: starts the stream.
    """

    def __init__(self, seed: int = 0) -> None:
        self.name = "random"
        self._stream = streams(seed, 1, AGENTS)

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`."""
        actions = np.empty(len(action_masks), np.int64)
        choose_random(self._stream, checked_masks(action_masks), actions)
        return actions


class Greedy:
    """Sheds as much as it can of the lowest it can, and saves its high cards.

    Lays its highest cards face up; draws when it may; plays the lowest playable rank,
    all copies of it. The same mask always gets the same action.
    """

    def __init__(self) -> None:
        self.name = "greedy"

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`."""
        actions = np.empty(len(action_masks), np.int64)
        choose_greedy(checked_masks(action_masks), actions)
        return actions


@compiled
def choose_random(
    stream: npt.NDArray[np.uint64],
    action_masks: npt.NDArray[np.bool_],
    actions: npt.NDArray[np.int64],
) -> None:
    """Draw one legal action per row, all equally likely.

    Args:
        stream: uint64 `[1]`; advanced once or more a row.
        action_masks: bool `[B, A]`; each row has a True.
        actions: int64 `[B]`; overwritten.
    """
    for row in range(len(actions)):
        count = 0
        for action in range(NUM_ACTIONS):
            if action_masks[row, action]:
                count += 1
        skip = random_below(stream, count)
        action = 0
        while not action_masks[row, action] or skip > 0:
            if action_masks[row, action]:
                skip -= 1
            action += 1
        actions[row] = action


@compiled
def choose_greedy(action_masks: npt.NDArray[np.bool_], actions: npt.NDArray[np.int64]) -> None:
    """Choose as `Greedy` does.

    Args:
        action_masks: bool `[B, A]`; each row has a True.
        actions: int64 `[B]`; overwritten.
    """
    for row in range(len(actions)):
        actions[row] = greedy_action(action_masks[row])


@compiled
def greedy_action(mask: npt.NDArray[np.bool_]) -> int:
    """The action that `Greedy` takes under one mask; bool `[A]`."""
    for rank in range(FIRST_PLAY - 1, -1, -1):
        if mask[rank]:
            return rank
    if mask[DRAW]:
        return DRAW
    for rank in range(NUM_RANKS):
        for extra in range(MAX_PLAYED[rank] - 1, -1, -1):
            if mask[PLAY_ONE[rank] + extra]:
                return int(PLAY_ONE[rank] + extra)
    return FLIP if mask[FLIP] else PICK_UP
