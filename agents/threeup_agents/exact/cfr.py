"""Equilibria by counterfactual regret minimisation, and best responses, over a whole `Tree`.

What a seat wants is the difference of wins: 1 if it wins, -1 if the other does, 0 in a game
that is cut off. That is zero-sum, so an equilibrium has one value and can't be exploited.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_agents.exact.tree import ENDED, NUM_SEATS, Nodes, Tree
from threeup_env.engine.compiled import compiled

Values: TypeAlias = npt.NDArray[np.float64]
Strategy: TypeAlias = npt.NDArray[np.float64]
"""The probability of each slot's action in its information set; `[A]`."""


@dataclass
class Solver:
    """CFR+ (Tammelin 2014), which averages strategies with weights that grow.

    Regrets never fall below 0, the seats take turns, and the t-th strategy weighs t.

    Attributes:
        tree: the game.
        regrets: of every slot, `[A]`.
        total: weighted sum of the strategies, `[A]`.
        iterations: done so far.
    """

    tree: Tree
    regrets: Values
    total: Values
    iterations: int = 0

    @classmethod
    def begin(cls, tree: Tree) -> "Solver":
        """One that has not yet iterated."""
        return cls(tree, np.zeros(len(tree.action)), np.zeros(len(tree.action)))

    def iterate(self) -> None:
        """Let each seat once improve on what the other plays now."""
        self.iterations += 1
        for seat in range(NUM_SEATS):
            strategy = normalised(self.regrets, self.tree)
            others, own = _reaches(self.tree, strategy, seat)
            _add_average(self.tree.nodes, strategy, own, seat, self.iterations, self.total)
            values = np.empty(len(others))
            _add_gains(self.tree.nodes, strategy, others, seat, values, self.regrets)
            np.maximum(self.regrets, 0, out=self.regrets)

    def average(self) -> Strategy:
        """The strategy that nears an equilibrium."""
        return normalised(self.total, self.tree)


def normalised(weights: Values, tree: Tree) -> Strategy:
    """Weights of slots, none negative, as a strategy; uniform where all are 0."""
    first, counts = tree.nodes.first_slot[:-1], np.diff(tree.nodes.first_slot)
    sums = np.repeat(np.add.reduceat(weights, first), counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums > 0, weights / sums, np.repeat(1 / counts, counts))


def value(tree: Tree, strategy: Strategy) -> float:
    """What seat 0 gains on average if both seats follow `strategy`."""
    chance, _ = _reaches(tree, strategy, 0)
    values, ignored = np.empty(len(chance)), np.zeros(len(strategy))
    _add_gains(tree.nodes, strategy, chance, 0, values, ignored)
    return float(tree.chance @ values[: len(tree.chance)])


def best_response(tree: Tree, strategy: Strategy, seat: int) -> tuple[float, Strategy]:
    """What a seat can gain at most against the other seat's part of a strategy, and how.

    Returns:
        Its gain, and the strategy with the seat's own part replaced by a best response.
    """
    others, _ = _reaches(tree, strategy, seat)
    response, values = strategy.copy(), np.empty(len(others))
    _respond(tree.nodes, tree.level, others, seat, values, response)
    return float(tree.chance @ values[: len(tree.chance)]), response


def nash_conv(tree: Tree, strategy: Strategy) -> float:
    """What the two best responses against a strategy gain together; 0 in an equilibrium.

    OpenSpiel's NashConv (Lanctot et al. 2017): the sum over seats of what each could gain
    more than it does, where the gains of the two seats cancel.
    """
    return sum(best_response(tree, strategy, seat)[0] for seat in range(NUM_SEATS))


def own_reach(tree: Tree, strategy: Strategy) -> Values:
    """How likely a seat's own choices lead to each of its information sets; `[I]`."""
    found = np.empty(len(tree.key))
    for seat in range(NUM_SEATS):
        _, own = _reaches(tree, strategy, seat)
        mine = tree.nodes.seat == seat
        found[tree.nodes.infoset[mine]] = own[mine]
    return found


def _reaches(tree: Tree, strategy: Strategy, seat: int) -> tuple[Values, Values]:
    """How likely each node is by chance and the other seat's choices, and by the seat's own."""
    others, own = np.empty(len(tree.nodes.seat)), np.empty(len(tree.nodes.seat))
    others[: len(tree.chance)] = tree.chance
    own[: len(tree.chance)] = 1
    _reach(tree.nodes, strategy, seat, others, own)
    return others, own


