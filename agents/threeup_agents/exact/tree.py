"""The whole game as a tree: every deal, every legal action, and what each seat has seen.

Two positions look alike to a seat if all that it saw on the way is the same: its own
observations at its decisions and every public event (perfect recall, R22). That is an
information set; its name is a hash of them, which an agent can work out as it plays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_agents.exact.deals import all_deals
from threeup_agents.players.exact import mixed, with_events, with_observations
from threeup_env.engine.batch import Batch
from threeup_env.engine.events import EVENT_DTYPE, event_rows, write_events
from threeup_env.engine.lockstep import KEEP, Shown, new_shown, run_games
from threeup_env.engine.state import STATE_DTYPE

MAX_STEPS: Final = 40
"""The action that cuts a game off: later ones hardly change what the game is worth, and
each takes as much memory again."""
NUM_SEATS: Final = 2
ENDED: Final = -1
"""Child of an edge that ends the game."""

Columns: TypeAlias = dict[str, npt.NDArray[Any]]


class Nodes(NamedTuple):
    """How N nodes, the decisions, hang together; for compiled code.

    The edges of node n are `first_edge[n]` to `first_edge[n + 1] - 1`, by ascending action.
    The k-th action of information set i has the slot `first_slot[i] + k`.
    """

    seat: npt.NDArray[np.int8]
    """Who decides; `[N]`."""
    infoset: npt.NDArray[np.int32]
    """Information set of each node, numbered in the order of their first nodes; `[N]`."""
    first_edge: npt.NDArray[np.int64]
    """`[N + 1]`."""
    child: npt.NDArray[np.int32]
    """The node that an edge leads to, a later one, or ENDED; `[E]`."""
    utility: npt.NDArray[np.int8]
    """Of an edge that ends the game: 1 if seat 0 has won, -1 if seat 1, 0 if it is cut off
    (R21); `[E]`."""
    first_slot: npt.NDArray[np.int64]
    """`[I + 1]`."""


@dataclass(frozen=True)
class Tree:
    """A game of two: N nodes, level by level, I information sets with A slots in all."""

    nodes: Nodes
    chance: npt.NDArray[np.float64]
    """Probability of each deal; the deals are the first nodes; `[D]`."""
    level: npt.NDArray[np.int64]
    """The first node of each level, and N; `[L + 1]`."""
    key: npt.NDArray[np.uint64]
    """Name of each information set; `[I]`."""
    action: npt.NDArray[np.int8]
    """Action of each slot; `[A]`."""
    view: npt.NDArray[np.int32]
    """Which of `observations` an information set has; `[I]`."""
    observations: npt.NDArray[np.int8]
    """The distinct observations; int8 `[V, F]`."""
    action_masks: npt.NDArray[np.bool_]
    """`[V, 94]`."""

    def uniform(self) -> npt.NDArray[np.float64]:
        """The strategy that takes every legal action with the same probability; `[A]`."""
        counts = np.diff(self.nodes.first_slot)
        return np.repeat(1 / counts, counts)


def build(
    decks: npt.NDArray[np.int8] | None = None,
    chance: npt.NDArray[np.float64] | None = None,
    variant: str = "mini",
    max_steps: int = MAX_STEPS,
    advance: Callable[[int], None] = lambda nodes: None,
) -> Tree:
    """Walk through the whole game.

    Args:
        decks: the deals, int8 `[D, deck size]`; None means all of them, by `all_deals`.
        chance: the probability of each, `[D]`; None with `decks` means equal ones.
        variant: a key of `VARIANTS`, small enough.
        max_steps: the action that cuts a game off (R21).
        advance: called with the number of nodes of each level.

    Raises:
        ValueError: an unknown variant, one with too many deals, or no decks of it.
    """
    if decks is None:
        decks, chance = all_deals(variant)
    elif chance is None:
        chance = np.full(len(decks), 1 / len(decks))
    batch = Batch(len(decks), NUM_SEATS, variant, max_steps, autoreset=False)
    batch.reset(decks=decks)
    states = batch.states.copy()
    keys = np.zeros((NUM_SEATS, len(decks)), np.uint64)
    infosets, views = _Index(), _Index()
    levels: list[Columns] = []
    while len(states):
        advance(len(states))
        level, states, keys = _expand(states, keys, infosets, views)
        levels.append(level)
    return _joined(chance, levels, infosets, views)


def _expand(
    states: npt.NDArray[np.void],
    keys: npt.NDArray[np.uint64],
    infosets: "_Index",
    views: "_Index",
) -> tuple[Columns, npt.NDArray[np.void], npt.NDArray[np.uint64]]:
    """One level's nodes and edges; the states and keys of the next."""
    nodes = np.arange(len(states))
    seats, observations, masks, *_ = _after(states, np.full(len(states), KEEP))
    keys[seats, nodes] = with_observations(keys[seats, nodes], observations)
    view = views.number(mixed(np.zeros(len(states), np.uint64), observations))
    views.keep(view, observations=observations, action_masks=masks)
    infoset = infosets.number(keys[seats, nodes])
    infosets.keep(infoset, view=view, num_actions=masks.sum(axis=1))
    rows, actions = np.nonzero(masks)
    following = np.ascontiguousarray(states[rows])
    keys = with_events(keys[:, rows], events_of(following, actions))
    _, _, _, rewards, terminations, truncations, *_ = _after(following, actions)
    ended = terminations | truncations
    won = np.where(terminations, np.sign(rewards[:, 0]), 0)
    found: Columns = {
        "seat": seats.astype(np.int8),
        "infoset": infoset.astype(np.int32),
        "num_edges": masks.sum(axis=1),
        "ended": ended,
        "utility": won.astype(np.int8),
        "action": actions.astype(np.int8),
    }
    return found, following[~ended], keys[:, ~ended]


