"""Information-set Monte Carlo tree search (Cowling, Powley & Whitehouse 2012), compiled.

One tree over what the searcher knows. Each iteration draws a world, walks down the tree
by the actions that are legal in that world, adds one edge, rolls out, and gives each edge
of its path the win share of the seat that chose there.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from agents.careful import careful_action
from agents.worlds import (
    choose,
    decision_stream,
    mix,
    roll_out,
    rollout_action,
    write_masked,
)
from threeup_env.actions import NUM_ACTIONS
from threeup_env.cards import MAX_DECK_SIZE, MAX_SEATS, NUM_RANKS
from threeup_env.compiled import compiled
from threeup_env.determinize import deal_unseen, write_seen, write_unseen
from threeup_env.observation import SEAT
from threeup_env.rules import apply_action, win_share, write_legal_actions
from threeup_env.state import STATE_DTYPE, Record

EXPLORATION: Final = 0.25
"""UCB1's constant, in win shares."""
ROOT_EXPLORATION: Final = 0.5
"""The same at the root: there all actions must be compared, not one be played often."""
CAUTION: Final = 1.5
"""Standard errors by which an action must beat what `careful` does, as `choose`."""
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


@compiled
def search_rows(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    seed: np.uint64,
    num_iterations: int,
    worlds: npt.NDArray[np.void],
    visits: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
    actions: npt.NDArray[np.int64],
) -> None:
    """Decide every row by a tree of its own.

    Args:
        observations: of the seats to act; int8 `[B, F]`.
        action_masks: the actions to choose from; bool `[B, A]`.
        seed: the agent's own.
        num_iterations: of each tree.
        worlds: `DRAWN_WORLDS`, or records to use in turn instead; `STATE_DTYPE` `[W]`.
        visits: of each action at the root; int64 `[B, A]`, overwritten.
        totals: sum of the seat's win shares over them; float64 `[B, A]`, overwritten.
        actions: the choices; int64 `[B]`, overwritten.
    """
    games = np.zeros(2, STATE_DTYPE)
    nodes = np.empty(num_iterations + 1, NODE_DTYPE)
    edges = np.empty(num_iterations, EDGE_DTYPE)
    path = np.empty(num_iterations, np.int64)
    sizes = np.empty(2, np.int64)
    cards = np.empty(MAX_DECK_SIZE, np.int8)
    root = np.empty(NUM_ACTIONS, np.int64)
    stream = np.empty(1, np.uint64)
    for row in range(len(observations)):
        vector = observations[row]
        observer = int(vector[SEAT])
        stream[0] = decision_stream(seed, vector, action_masks[row])
        nodes[0].first_edge = NONE
        sizes[0] = 1
        sizes[1] = 0

        # games: what the searcher sees, and the world of the iteration
        write_seen(vector, games[0])
        size = write_unseen(vector, cards)
        count = write_masked(action_masks[row], root)
        for i in range(num_iterations):
            if len(worlds) > 0:
                games[1] = worlds[i % len(worlds)]
            else:
                games[1] = games[0]
                deal_unseen(games[1], cards, size, stream)
            iterate(games[1], observer, root, count, nodes, edges, sizes, path)
        write_root(nodes, edges, visits[row], totals[row])
        actions[row] = choose(visits[row], totals[row], careful_action(games[0]), CAUTION)


@compiled
def write_root(
    nodes: npt.NDArray[np.void],
    edges: npt.NDArray[np.void],
    visits: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
) -> None:
    """Read visits and totals off the root's edges; int64 and float64 `[A]`."""
    for action in range(NUM_ACTIONS):
        visits[action] = 0
        totals[action] = 0.0
    edge = int(nodes[0].first_edge)
    while edge != NONE:
        visits[edges[edge].action] = edges[edge].visits
        totals[edges[edge].action] = edges[edge].total
        edge = int(edges[edge].next_edge)


