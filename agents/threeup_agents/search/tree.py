"""Information-set Monte Carlo tree search (Cowling, Powley & Whitehouse 2012), compiled.

One tree over what the searcher knows. Each iteration takes a drawn world, walks down the
tree by the actions that are legal in that world, adds one edge, rolls out, and gives each
edge of its path the win share of the seat that chose there. Below the root UCB1 chooses;
at the root `halving` does. Rollouts are short: `value` judges how they end.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from threeup_agents.search.rollouts import rollout_action
from threeup_agents.search.value import (
    SHEET_DTYPE,
    ValueNetwork,
    horizon,
    is_own_turn,
    play_on,
    write_shares,
)
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_HAND, MAX_SEATS, NUM_RANKS
from threeup_env.engine.compiled import compiled
from threeup_env.engine.rng import WORLDS, streams
from threeup_env.engine.rules import apply_action, write_legal_actions
from threeup_env.engine.state import Record

EXPLORATION: Final = 0.1
"""UCB1's constant, in win shares."""
WIDENING: Final = 100
"""Visits of a node for each action that it has, before it gets another."""
NONE: Final = -1
"""No node, no edge."""

NODE_DTYPE: Final = np.dtype(
    (
        np.record,
        [
            ("key", np.uint64),  # hash of what the searcher knows there
            ("first_edge", np.int32),  # its latest edge
            ("next_node", np.int32),  # another node behind the same edge
        ],
    )
)
EDGE_DTYPE: Final = np.dtype(
    (
        np.record,
        [
            ("total", np.float64),  # sum of the win shares of `seat` over the visits
            ("visits", np.int32),  # iterations that took it
            ("available", np.int32),  # iterations that could have
            ("action", np.int16),
            ("seat", np.int16),  # who takes it
            ("next_edge", np.int32),  # another edge of the same node
            ("first_node", np.int32),  # the latest node behind it: one for each thing seen
        ],
    )
)


class Tree(NamedTuple):
    """A tree's nodes and edges, used over and over."""

    nodes: npt.NDArray[np.void]
    """`NODE_DTYPE`, but for the root; `[N]`."""
    edges: npt.NDArray[np.void]
    """`EDGE_DTYPE`; the root's are the first; `[N + A]`."""
    sizes: npt.NDArray[np.int64]
    """Nodes and edges in use; `[2]`."""
    path: npt.NDArray[np.int64]
    """The edges taken in an iteration; `[N + 1]`."""
    legal: npt.NDArray[np.int64]
    """The legal actions of a node; `[A]`."""
    known: npt.NDArray[np.int64]
    """Their edges; `[A]`."""
    sheet: npt.NDArray[np.void]
    """For the judgement of how an iteration ends; `[1]`."""


@compiled
def new_tree(num_iterations: int) -> Tree:
    """Room for the trees of so many iterations, N."""
    return Tree(
        np.empty(num_iterations, NODE_DTYPE),
        np.empty(num_iterations + NUM_ACTIONS, EDGE_DTYPE),
        np.empty(2, np.int64),
        np.empty(num_iterations + 1, np.int64),
        np.empty(NUM_ACTIONS, np.int64),
        np.empty(NUM_ACTIONS, np.int64),
        np.empty(1, SHEET_DTYPE),
    )


@compiled
def iterate(game: Record, observer: int, edge: int, tree: Tree, network: ValueNetwork) -> float:
    """Walk down the tree in one world, add an edge, roll out and back up.

    Args:
        game: the world; played on.
        observer: the searcher's seat.
        edge: the root's, to begin with.
        tree: grown by an edge.
        network: judges how the rollout ends.

    Returns:
        The searcher's win share.
    """
    nodes, edges, sizes, path, legal, known, sheet = tree
    path[0] = edge
    depth = 1
    grown = edges[edge].visits == 0
    edges[edge].available += 1
    choices = horizon(game)
    apply_action(game, edges[edge].action)
    while not grown:
        count = skip_to_choice(game, observer, legal)
        if count == 0:
            break
        if is_own_turn(game, observer):
            if choices == 0:
                break
            choices -= 1
        node = find_node(nodes, edges, sizes, path[depth - 1], information(game, observer))
        habit = rollout_action(game, observer)
        match_edges(nodes[node].first_edge, edges, legal, count, known)
        i = new_action(edges, known, legal, count, habit)
        if i == NONE:
            i = best_by_ucb(edges, known, count)
        else:
            known[i] = add_edge(nodes[node], edges, sizes, legal[i], game.seat)
            grown = True
        for k in range(count):
            if known[k] != NONE:
                edges[known[k]].available += 1
        path[depth] = known[i]
        depth += 1
        apply_action(game, legal[i])
    play_on(game, observer, choices, legal)
    write_shares(game, network, sheet[0])
    return back_up(edges, path, depth, sheet[0].shares)


@compiled
def skip_to_choice(game: Record, observer: int, legal: npt.NDArray[np.int64]) -> int:
    """Play forced moves, and what others lay unseen, up to the next choice.

    What others lay is hidden (R5), so it must not branch the searcher's tree: they lay as
    in rollouts.

    Returns:
        The number of actions written to `legal`, at least 2; 0 if the game has ended.
    """
    count = write_legal_actions(game, legal)
    while count == 1 or (count > 1 and game.laying > 0 and game.seat != observer):
        apply_action(game, legal[0] if count == 1 else rollout_action(game, observer))
        count = write_legal_actions(game, legal)
    return count