def _after(states: npt.NDArray[np.void], actions: npt.NDArray[np.int64]) -> Shown:
    """Take legal actions (or KEEP) in place; what `Batch` would show, which would check it all."""
    shown = new_shown(len(states), NUM_SEATS)
    run_games(states, np.arange(len(states)), actions, False, shown)
    return shown


def _joined(
    chance: npt.NDArray[np.float64],
    levels: list[Columns],
    infosets: "_Index",
    views: "_Index",
) -> Tree:
    nodes = np.concatenate([[0], np.cumsum([len(level["seat"]) for level in levels])])
    parts = {name: np.concatenate([level[name] for level in levels]) for name in levels[0]}
    first_edge = np.concatenate([[0], np.cumsum(parts["num_edges"])])
    going_on = ~parts["ended"].astype(np.bool_)
    child = np.full(len(going_on), ENDED, np.int32)
    child[going_on] = nodes[1] + np.arange(going_on.sum())
    counts = infosets.kept("num_actions")
    first_slot = np.concatenate([[0], np.cumsum(counts)])
    _, a_node = np.unique(parts["infoset"], return_index=True)
    in_set = np.arange(first_slot[-1]) - np.repeat(first_slot[:-1], counts)
    return Tree(
        nodes=Nodes(
            parts["seat"], parts["infoset"], first_edge, child, parts["utility"], first_slot
        ),
        chance=chance,
        level=nodes,
        key=infosets.keys(),
        action=parts["action"][np.repeat(first_edge[a_node], counts) + in_set],
        view=infosets.kept("view").astype(np.int32),
        observations=views.kept("observations"),
        action_masks=views.kept("action_masks"),
    )


class _Index:
    """Numbers keys in the order in which they first come up, and keeps something of each."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: dict[str, list[npt.NDArray[Any]]] = {}
        self._count = 0

    def number(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The number of each key; `[K]`."""
        distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.empty(len(distinct), np.int64)
        for i in np.argsort(first).tolist():
            numbers[i] = self._numbers.setdefault(int(distinct[i]), len(self._numbers))
        return numbers[which]

    def keep(self, numbers: npt.NDArray[np.int64], **columns: npt.NDArray[Any]) -> None:
        """Keep of each new number the row in which it first comes up."""
        distinct, first = np.unique(numbers, return_index=True)
        new = first[distinct >= self._count]
        self._count = len(self._numbers)
        for name, column in columns.items():
            self._kept.setdefault(name, []).append(column[new])

    def kept(self, name: str) -> npt.NDArray[Any]:
        """What has been kept, by number."""
        return np.concatenate(self._kept[name])

    def keys(self) -> npt.NDArray[np.uint64]:
        """All keys, by number."""
        return np.fromiter(self._numbers, np.uint64, len(self._numbers))


def events_of(states: npt.NDArray[np.void], actions: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """What the table sees of one action in each of these states, none of them changed.

    Returns:
        int8 `[K, 6]`, the fields of `EVENT_DTYPE`.
    """
    events = np.zeros((len(states), 1), EVENT_DTYPE)
    rows = np.arange(len(states))
    counts, laying = np.zeros(len(states), np.int64), np.zeros(len(states), np.bool_)
    write_events(states, rows, actions, np.zeros(1, STATE_DTYPE), events, counts, laying)
    return event_rows(events[:, 0])
