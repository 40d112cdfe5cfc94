"""How long a run still takes: line-ups differ in speed, and slow ones may come last."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from threeup_agents.arena.line_ups import LineUp
from threeup_agents.arena.match import Match

ARENA_SECONDS: Final = 1e-6
"""Time of the arena and the engine for a decision, beside the agent's."""


def seconds_per_deal(match: Match) -> float:
    """Time on one core for one deal of a line-up under all rotations."""
    spent = match.seconds.sum() + ARENA_SECONDS * match.decisions.sum()
    return float(spent) / match.num_deals


def in_turns(line_ups: Sequence[LineUp]) -> list[int]:
    """An order in which each line-up, and before that each agent, soon has had a turn.

    Args:
        line_ups: one a block; a line-up has as many as it has blocks.

    Returns:
        Indices of all of them.

    >>> blocks = [("a", "b"), ("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    >>> [blocks[i] for i in in_turns(blocks)]
    [('a', 'b'), ('c', 'd'), ('a', 'c'), ('b', 'c'), ('a', 'b')]
    """
    first: dict[LineUp, int] = {}
    turns: dict[LineUp, int] = {}
    keys = []
    for i, line_up in enumerate(line_ups):
        first.setdefault(line_up, i)
        turns[line_up] = turns.get(line_up, -1) + 1
        keys.append(turns[line_up])
    seen: set[str] = set()
    rank = dict.fromkeys(first, 2)
    # First tables of which nobody has played yet, then those that bring anybody new.
    for number, is_new in ((0, seen.isdisjoint), (1, lambda names: not seen.issuperset(names))):
        for line_up in first:
            if rank[line_up] == 2 and is_new(line_up):
                rank[line_up] = number
                seen.update(line_up)
    return sorted(range(len(keys)), key=lambda i: (keys[i], rank[line_ups[i]], i))


class Pace:
    """Expects the time of what is still to be played from the speed of what has been.

    A line-up that has not played is expected to take as long as its agents took at other
    tables. What the clock says beyond the agents' own time, or less on several cores, is taken
    to go on alike.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._done = 0.0
        self._left: dict[LineUp, int] = {}
        self._tables: dict[LineUp, float] = {}
        self._agents: dict[str, list[float]] = {}

    def want(self, line_up: LineUp, deals: int) -> None:
        """Expect some deals of a line-up."""
        self._left[line_up] = self._left.get(line_up, 0) + deals

    def played(self, match: Match) -> None:
        """Some deals that were expected have been played."""
        self._left[match.line_up] -= match.num_deals
        speed = seconds_per_deal(match)
        self._done += speed * match.num_deals
        self._tables[match.line_up] = speed
        for name in set(match.line_up):
            place = match.line_up.index(name)
            own = match.seconds[place] + ARENA_SECONDS * match.decisions[place]
            per_seat = float(own) / match.num_deals / match.line_up.count(name)
            self._agents.setdefault(name, []).append(per_seat)

    def leave(self, agent: str) -> None:
        """An agent's games are not played."""
        self._left = {table: left for table, left in self._left.items() if agent not in table}

    def left(self) -> float | None:
        """Seconds until all is played; None before anything is."""
        if not self._done:
            return None
        elapsed = self._clock() - self._start
        expected = sum(deals * self._expected(table) for table, deals in self._left.items())
        return expected * elapsed / self._done

    def _expected(self, line_up: LineUp) -> float:
        """Seconds of a deal."""
        if line_up in self._tables:
            return self._tables[line_up]
        means = {name: sum(own) / len(own) for name, own in self._agents.items()}
        typical = sum(means.values()) / len(means)
        return sum(means.get(name, typical) for name in line_up)
