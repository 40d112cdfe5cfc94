"""Who plays whom in a round robin: pairs and mixed tables."""

import hashlib
from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Final, TypeAlias

import numpy as np

MOST_MIXED: Final = 24
"""Mixed tables in a run; with many agents there would be thousands."""

LineUp: TypeAlias = tuple[str, ...]
"""Names by place; place i sits at seat `(i + rotation) % S`."""


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
    """Tables of as many different agents as there are.

    With fewer agents than seats each has as equal a number of seats as can be. Tables
    that `pair_line_ups` has are left out; of too many, some spread evenly are kept.

    >>> mixed_line_ups(["a", "b"], 4)
    [('a', 'b', 'a', 'b')]
    >>> len(mixed_line_ups("abcdef", 3)), mixed_line_ups(["a", "b"], 3)
    (20, [])
    """
    names = sorted(names)
    whole, rest = divmod(num_players, len(names))
    found = [(*names * whole, *extra) for extra in combinations(names, rest)]
    found = [line_up for line_up in found if num_players > 2 and not is_pair(line_up)]
    if len(found) > MOST_MIXED:
        kept = np.linspace(0, len(found) - 1, MOST_MIXED).round().astype(int)
        found = [found[i] for i in kept]
    return [_shuffled(line_up) if whole == 0 else line_up for line_up in found]


def is_pair(line_up: LineUp) -> bool:
    """Whether it is one agent against copies of another.

    >>> is_pair(("a", "b", "b")), is_pair(("a", "b", "c"))
    (True, False)
    """
    return sorted(line_up.count(name) for name in set(line_up)) == [1, len(line_up) - 1]


def _shuffled(line_up: LineUp) -> LineUp:
    """An order that hangs on the names alone: in the alphabet's, `b` would never follow `c`."""

    def key(name: str) -> bytes:
        return hashlib.sha256(repr((line_up, name)).encode()).digest()

    return tuple(sorted(line_up, key=key))
