"""The agents that search: `flat:N`, `search:N`, `look:N`. They see observations and masks only."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import cpu_count

from threeup_agents.search.decision import DRAWN_WORLDS
from threeup_agents.search.flat import flat_rows
from threeup_agents.search.halving import search_rows
from threeup_agents.search.look import look_rows
from threeup_agents.search.value import shipped, shipped_file
from threeup_env.engine.actions import ACTION_NAMES, NUM_ACTIONS, action_id
from threeup_env.engine.checks import checked_masks, checked_observations
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import write_seen
from threeup_env.engine.observation import decode, num_players_of
from threeup_env.engine.rng import AGENTS, streams
from threeup_env.engine.rules import write_legal_actions
from threeup_env.engine.state import STATE_DTYPE

TEMPLATE: Final = Path(__file__).with_name("decision.html")
Kernel: TypeAlias = Callable[..., None]
Decide: TypeAlias = Callable[..., tuple[npt.NDArray[Any], ...]]
"""From some rows' observations and masks to their choices, and more."""
_TASKS_PER_THREAD: Final = 4


@dataclass(frozen=True, repr=False)
class Decision:
    """What a search found in one decision; shows as a table, best first."""

    agent: str
    """Name of the agent that searched."""
    chosen: str
    """The action that it takes."""
    actions: tuple[str, ...]
    """Names of the legal actions, best value first, `[K]`."""
    visits: npt.NDArray[np.int64]
    """Rollouts that began with each action, `[K]`."""
    values: npt.NDArray[np.float64]
    """Mean win share of the seat over these; nan if there were none; `[K]`."""

    @property
    def weights(self) -> dict[int, float]:
        """The visits by action, as recordings keep them."""
        pairs = zip(map(action_id, self.actions), self.visits.tolist(), strict=True)
        return {action: float(visits) for action, visits in sorted(pairs)}

    def __repr__(self) -> str:
        rows = zip(self.actions, self.visits, self.values, strict=True)
        lines = [f"{self.agent} takes {self.chosen}", f"{'action':12}{'visits':>8}{'value':>8}"]
        return "\n".join(lines + [f"{name:12}{n:8}{value:8.3f}" for name, n, value in rows])

    def _repr_html_(self) -> str:
        from threeup_agents.pages import fill  # who searches need not draw

        rows = zip(self.actions, self.visits.tolist(), self.values.tolist(), strict=True)
        return fill(TEMPLATE, found=self, rows=list(rows), most=max(int(self.visits.max()), 1))