_FACTORS: Final = streams(0, 1 + NUM_RANKS + MAX_SEATS * (1 + NUM_RANKS), WORLDS) | np.uint64(1)


@compiled
def information(game: Record, observer: int) -> np.uint64:
    """Hash what `observer` knows, so that worlds that it can't tell apart share a node.

    All that an observation holds is in it, but for the steps, which the path gives. It is the sum
    of small numbers, each times a random factor: multilinear hashing (Lemire &
    Kaser 2014), whose products need not wait for each other.
    """
    turn = game.seat + 8 * (game.laying + 4 * (game.may_draw + 2 * game.owed))
    key: np.uint64 = np.uint64(128 * turn + game.draw_pile_size) * _FACTORS[0]
    place = 1
    for rank in range(NUM_RANKS):
        seen = game.pile[rank] + 8 * (game.out_of_play[rank] + 8 * game.hand[observer, rank])
        key += np.uint64(seen) * _FACTORS[place + rank]
    place += NUM_RANKS
    for seat in range(game.num_seats):
        inferred = int(game.hand_size[seat])
        for i in range(MAX_HAND):
            inferred = 16 * inferred + game.bounds[seat, i]
        key += np.uint64(8 * inferred + game.face_down_size[seat]) * _FACTORS[place]
        place += 1
        shown = 0 if game.laying > 0 and seat != observer else 1
        for rank in range(NUM_RANKS):
            open_cards = shown * game.face_up[seat, rank] + 8 * game.known[seat, rank]
            key += np.uint64(open_cards) * _FACTORS[place + rank]
        place += NUM_RANKS
    return key


@compiled
def find_node(
    nodes: npt.NDArray[np.void],
    edges: npt.NDArray[np.void],
    sizes: npt.NDArray[np.int64],
    edge: int,
    key: np.uint64,
) -> int:
    """The node behind an edge at which the searcher knows `key`; new if there is none."""
    node = int(edges[edge].first_node)
    while node != NONE:
        if nodes[node].key == key:
            return node
        node = int(nodes[node].next_node)
    node = int(sizes[0])
    sizes[0] += 1
    nodes[node].key = key
    nodes[node].first_edge = NONE
    nodes[node].next_node = edges[edge].first_node
    edges[edge].first_node = node
    return node


@compiled
def match_edges(
    first_edge: int,
    edges: npt.NDArray[np.void],
    legal: npt.NDArray[np.int64],
    count: int,
    known: npt.NDArray[np.int64],
) -> None:
    """Write to `known` the edge of each legal action, or NONE."""
    for i in range(count):
        known[i] = NONE
    edge = int(first_edge)
    while edge != NONE:
        for i in range(count):
            if legal[i] == edges[edge].action:
                known[i] = edge
                break
        edge = int(edges[edge].next_edge)


@compiled
def best_by_ucb(edges: npt.NDArray[np.void], known: npt.NDArray[np.int64], count: int) -> int:
    """UCB1 over the legal actions, an action's trials counted by its availability."""
    best = 0
    width = 0
    for i in range(count):
        if known[i] != NONE:
            best = i
            width += 1
    if width < 2:
        return best
    highest = -np.inf
    for i in range(count):
        if known[i] == NONE:
            continue
        edge = edges[known[i]]
        bonus = np.sqrt(np.log(edge.available) / edge.visits)
        value = edge.total / edge.visits + EXPLORATION * bonus
        if value > highest:
            highest = value
            best = i
    return best


@compiled
def new_action(
    edges: npt.NDArray[np.void],
    known: npt.NDArray[np.int64],
    legal: npt.NDArray[np.int64],
    count: int,
    habit: int,
) -> int:
    """Which legal action to add to a node, or NONE: what the rollouts would do, then others.

    Each further one waits until the node has had `WIDENING` visits for each that it has. What
    a search tries once it backs up like what it has tried often, so a tree that tries
    everything at once makes noise.
    """
    width = 0
    visits = 0
    found = NONE
    for i in range(count):
        if known[i] != NONE:
            width += 1
            visits += edges[known[i]].visits
        elif legal[i] == habit:
            return i
        elif found == NONE:
            found = i
    return found if visits >= WIDENING * width else NONE


@compiled
def add_edge(
    node: Record,
    edges: npt.NDArray[np.void],
    sizes: npt.NDArray[np.int64],
    action: int,
    seat: int,
) -> int:
    """Add an action to a node."""
    edge = int(sizes[1])
    sizes[1] += 1
    start_edge(edges[edge], action, seat)
    edges[edge].next_edge = node.first_edge
    node.first_edge = edge
    return edge


@compiled
def start_edge(edge: Record, action: int, seat: int) -> None:
    """An edge that nothing has taken yet, and no other beside it."""
    edge.total = 0.0
    edge.visits = 0
    edge.available = 0
    edge.action = action
    edge.seat = seat
    edge.next_edge = NONE
    edge.first_node = NONE


@compiled
def back_up(
    edges: npt.NDArray[np.void],
    path: npt.NDArray[np.int64],
    depth: int,
    shares: npt.NDArray[np.float64],
) -> float:
    """Give each edge of the path the win share of the seat that took it; gives the first's."""
    for i in range(depth):
        edge = edges[path[i]]
        edge.visits += 1
        edge.total += shares[edge.seat]
    result: float = shares[edges[path[0]].seat]
    return result
