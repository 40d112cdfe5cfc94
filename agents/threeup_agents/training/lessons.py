"""What is learnt from by looking ahead: the gains of each action of a decision."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.search.position import NUM_LOOKED, PositionNetwork
from threeup_agents.search.positional import MARGIN
from threeup_agents.search.scoring import write_lessons
from threeup_agents.search.value import ValueNetwork, shipped
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.observation import num_players_of

NUM_WORLDS: Final = 8
"""Worlds drawn for a decision, for each of its two looks."""
PARTS: Final = 4
"""That work is split into for each thread."""
TRUE_SHARE: Final = 0.3
"""Weight of the true world among those that are learnt from."""

_pool: Final = ThreadPoolExecutor()


class Lessons(NamedTuple):
    """Decisions to learn from, N of them, with M actions in all."""

    observations: npt.NDArray[np.int8]
    """`[N, F]`."""
    counts: npt.NDArray[np.int64]
    """Legal actions of each; `[N]`."""
    actions: npt.NDArray[np.int64]
    """One decision's after the other's; `[M]`."""
    looked: npt.NDArray[np.float32]
    """What looking has found about them, see `write_looked`; `[M, NUM_LOOKED]`."""
    gains: npt.NDArray[np.float32]
    """Win share over what `careful` does, in other worlds; `[M]`."""


def learn_from(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    states: npt.NDArray[np.void],
    seed: np.uint64,
    network: PositionNetwork,
    num_threads: int,
) -> tuple[Lessons, npt.NDArray[np.int64]]:
    """Lessons of some decisions, and what the network does there.

    Args:
        observations: of the seats to act; int8 `[K, F]`.
        action_masks: bool `[K, A]`.
        states: the true games, to learn from alone; `STATE_DTYPE` `[K]`.
        seed: starts the streams of the worlds, each row's on its own.
        network: chooses.
        num_threads: to look ahead on.

    Returns:
        The lessons, and actions, int64 `[K]`.
    """
    size = len(observations)
    looked = np.zeros((size, NUM_ACTIONS, NUM_LOOKED), np.float32)
    gains = np.zeros((size, NUM_ACTIONS), np.float32)
    actions = np.empty(size, np.int64)
    values: ValueNetwork = shipped(num_players_of(observations))

    def work(part: slice) -> None:
        write_lessons(
            observations[part],
            action_masks[part],
            states[part],
            seed,
            NUM_WORLDS,
            MARGIN,
            TRUE_SHARE,
            looked[part],
            gains[part],
            actions[part],
            values,
            network,
        )

    in_parts(size, work, num_threads)
    rows, legal = np.nonzero(action_masks)
    counts = action_masks.sum(axis=1)
    lessons = Lessons(observations, counts, legal, looked[rows, legal], gains[rows, legal])
    return lessons, actions


def in_parts(size: int, work: Callable[[slice], None], num_threads: int) -> None:
    """Do work on rows, in this thread and others; each part begins with an even row.

    There are more parts than threads, so that nobody waits long for a thread that is slowed down.

    Args:
        size: rows.
        work: does those of a slice.
        num_threads: how many, this one among them.
    """
    num_parts = 1 if num_threads == 1 else min(PARTS * num_threads, max(size, 1))
    edges = np.linspace(0, size, num_parts + 1, dtype=int)
    edges[1:-1] += edges[1:-1] % 2  # so that each row is as even as in one part
    parts = iter([slice(*pair) for pair in pairwise(edges.tolist())])

    def help_out() -> None:
        for part in parts:
            work(part)

    helpers = [_pool.submit(help_out) for _ in range(min(num_threads, num_parts) - 1)]
    help_out()
    for helper in helpers:
        helper.result()
