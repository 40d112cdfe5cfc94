from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from tests.analysis.test_rated_games import scripted
from threeup_agents.arena.line_ups import LineUp
from threeup_agents.arena.match import Match
from threeup_agents.arena.pace import Pace, in_turns

SECONDS = {"fast": 0.001, "quick": 0.002, "slow": 0.2, "slower": 0.5}
"""Of a seat and deal."""
BLOCKS = [table for table in combinations(sorted(SECONDS), 2) for _ in range(5)]


def block(line_up: LineUp, deals: int = 10) -> Match:
    match = scripted(line_up, [[0] * len(line_up)] * deals)
    spent = np.array([SECONDS[name] * deals for name in line_up])
    return replace(match, seconds=spent, decisions=np.zeros(len(line_up), np.int64))


def run(order: Sequence[int], overhead: float = 1.0) -> Iterator[tuple[float, float | None]]:
    """Time that is really left after each block, and what is expected."""
    clock = SimpleNamespace(now=100.0)
    pace = Pace(lambda: clock.now)
    for line_up in BLOCKS:
        pace.want(line_up, 10)
    spent = [overhead * 10 * sum(SECONDS[name] for name in BLOCKS[i]) for i in order]
    for done, i in enumerate(order, 1):
        clock.now += spent[done - 1]
        pace.played(block(BLOCKS[i]))
        yield sum(spent[done:]), pace.left()


@pytest.mark.parametrize("overhead", [1.0, 3.0, 0.25])
def test_the_time_left_is_known_as_soon_as_every_agent_has_played(overhead: float) -> None:
    # Overhead is what the clock says over what agents take; it is below 1 on several cores.
    for left, expected in list(run(in_turns(BLOCKS), overhead))[1:]:
        assert expected == pytest.approx(left, abs=1e-9)


def test_the_speed_of_games_so_far_would_be_wrong_where_fast_line_ups_come_first() -> None:
    (left, expected), *_ = run(range(len(BLOCKS)))
    assert expected is not None
    assert expected < left / 10  # played by the alphabet, the slow ones are not known yet


def test_every_block_has_its_turn_and_every_agent_an_early_one() -> None:
    order = in_turns(BLOCKS)
    assert sorted(order) == list(range(len(BLOCKS)))
    assert {name for i in order[:2] for name in BLOCKS[i]} == set(SECONDS)
    assert {BLOCKS[i] for i in order[:6]} == set(BLOCKS)


def test_what_an_agent_that_left_would_have_played_is_not_expected() -> None:
    clock = SimpleNamespace(now=100.0)
    pace = Pace(lambda: clock.now)
    assert pace.left() is None
    pace.want(("fast", "quick"), 20)
    pace.want(("fast", "slow"), 10)
    clock.now += 0.03
    pace.played(block(("fast", "quick")))
    pace.leave("slow")
    assert pace.left() == pytest.approx(0.03)