@compiled
def iterate(
    game: Record,
    observer: int,
    root: npt.NDArray[np.int64],
    num_root: int,
    nodes: npt.NDArray[np.void],
    edges: npt.NDArray[np.void],
    sizes: npt.NDArray[np.int64],
    path: npt.NDArray[np.int64],
) -> None:
    """Walk down the tree in one world, add an edge, roll out and back up.

    Args:
        game: the world; played to its end.
        observer: the searcher's seat.
        root: the actions to choose from at the root; int64 `[A]`, read only.
        num_root: their number.
        nodes: `NODE_DTYPE`; the root is the first.
        edges: `EDGE_DTYPE`.
        sizes: nodes and edges in use; int64 `[2]`.
        path: scratch.
    """
    legal = np.empty(NUM_ACTIONS, np.int64)
    known = np.empty(NUM_ACTIONS, np.int64)
    depth = 0
    node = 0
    grown = False
    while not grown:
        if depth == 0:
            count = num_root
            for i in range(count):
                legal[i] = root[i]
        else:
            count = skip_to_choice(game, observer, legal)
            if count == 0:
                break
            node = find_node(nodes, edges, sizes, path[depth - 1], information(game, observer))
        complete = match_edges(nodes[node].first_edge, edges, legal, count, known)
        if complete:
            exploration = ROOT_EXPLORATION if depth == 0 else EXPLORATION
            i = best_by_ucb(edges, known, count, exploration)
        else:
            i = first_new(known, legal, count, rollout_action(game))
            known[i] = add_edge(nodes[node], edges, sizes, legal[i], game.seat)
            grown = True
        for k in range(count):
            if known[k] != NONE:
                edges[known[k]].available += 1
        path[depth] = known[i]
        depth += 1
        apply_action(game, legal[i])
    roll_out(game)
    back_up(game, edges, path, depth)


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
        apply_action(game, legal[0] if count == 1 else rollout_action(game))
        count = write_legal_actions(game, legal)
    return count


@compiled
def information(game: Record, observer: int) -> np.uint64:
    """Hash what `observer` knows, so that worlds that it can't tell apart share a node.

    All that an observation holds is in it, but for the steps, which the path gives.
    """
    key = np.uint64(game.seat + MAX_SEATS * (game.laying + 4 * (game.owed + 4 * game.may_draw)))
    key = mix(key, int(game.draw_pile_size))
    for rank in range(NUM_RANKS):
        key = mix(
            key, game.pile[rank] + 8 * (game.out_of_play[rank] + 8 * game.hand[observer, rank])
        )
    for seat in range(game.num_seats):
        key = mix(key, game.hand_size[seat] + 128 * game.face_down_size[seat])
        hidden = game.laying > 0 and seat != observer
        for rank in range(NUM_RANKS):
            face_up = 0 if hidden else int(game.face_up[seat, rank])
            key = mix(key, face_up + 8 * game.known[seat, rank])
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
) -> bool:
    """Write to `known` the edge of each legal action, or NONE; True if all have one."""
    for i in range(count):
        known[i] = NONE
    missing = count
    edge = int(first_edge)
    while edge != NONE:
        for i in range(count):
            if legal[i] == edges[edge].action:
                known[i] = edge
                missing -= 1
        edge = int(edges[edge].next_edge)
    return missing == 0


@compiled
def best_by_ucb(
    edges: npt.NDArray[np.void], known: npt.NDArray[np.int64], count: int, exploration: float
) -> int:
    """UCB1 over the legal actions, an action's trials counted by its availability."""
    best = 0
    highest = -np.inf
    for i in range(count):
        edge = edges[known[i]]
        bonus = np.sqrt(np.log(edge.available) / edge.visits)
        value = edge.total / edge.visits + exploration * bonus
        if value > highest:
            highest = value
            best = i
    return best


@compiled
def first_new(
    known: npt.NDArray[np.int64], legal: npt.NDArray[np.int64], count: int, habit: int
) -> int:
    """Which action to add: what the rollouts would do, else the lowest id."""
    found = NONE
    for i in range(count):
        if known[i] == NONE and (found == NONE or legal[i] == habit):
            found = i
    return found


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
    edges[edge].total = 0.0
    edges[edge].visits = 0
    edges[edge].available = 0
    edges[edge].action = action
    edges[edge].seat = seat
    edges[edge].next_edge = node.first_edge
    edges[edge].first_node = NONE
    node.first_edge = edge
    return edge


@compiled
def back_up(
    game: Record, edges: npt.NDArray[np.void], path: npt.NDArray[np.int64], depth: int
) -> None:
    """Give each edge of the path the win share of the seat that took it."""
    for i in range(depth):
        edge = edges[path[i]]
        edge.visits += 1
        edge.total += win_share(game, edge.seat)
