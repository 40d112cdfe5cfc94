"""The root of a tree search: sequential halving (Karnin, Koren & Somekh 2013), compiled.

The actions still in are tried in the same worlds, which takes the luck of the cards out of
their comparison; after each round the worse half is out. So most iterations go to the
actions that are hard to tell apart. What comes after an action is `agents.tree`.
"""

import numpy as np
import numpy.typing as npt

from agents.careful import careful_action
from agents.tree import EDGE_DTYPE, NODE_DTYPE, iterate, start_edge
from agents.value import ValueNetwork
from agents.worlds import choose, compare, decision_stream, first_of, write_masked
from threeup_env.actions import NUM_ACTIONS
from threeup_env.cards import MAX_DECK_SIZE
from threeup_env.compiled import compiled
from threeup_env.determinize import deal_unseen, write_seen, write_unseen
from threeup_env.observation import SEAT
from threeup_env.state import STATE_DTYPE


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
        network: judges how rollouts end; of this table size.
    """
    games = np.zeros(3, STATE_DTYPE)
    nodes = np.empty(num_iterations, NODE_DTYPE)
    edges = np.empty(num_iterations + NUM_ACTIONS, EDGE_DTYPE)
    path = np.empty(num_iterations + 1, np.int64)
    sizes = np.empty(2, np.int64)
    cards = np.empty(MAX_DECK_SIZE, np.int8)
    root = np.empty(NUM_ACTIONS, np.int64)
    comparisons = np.empty((NUM_ACTIONS, 3), np.float64)
    stream = np.empty(1, np.uint64)
    for row in range(len(observations)):
        vector = observations[row]
        observer = int(vector[SEAT])
        stream[0] = decision_stream(seed, vector, action_masks[row])

        # games: what the searcher sees, a world, and the iteration that it is copied to
        write_seen(vector, games[0])
        size = write_unseen(vector, cards)
        count = write_masked(action_masks[row], root)
        first_of(root, count, careful_action(games[0]))
        reference = root[0]
        for k in range(count):
            start_edge(edges[k], root[k], observer)
            root[k] = k
        num_root = count
        sizes[0] = 0
        sizes[1] = num_root
        for action in range(NUM_ACTIONS):
            visits[row, action] = 0
            totals[row, action] = 0.0
            for i in range(3):
                comparisons[action, i] = 0.0
        done = 0
        drawn = 0
        while done < num_iterations:
            trials = max(1, (num_iterations - done) // (count * rounds_to_halve(count)))
            for _ in range(trials):
                if len(worlds) > 0:
                    games[1] = worlds[drawn % len(worlds)]
                else:
                    games[1] = games[0]
                    deal_unseen(games[1], cards, size, stream)
                drawn += 1
                reference_share = 0.0
                for k in range(min(count, num_iterations - done)):
                    games[2] = games[1]
                    share = iterate(games[2], observer, root[k], nodes, edges, sizes, path, network)
                    if k == 0:
                        reference_share = share
                    compare(comparisons, edges[root[k]].action, share, reference_share)
                    done += 1
            count = halve(edges, root, count)

        for edge in range(num_root):
            visits[row, edges[edge].action] = edges[edge].visits
            totals[row, edges[edge].action] = edges[edge].total
        actions[row] = choose(comparisons, reference)


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