@compiled
def _reach(nodes: Nodes, strategy: Strategy, seat: int, others: Values, own: Values) -> None:
    """Carry both, which hold the deals' nodes, on to all others; `[N]`."""
    for node in range(len(nodes.seat)):
        edge = nodes.first_edge[node]
        slot = nodes.first_slot[nodes.infoset[node]]
        for k in range(nodes.first_edge[node + 1] - edge):
            child = nodes.child[edge + k]
            if child != ENDED:
                chance = strategy[slot + k]
                mine = nodes.seat[node] == seat
                own[child] = own[node] * (chance if mine else 1.0)
                others[child] = others[node] * (1.0 if mine else chance)


@compiled
def _add_average(
    nodes: Nodes, strategy: Strategy, own: Values, seat: int, weight: float, total: Values
) -> None:
    """Add a strategy to the sum, in proportion to how likely a seat comes there by itself."""
    infosets = 0
    for node in range(len(nodes.seat)):
        if nodes.infoset[node] < infosets:  # all nodes of one are as likely
            continue
        if nodes.seat[node] == seat:
            for slot in range(nodes.first_slot[infosets], nodes.first_slot[infosets + 1]):
                total[slot] += weight * own[node] * strategy[slot]
        infosets += 1


@compiled
def _add_gains(
    nodes: Nodes, strategy: Strategy, others: Values, seat: int, values: Values, gains: Values
) -> None:
    """Add what each action gains over the strategy, and work out what each node is worth.

    Args:
        nodes: of the tree.
        strategy: of both seats; `[A]`.
        others: from `_reach`; `[N]`.
        seat: whose gains.
        values: what each node is worth to it; overwritten; `[N]`.
        gains: added to; `[A]`.
    """
    sign = 1 if seat == 0 else -1
    for node in range(len(nodes.seat) - 1, -1, -1):
        edge = nodes.first_edge[node]
        slot = nodes.first_slot[nodes.infoset[node]]
        count = nodes.first_edge[node + 1] - edge
        mean = 0.0
        for k in range(count):
            mean += strategy[slot + k] * worth(nodes, edge + k, sign, values)
        values[node] = mean
        if nodes.seat[node] == seat:
            for k in range(count):
                gain = worth(nodes, edge + k, sign, values) - mean
                gains[slot + k] += others[node] * gain


@compiled
def worth(nodes: Nodes, edge: int, sign: int, values: Values) -> float:
    """What an edge leads to."""
    child = nodes.child[edge]
    return sign * float(nodes.utility[edge]) if child == ENDED else values[child]


@compiled
def _respond(
    nodes: Nodes,
    level: npt.NDArray[np.int64],
    others: Values,
    seat: int,
    values: Values,
    response: Strategy,
) -> None:
    """Replace a seat's part of a strategy by a best response, from the last level back.

    All nodes of an information set lie on one level.

    Args:
        nodes: of the tree.
        level: the first node of each level, and N; `[L + 1]`.
        others: from `_reach`; `[N]`.
        seat: who responds.
        values: what each node is worth to it; overwritten; `[N]`.
        response: the strategy of both seats; the seat's part is overwritten; `[A]`.
    """
    sign = 1 if seat == 0 else -1
    for depth in range(len(level) - 2, -1, -1):
        own = range(level[depth], level[depth + 1])
        for node in own:
            if nodes.seat[node] == seat:
                infoset = nodes.infoset[node]
                response[nodes.first_slot[infoset] : nodes.first_slot[infoset + 1]] = 0
        for node in own:
            if nodes.seat[node] == seat:
                edge = nodes.first_edge[node]
                slot = nodes.first_slot[nodes.infoset[node]]
                for k in range(nodes.first_edge[node + 1] - edge):
                    response[slot + k] += others[node] * worth(nodes, edge + k, sign, values)
        infosets = -1
        for node in own:  # every information set is numbered where it first comes up
            infoset = nodes.infoset[node]
            if infoset > infosets:
                infosets = infoset
                if nodes.seat[node] == seat:
                    take_best(response[nodes.first_slot[infoset] : nodes.first_slot[infoset + 1]])
        for node in own:
            edge = nodes.first_edge[node]
            slot = nodes.first_slot[nodes.infoset[node]]
            mean = 0.0
            for k in range(nodes.first_edge[node + 1] - edge):
                mean += response[slot + k] * worth(nodes, edge + k, sign, values)
            values[node] = mean


@compiled
def take_best(weights: Values) -> None:
    """Put 1 at the highest of the weights and 0 at all others."""
    best = weights.argmax()
    weights[:] = 0.0
    weights[best] = 1.0
