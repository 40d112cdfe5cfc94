"""Which tables of many agents are played where all would be too many: balanced designs."""

from itertools import combinations
from math import comb
from typing import Final

MOST_TABLES: Final = 24
"""Tables up to which all are played; beyond it a design of about as many."""
_MOST_NODES: Final = 20_000
_MORE_TURNS: Final = 3
"""How much larger a design may get for the sake of balance, in turns of the circle."""


def tables(count: int, size: int) -> list[tuple[int, ...]]:
    """Choose tables of `size` different agents out of `count`, each a sorted tuple of indices.

    Up to `MOST_TABLES` all there are. Else the agents stand in a circle and a few tables are
    turned once around it (Bose 1939), so that every agent sits at equally many. The differences
    of places within a table say how often a pair meets, so tables whose differences are spread
    evenly let every pair meet equally often, within one. `tests/arena/test_line_ups.py` holds
    that for up to 28 agents; where the search finds no such tables, it is within three.

    >>> len(tables(7, 3)), tables(13, 4)[:2]
    (21, [(0, 1, 3, 9), (1, 2, 4, 10)])
    """
    if comb(count, size) <= MOST_TABLES:
        return list(combinations(range(count), size))
    fewest = max(1, MOST_TABLES // count)
    for slack in (0, 1):
        for turns in range(fewest, fewest + _MORE_TURNS):
            bases = _Search(count, size, turns, slack).run()
            if bases is not None:
                return [
                    tuple(sorted((place + turn) % count for place in base))
                    for base in bases
                    for turn in range(count)
                ]
    raise ValueError(f"tables: expected a design of {count} agents at {size} seats; found none")


class _Search:
    """Depth first for the tables that are turned, the smallest places first.

    Args:
        count: places of the circle.
        size: agents at a table.
        turns: tables that are turned.
        slack: how far a pair's meetings may be off on either side, beside rounding.
    """

    def __init__(self, count: int, size: int, turns: int, slack: int) -> None:
        self._count, self._size, self._turns = count, size, turns
        whole, rest = divmod(turns * size * (size - 1), count - 1)
        self._least, self._most = whole - slack, whole + (rest > 0) + slack
        self._met = [0] * count  # by difference of places: how often such a pair meets
        self._nodes = 0

    def run(self) -> list[list[int]] | None:
        """The tables, or None if none are found in reasonable time."""
        return self._grow([], [0])

    def _grow(self, done: list[list[int]], table: list[int]) -> list[list[int]] | None:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            return None
        if len(table) == self._size:
            return self._next(done, table)
        for place in range(table[-1] + 1, self._count):
            self._count_meetings(table, place, 1)
            if max(self._met) <= self._most:
                found = self._grow(done, [*table, place])
                if found is not None:
                    return found
            self._count_meetings(table, place, -1)
        return None

    def _next(self, done: list[list[int]], table: list[int]) -> list[list[int]] | None:
        """Go on to the next table, unless turning this one gives a table twice."""
        turned = [sorted((place - zero) % self._count for place in table) for zero in table]
        alike = len({tuple(each) for each in turned}) < self._size
        if alike or any(each in done for each in turned):
            return None
        done = [*done, table]
        if len(done) < self._turns:
            return self._grow(done, [0])
        return done if min(self._met[1:]) >= self._least else None

    def _count_meetings(self, table: list[int], place: int, change: int) -> None:
        for other in table:
            self._met[place - other] += change
            self._met[(other - place) % self._count] += change
