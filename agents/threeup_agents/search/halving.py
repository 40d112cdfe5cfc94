"""The root of a tree search: sequential halving (Karnin, Koren & Somekh 2013), compiled.

The actions still in are tried in the same worlds, which takes the luck of the cards out of
their comparison; after each round the worse half is out. So most iterations go to the
actions that are hard to tell apart. What comes after an action is `tree`.

Where looking ahead doesn't pay (`decision.pays`) `careful` plays.
"""

import numpy as np
import numpy.typing as npt

from threeup_agents.search.decision import (
    Desk,
    choose,
    compare,
    draw_world,
    new_desk,
    open_decision,
    pays,
)
from threeup_agents.search.tree import Tree, iterate, new_tree, start_edge
from threeup_agents.search.value import ValueNetwork
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import SEAT


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
    network: ValueNetwork,
) -> None:
    """Decide every row by a tree of its own, or where that gains nothing by habit.

    Args:
        observations: of the seats to act; int8 `[B, F]`.
        action_masks: the actions to choose from; bool `[B, A]`.
        seed: the agent's own.
        num_iterations: of each tree.
        worlds: `DRAWN_WORLDS`, or records to use in turn instead; `STATE_DTYPE` `[W]`.
        visits: of each action at the root; int64 `[B, A]`, overwritten.
        totals: sum of the seat's win shares over them; float64 `[B, A]`, overwritten.
        actions: the choices; int64 `[B]`, overwritten.
        network: judges how rollouts end; of this table size.
    """
    desk = new_desk()
    tree = new_tree(num_iterations)
    root = np.empty(NUM_ACTIONS, np.int64)
    for row in range(len(observations)):
        observer = int(observations[row, SEAT])
        count, size = open_decision(
            desk, seed, observations[row], action_masks[row], visits[row], totals[row]
        )
        if not pays(desk.games[0]):
            actions[row] = desk.legal[0]
            continue
        for k in range(count):
            start_edge(tree.edges[k], desk.legal[k], observer)
            root[k] = k
        tree.sizes[0] = 0
        tree.sizes[1] = count
        grow(desk, tree, root, count, size, observer, num_iterations, worlds, network)
        for k in range(count):
            edge = tree.edges[k]
            visits[row, edge.action] = edge.visits
            totals[row, edge.action] = edge.total
        actions[row] = choose(desk.comparisons, desk.legal[0])


@compiled
def grow(
    desk: Desk,
    tree: Tree,
    root: npt.NDArray[np.int64],
    count: int,
    size: int,
    observer: int,
    num_iterations: int,
    worlds: npt.NDArray[np.void],
    network: ValueNetwork,
) -> None:
    """Spend a decision's iterations: in each round on fewer of the root's edges.

    Args:
        desk: with the decision laid out on it.
        tree: with the root's edges in it, the reference first.
        root: those edges; int64 `[A]`, put in another order.
        count: how many.
        size: unseen cards.
        observer: the searcher's seat.
        num_iterations: to spend.
        worlds: see `search_rows`.
        network: likewise.
    """
    done = 0
    drawn = 0
    while done < num_iterations:
        trials = max(1, (num_iterations - done) // (count * rounds_to_halve(count)))
        for _ in range(trials):
            draw_world(desk, size, worlds, drawn)
            drawn += 1
            reference_share = 0.0
            for k in range(min(count, num_iterations - done)):
                desk.games[2] = desk.games[1]
                share = iterate(desk.games[2], observer, root[k], tree, network)
                if k == 0:
                    reference_share = share
                action = tree.edges[root[k]].action
                compare(desk.comparisons, action, share, reference_share)
                done += 1
        count = halve(tree.edges, root, count)


@compiled
def rounds_to_halve(count: int) -> int:
    """Rounds of a sequential halving of so many actions; the last one has two."""
    rounds = 1
    while (1 << rounds) < count:
        rounds += 1
    return rounds


@compiled
def halve(edges: npt.NDArray[np.void], root: npt.NDArray[np.int64], count: int) -> int:
    """Move the better half of the root's edges to the front; gives its size, 2 or more.

    The first one, the reference, stays first: in the end the others must beat it.
    """
    if count <= 2:
        return count
    half = (count + 1) // 2
    for i in range(1, half):
        best = i
        highest = -1.0
        for k in range(i, count):
            edge = edges[root[k]]
            mean = 0.0 if edge.visits == 0 else edge.total / edge.visits
            if mean > highest:
                highest = mean
                best = k
        kept = root[best]
        root[best] = root[i]
        root[i] = kept
    return half
