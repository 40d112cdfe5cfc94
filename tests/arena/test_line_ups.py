"""Mixed tables: who sits with whom equally often, and after whom."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.designs import MOST_TABLES, tables
from threeup_agents.arena.line_ups import draw_seats, line_ups, mixed_line_ups
from threeup_agents.arena.match import Match
from threeup_agents.arena.play import play, play_block
from threeup_agents.players.careful import Careful
from threeup_agents.players.simple import Greedy
from threeup_env.agent import Agent


def meetings(chosen: Sequence[tuple[int, ...]], size: int) -> Counter[tuple[int, ...]]:
    return Counter(group for table in chosen for group in combinations(table, size))


@pytest.mark.parametrize(
    ("count", "size"), [(count, size) for size in range(3, 7) for count in range(size, 21)]
)
def test_every_agent_and_every_pair_sits_at_equally_many_tables(count: int, size: int) -> None:
    chosen = tables(count, size)
    assert len(set(chosen)) == len(chosen)
    assert all(len(set(table)) == size and set(table) <= set(range(count)) for table in chosen)
    alone, together = meetings(chosen, 1), meetings(chosen, 2)
    assert len({alone[(i,)] for i in range(count)}) == 1
    often = [together[pair] for pair in combinations(range(count), 2)]
    assert max(often) - min(often) <= 1
    assert len(chosen) == comb(count, size) or len(chosen) <= 2 * max(MOST_TABLES, count)


def test_designs_that_are_known_come_out() -> None:
    # Projective planes of orders 3 and 5, where every pair meets at exactly one table.
    for count, size in ((13, 4), (31, 6)):
        chosen = tables(count, size)
        assert len(chosen) == count
        assert set(meetings(chosen, 2).values()) == {1}
        assert len(meetings(chosen, 2)) == comb(count, 2)


@pytest.mark.parametrize("count", [29, 40, 60])
def test_many_agents_still_sit_at_equally_many_tables(count: int) -> None:
    for size in (3, 6):
        chosen = tables(count, size)
        often = meetings(chosen, 2)
        assert set(meetings(chosen, 1).values()) == {len(chosen) * size // count}
        assert max(often.values()) - min(often[p] for p in combinations(range(count), 2)) <= 3


@pytest.mark.parametrize(("num_players", "orders"), [(3, 2), (4, 6)])
def test_all_orders_around_a_table_are_played(num_players: int, orders: int) -> None:
    names = "abcd"[:num_players]
    played = mixed_line_ups(names, num_players)
    rotations = [line_up[i:] + line_up[:i] for line_up in played for i in range(num_players)]
    assert len(played) == orders
    assert sorted(rotations) == sorted(permutations(names))


def test_all_orders_of_seats_that_an_agent_shares_are_played() -> None:
    played = mixed_line_ups("abc", 4)
    rotations = {line_up[i:] + line_up[:i] for line_up in played for i in range(4)}
    assert rotations == {order for twice in "abc" for order in permutations("abc" + twice)}
    assert len(played) == len(rotations) // 4


@pytest.mark.parametrize("num_players", [5, 6])
def test_the_order_of_a_large_table_is_drawn_for_each_deal(num_players: int) -> None:
    line_up = tuple("abcdef"[:num_players])
    seats = draw_seats(line_up, 0, 6000, seed=3)
    assert (np.sort(seats, axis=1) == np.arange(num_players)).all()
    after = (seats[:, 1] - seats[:, 0]) % num_players  # how far b sits behind a
    counts = np.bincount(after, minlength=num_players)[1:]
    assert counts.sum() == 6000
    expected = 6000 / (num_players - 1)
    assert (abs(counts - expected) < 4 * np.sqrt(expected)).all()


def test_an_order_hangs_on_seed_and_deal_alone() -> None:
    one, other = ("a", "b", "c", "d", "e"), ("a", "b", "c", "x", "y")
    whole = draw_seats(one, 0, 40, seed=1)
    np.testing.assert_array_equal(draw_seats(other, 30, 40, seed=1), whole[30:])
    assert (draw_seats(one, 0, 40, seed=2) != whole).any()


def test_pairs_and_small_tables_sit_as_they_are_listed() -> None:
    for line_up in (tuple("abbbb"), tuple("abc"), tuple("abcd")):
        np.testing.assert_array_equal(
            draw_seats(line_up, 5, 7, seed=1), [list(range(len(line_up)))] * 2
        )


def test_line_ups_do_not_depend_on_the_order_of_the_agents() -> None:
    assert line_ups("dacbe", 3) == line_ups("abcde", 3)


def test_a_seating_moves_the_agents_and_nothing_else() -> None:
    decks = draw_deals(6, 5)
    names = ["random", "greedy", "careful", "flat:2", "policy:net"]
    seats = draw_seats(tuple(names), 0, 6, seed=9)
    match = play_block(names, decks, seats=seats)
    for row in range(30):
        deal, rotation = divmod(row, 5)
        by_seat = [str(match.columns()[f"agent_{seat}"][row]) for seat in range(5)]
        expected = [by_seat[(seats[deal, place] + rotation) % 5] for place in range(5)]
        assert expected == names
    assert (match.by_seat(match.seat) == np.arange(5)).all()


class Dice:
    """Plays at random, but always the same in the same place: a hash of what it sees."""

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """As `Agent.act`."""
        chosen = []
        for observation, mask in zip(observations, action_masks, strict=True):
            legal = np.flatnonzero(mask)
            digest = hashlib.blake2b(observation.tobytes(), digest_size=8).digest()
            chosen.append(int(legal[int.from_bytes(digest, "big") % len(legal)]))
        return np.array(chosen)


KINDS: dict[str, Callable[[], Any]] = {"careful": Careful, "greedy": Greedy, "dice": Dice}


def mixed_shares(names: dict[str, str], deals: int, others: Sequence[str] = ()) -> dict[str, float]:
    """Mixed share of each kind at the table of all three, under other names."""
    kinds = {name: kind for kind, name in names.items()}

    def entrant(name: str) -> Callable[[int], Agent]:
        def made(seed: int) -> Agent:
            return KINDS[kinds[name]]()  # type: ignore[no-any-return]

        made.__name__ = name
        return made

    played = [
        play([entrant(name) for name in line_up], draw_deals(deals, 3), progress=False)
        for line_up in mixed_line_ups([*kinds, *others], 3)
        if set(line_up) == set(kinds)
    ]
    return {
        kind: float(np.mean([share_of(match, name) for match in played]))
        for kind, name in names.items()
    }


def share_of(match: Match, name: str) -> float:
    return float(match.win_share[:, match.line_up.index(name)].mean())


def test_who_sits_after_whom_depends_neither_on_names_nor_on_who_else_takes_part() -> None:
    # In one order careful had .529 of the wins, in the other .471.
    expected = mixed_shares({"careful": "a", "greedy": "b", "dice": "c"}, deals=150)
    assert mixed_shares({"careful": "b", "greedy": "a", "dice": "c"}, deals=150) == expected
    assert mixed_shares({"careful": "z", "greedy": "y", "dice": "b"}, 150, "ax") == expected
    assert sum(expected.values()) == pytest.approx(1)
