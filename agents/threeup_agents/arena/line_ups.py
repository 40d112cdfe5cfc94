"""Who plays whom in a round robin: pairs and mixed tables."""

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_agents.arena.designs import tables
from threeup_env.engine.rng import MATCH_SEATS, shuffle, streams

MOST_ORDERED: Final = 4
"""Seats up to which all orders of a mixed table are played."""

LineUp: TypeAlias = tuple[str, ...]
"""Names by place; `draw_seats` says where a place sits."""


def line_ups(names: Sequence[str], num_players: int, mixed: bool = True) -> list[LineUp]:
    """All line-ups of a round robin."""
    return pair_line_ups(names, num_players) + (mixed_line_ups(names, num_players) if mixed else [])


def pair_line_ups(names: Sequence[str], num_players: int) -> list[LineUp]:
    """One seat of an agent, all others of another, for every ordered pair.

    At two players the two orders are the same games under rotation, so one is enough, by
    name: then the games don't depend on the order in which the agents are listed.

    >>> pair_line_ups(["b", "a"], 2)
    [('a', 'b')]
    >>> pair_line_ups(["a", "b"], 3)
    [('a', 'b', 'b'), ('b', 'a', 'a')]
    """
    pairs = combinations(sorted(names), 2) if num_players == 2 else permutations(sorted(names), 2)
    return [(one, *[other] * (num_players - 1)) for one, other in pairs]


def mixed_line_ups(names: Sequence[str], num_players: int) -> list[LineUp]:
    """Tables of as many different agents as there are, in every order that makes a difference.

    With fewer agents than seats each has as equal a number of seats as can be; of many
    agents, `designs.tables` chooses. Tables that `pair_line_ups` has are left out. At 3 and
    4 seats every cyclic order is a line-up; at more there are too many, and `draw_seats` draws
    one a deal. So who sits after whom says nothing about names, nor about who else takes part.

    >>> mixed_line_ups("cab", 3), mixed_line_ups(["a", "b"], 3)
    ([('a', 'b', 'c'), ('a', 'c', 'b')], [])
    >>> mixed_line_ups(["a", "b"], 4)
    [('a', 'a', 'b', 'b'), ('a', 'b', 'a', 'b')]
    >>> len(mixed_line_ups("abcdef", 3)), len(mixed_line_ups("abcdef", 5))
    (40, 6)
    """
    names = sorted(names)
    if len(names) < num_players:
        whole, rest = divmod(num_players, len(names))
        sets = [(*names * whole, *extra) for extra in combinations(names, rest)]
    else:
        sets = [tuple(names[i] for i in table) for table in tables(len(names), num_players)]
    sets = [tuple(sorted(each)) for each in sets if num_players > 2 and not is_pair(each)]
    if num_players > MOST_ORDERED:
        return sets
    return [order for each in sets for order in _cyclic_orders(each)]


def _cyclic_orders(line_up: LineUp) -> list[LineUp]:
    """All orders around a table that no rotation turns into each other."""
    first, *others = line_up
    orders = ((first, *rest) for rest in permutations(others))
    return sorted({min(order[i:] + order[:i] for i in range(len(order))) for order in orders})


def draw_seats(line_up: LineUp, first: int, stop: int, seed: int) -> npt.NDArray[np.int8]:
    """The seat of each place of a line-up under rotation 0, deal by deal.

    It is the place's own number, but for mixed tables of more than `MOST_ORDERED` seats: there
    it is drawn for each deal, from the seed and the deal's number alone. Places are in the
    alphabet's order, so a name decides which of the orders, all equally likely, is its own.

    Args:
        line_up: as `line_ups` gives it.
        first: the first deal.
        stop: the one after the last.
        seed: of the run.

    Returns:
        int8 `[D, S]`, each row a permutation of the seats.
    """
    size = len(line_up)
    seats = np.tile(np.arange(size, dtype=np.int8), (stop - first, 1))
    if size > MOST_ORDERED and not is_pair(line_up):
        for row, start in zip(seats, streams(seed, stop, MATCH_SEATS)[first:], strict=True):
            shuffle(np.array([start]), row, size)
    return seats


def is_pair(line_up: LineUp) -> bool:
    """Whether it is one agent against copies of another.

    >>> is_pair(("a", "b", "b")), is_pair(("a", "b", "c"))
    (True, False)
    """
    return sorted(line_up.count(name) for name in set(line_up)) == [1, len(line_up) - 1]