class _Searcher:
    """Both searches: rows spread over the cores, and explanations."""

    def __init__(
        self, name: str, kernel: Kernel, count: int, seed: int, num_threads: int | None
    ) -> None:
        if count < 1:
            raise ValueError(f"{name}: expected at least 1; got {count!r}")
        self.name = f"{name}:{count}"
        self.count = count
        self.num_threads = num_threads or cpu_count()
        self._kernel = kernel
        self._seed = streams(seed, 1, AGENTS)[0]

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`.

        A row's choice depends on the seed, its observation and its mask: not on the other
        rows and not on the number of threads.
        """
        return spread(observations, action_masks, self.num_threads, self._decide)

    def explain(
        self,
        observation: npt.NDArray[np.int8],
        action_mask: npt.NDArray[np.bool_] | None = None,
    ) -> Decision:
        """Search as `act` does and tell what was found.

        Args:
            observation: of a seat that is to act; int8 `[F]`.
            action_mask: the actions to choose from, bool `[A]`; None means the legal ones.

        Raises:
            ValueError: an observation of a seat that isn't to act, or a mask with an illegal
                action or none.

        Example:
            >>> from threeup_env import Batch
            >>> batch = Batch(num_games=1)
            >>> batch.reset()
            >>> decision = Search(100).explain(batch.observations[0])
            >>> decision.visits.sum()
            np.int64(100)
        """
        vector = checked_observations(np.asarray(observation)[None])[0]
        mask = legal_mask(vector, action_mask)
        actions, visits, totals = self._decide(vector[None], mask[None])
        legal = np.flatnonzero(mask)
        counts = visits[0, legal]
        values = np.full(len(legal), np.nan)
        np.divide(totals[0, legal], counts, out=values, where=counts > 0)
        order = np.argsort(-values, kind="stable")
        return Decision(
            agent=self.name,
            chosen=ACTION_NAMES[actions[0]],
            actions=tuple(ACTION_NAMES[action] for action in legal[order]),
            visits=counts[order],
            values=values[order],
        )

    def _decide(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Choices, visits and totals of some rows, in this thread."""
        visits = np.empty(action_masks.shape, np.int64)
        totals = np.empty(action_masks.shape, np.float64)
        actions = np.empty(len(action_masks), np.int64)
        self._kernel(
            observations,
            action_masks,
            self._seed,
            self.count,
            DRAWN_WORLDS,
            visits,
            totals,
            actions,
        )
        return actions, visits, totals


class Flat(_Searcher):
    """Flat Monte Carlo: rolls out every legal action in each of N drawn worlds.

    Args:
        num_worlds: worlds a decision, N.
        seed: starts the agent's own random stream.
        num_threads: threads for a batch; None means one for each core.
    """

    def __init__(self, num_worlds: int, seed: int = 0, num_threads: int | None = None) -> None:
        super().__init__("flat", flat_rows, num_worlds, seed, num_threads)


class Search(_Searcher):
    """Information-set Monte Carlo tree search, N iterations a decision.

    At a table of three or more it searches only once the draw pile is gone, and plays as `careful`
    before: searching gains nothing there.

    Args:
        num_iterations: drawn worlds and rollouts a decision, N. A rollout ends after a few turns
            with the judgement of a small network (`threeup_agents.search.value`).
        seed: starts the agent's own random stream.
        num_threads: threads for a batch; None means one for each core.
    """

    def __init__(self, num_iterations: int, seed: int = 0, num_threads: int | None = None) -> None:
        super().__init__("search", tree_rows, num_iterations, seed, num_threads)

    def data_files(self, num_players: int) -> list[Path]:
        """The value network that it judges by."""
        return [shipped_file(num_players)]


class Look(_Searcher):
    """A look ahead in W drawn worlds where there is no draw pile; elsewhere as `careful`.

    Args:
        num_worlds: worlds a decision, W.
        seed: starts the agent's own random stream.
        num_threads: threads for a batch; None means one for each core.
    """

    def __init__(self, num_worlds: int, seed: int = 0, num_threads: int | None = None) -> None:
        super().__init__("look", ahead_rows, num_worlds, seed, num_threads)

    def data_files(self, num_players: int) -> list[Path]:
        """The value network that it judges by."""
        return [shipped_file(num_players)]


def ahead_rows(observations: npt.NDArray[np.int8], *arguments: Any) -> None:
    """`look_rows` with the value network of the table size; arguments as there."""
    kernel: Kernel = look_rows
    kernel(observations, *arguments, shipped(num_players_of(observations)))


def tree_rows(observations: npt.NDArray[np.int8], *arguments: Any) -> None:
    """`search_rows` with the value network of the table size; arguments as there."""
    kernel: Kernel = search_rows
    kernel(observations, *arguments, shipped(num_players_of(observations)))


def spread(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    num_threads: int,
    decide: Decide,
) -> npt.NDArray[np.int64]:
    """Check what an agent is asked and decide the rows that have a choice, spread over threads.

    Args:
        observations: int8 `[B, F]`.
        action_masks: bool `[B, A]`.
        num_threads: at most so many.
        decide: decides some rows, each on its own.

    Returns:
        int64 `[B]`.

    Raises:
        ValueError: not observations, or a mask allows an illegal action; names the row.
    """
    action_masks = checked_masks(action_masks)
    observations = checked_observations(observations)
    check_legal(observations, action_masks)
    actions: npt.NDArray[np.int64] = action_masks.argmax(axis=1)
    rows = np.flatnonzero(action_masks.sum(axis=1) > 1)
    if not len(rows):
        return actions
    parts = np.array_split(rows, min(len(rows), num_threads * _TASKS_PER_THREAD))
    pairs = [(observations[part], action_masks[part]) for part in parts]
    if num_threads == 1 or len(parts) == 1:
        results = [decide(*pair)[0] for pair in pairs]
    else:
        with ThreadPoolExecutor(num_threads) as pool:
            results = list(pool.map(lambda pair: decide(*pair)[0], pairs))
    actions[rows] = np.concatenate(results)
    return actions


def legal_mask(
    observation: npt.NDArray[np.int8], action_mask: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """The actions that the observer may choose from; bool `[A]`.

    Args:
        observation: int8 `[F]`.
        action_mask: bool `[A]`; None means all that are legal.

    Raises:
        ValueError: it isn't the observer's decision, or a mask with an illegal action or none.
    """
    num_players_of(observation)
    if not decode(observation)["seats"]["acting"][0]:
        raise ValueError("observation: expected one of the seat to act; got another seat's")
    legal = np.zeros(NUM_ACTIONS, np.bool_)
    write_legal_mask(observation, legal)
    if action_mask is None:
        return legal
    mask = np.array(action_mask, np.bool_)
    if mask.shape != legal.shape or not mask.any() or (mask & ~legal).any():
        names = ", ".join(repr(ACTION_NAMES[action]) for action in np.flatnonzero(legal))
        raise ValueError(f"action_mask: expected one or more of {names}")
    return mask


def check_legal(observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]) -> None:
    """Check that masks allow nothing that the rules forbid: a search plays what they allow.

    Raises:
        ValueError: names row and action.
    """
    row, action = first_illegal(observations, action_masks)
    if row >= 0:
        raise ValueError(
            f"action_masks: expected legal actions alone; row {row} has {ACTION_NAMES[action]!r}"
        )


@compiled
def first_illegal(
    observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
) -> tuple[int, int]:
    """The first row and action that is allowed against the rules; -1 and 0 if none is."""
    mask = np.empty(NUM_ACTIONS, np.bool_)
    for row in range(len(observations)):
        for action in range(NUM_ACTIONS):
            mask[action] = False
        write_legal_mask(observations[row], mask)
        for action in range(NUM_ACTIONS):
            if action_masks[row, action] and not mask[action]:
                return row, action
    return -1, 0


@compiled
def write_legal_mask(vector: npt.NDArray[np.int8], mask: npt.NDArray[np.bool_]) -> None:
    """Mark the legal actions; `mask` bool `[A]` comes in all False."""
    games = np.zeros(1, STATE_DTYPE)
    legal = np.empty(NUM_ACTIONS, np.int64)
    write_seen(vector, games[0])
    for i in range(write_legal_actions(games[0], legal)):
        mask[legal[i]] = True
