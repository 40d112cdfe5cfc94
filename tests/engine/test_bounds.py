"""What pick-ups tell of a hand, and worlds that keep it (R14, R22)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.builders import play, position
from tests.engine.test_observation import random_play
from threeup_env import RANK_NAMES, Batch, decode, determinize, raw_env
from threeup_env.engine.actions import ACTION_COPIES, ACTION_RANK, FIRST_PLAY, PICK_UP

NOTHING = len(RANK_NAMES)
Bounds = tuple[int, ...]


def bounds(batch: Batch, seat: int = 0) -> list[str]:
    """The bounds of a seat in the game's words; "-" says nothing."""
    names = (*RANK_NAMES, "-")
    held = decode(batch.observe([seat])[0])["seats"]["bounds"][0]
    return [names[bound] for bound in held if bound]


def test_case_19_three_unknown_cards_below_what_could_not_be_beaten() -> None:
    batch = position("2 3 4", pile="10", draw_pile="5 6 7 8", other_hand="C 9 9")
    assert bounds(batch) == ["-", "-", "-"]
    play(batch, "pick up")
    assert bounds(batch) == ["10", "10", "10"]
    assert batch.states["hand_size"][0, 0] == 4
    play(batch, "play C", "play 3")
    assert bounds(batch) == ["10", "10"]


def at_bounds(hand: str, *held: int) -> Batch:
    batch = position(hand, draw_pile="1 2 3", other_hand="1 2 3")
    states = batch.states.copy()
    states["bounds"][0, 0, : len(held)] = held
    batch.load(states)
    return batch


@pytest.mark.parametrize(
    ("hand", "action", "left"),
    [
        pytest.param("3 5 9", "play 5", ["-", "-"], id="a 5 may have been any of the three"),
        pytest.param("3 8 9", "play 8", ["7", "-"], id="the card below 7 is still there"),
    ],
)
def test_case_20_the_tightest_bound_that_fits_leaves(
    hand: str, action: str, left: list[str]
) -> None:
    batch = at_bounds(hand, RANK_NAMES.index("7"))
    play(batch, action)
    assert bounds(batch) == [*left, "-"]  # the turn ends with a draw


def test_a_known_card_takes_no_bound() -> None:
    batch = position("2 3", pile="9 9")
    play(batch, "pick up")
    assert bounds(batch) == ["9", "9"]
    play(batch, "play 8", "play 9 x2")
    assert bounds(batch) == ["9", "9"]


@pytest.mark.parametrize("num_players", range(2, 7))
def test_bounds_are_true_and_one_for_each_unknown_card(num_players: int) -> None:
    tight = 0
    for batch in random_play(num_players, "standard", seed=num_players, games=6):
        game = batch.states[0]
        if game["laying"]:
            continue
        for seat in range(num_players):
            view = decode(batch.observe([seat])[0])
            held = [bound for bound in view["seats"]["bounds"][0].tolist() if bound]
            unknown = np.repeat(np.arange(13), game["hand"][seat] - game["known"][seat]).tolist()
            assert len(held) == len(unknown) <= 3
            assert held == sorted(held)
            assert all(rank < bound for rank, bound in zip(unknown, held, strict=True))
            tight += sum(bound < NOTHING for bound in held)
    assert tight > 50


class Judge:
    """Everything that the history of a game says of one seat's hand, case by case.

    Of a card played unseen nobody knows which it was: each that it can have been is a case.
    """

    def __init__(self, num_cards: int) -> None:
        self.cases: set[Bounds] = {(NOTHING,) * num_cards}

    def drawn(self, count: int) -> None:
        """So many cards were drawn."""
        self.cases = {(*case, *(NOTHING,) * count) for case in self.cases}

    def could_not_beat(self, top: int) -> None:
        """The pile was picked up from the hand."""
        self.cases = {tuple(min(bound, top) for bound in case) for case in self.cases}

    def played(self, rank: int) -> None:
        """A card that not all had seen was played."""
        self.cases = {
            (*case[:i], *case[i + 1 :])
            for case in self.cases
            for i, bound in enumerate(case)
            if rank < bound
        }

    def allows(self, ranks: list[int]) -> bool:
        """Whether the hand can hold these cards, ascending, beside those that all have seen."""
        return any(
            len(case) == len(ranks)
            and all(rank < bound for rank, bound in zip(ranks, sorted(case), strict=True))
            for case in self.cases
        )


def judged_games(
    num_games: int, num_players: int, seed: int
) -> Iterator[tuple[Batch, list[list[Judge]]]]:
    """Random games in lock-step, and what their histories say of each seat, after each step."""
    batch = Batch(num_games, num_players, seed=seed, autoreset=False)
    batch.reset()
    rng = np.random.default_rng(seed)
    judges = [[Judge(3) for _ in range(num_players)] for _ in range(num_games)]
    while batch.action_masks.any():
        before = batch.states.copy()
        running = np.flatnonzero(batch.action_masks.any(axis=1))
        chosen = np.argmax(batch.action_masks * rng.random(batch.action_masks.shape), axis=1)
        batch.step(chosen)
        for row in running[before["laying"][running] == 0]:
            tell(judges[row][before["seat"][row]], before[row], batch.states[row], chosen[row])
        yield batch, judges


def tell(judge: Judge, before: np.void, after: np.void, action: int) -> None:
    """Tell the judge what everybody saw."""
    seat = before["seat"]
    if before["hand_size"][seat] and action == PICK_UP:
        judge.could_not_beat(int(before["top"]))
    elif before["hand_size"][seat] and action >= FIRST_PLAY and ACTION_COPIES[action] > 0:
        rank = int(ACTION_RANK[action])
        for _ in range(
            ACTION_COPIES[action] - min(ACTION_COPIES[action], before["known"][seat, rank])
        ):
            judge.played(rank)
    judge.drawn(int(before["draw_pile_size"]) - int(after["draw_pile_size"]))


def contradictions(num_games: int, num_players: int, seed: int, share: float) -> tuple[int, int]:
    """Worlds that the history forbids, and worlds drawn where it says something."""
    wrong = total = 0
    rng = np.random.default_rng(seed)
    for batch, judges in judged_games(num_games, num_players, seed):
        told: Any = (batch.states["bounds"] > 0).any(axis=2)  # bool [B, seats]
        rows = np.flatnonzero(
            told.any(axis=1) & batch.action_masks.any(axis=1) & (rng.random(num_games) < share)
        )
        if not len(rows):
            continue
        worlds = determinize(batch.observations[rows], seed=int(rng.integers(2**31)))[:, 0]
        for row, world in zip(rows, worlds, strict=True):
            for seat in np.flatnonzero(told[row]):
                if seat == batch.seats[row]:
                    continue
                hidden = world["hand"][seat] - batch.states["known"][row, seat]
                unknown = np.repeat(np.arange(13), hidden).tolist()
                wrong += not judges[row][seat].allows(unknown)
                total += 1
    return wrong, total


@pytest.mark.parametrize("num_players", range(2, 7))
def test_no_world_contradicts_a_pick_up(num_players: int) -> None:
    wrong, total = contradictions(60, num_players, seed=num_players, share=0.3)
    assert total > 100
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize("num_players", range(2, 7))
def test_no_world_contradicts_a_pick_up_in_two_thousand_games(num_players: int) -> None:
    wrong, total = contradictions(2000, num_players, seed=10 + num_players, share=0.2)
    assert total > 5000
    assert wrong == 0


def test_worlds_would_contradict_pick_ups_without_the_bounds() -> None:
    batch = position("2 3", pile="9 9", other_hand="1 4 7", face_down="9 10 C")
    play(batch, "pick up")
    seen = batch.observe([1])
    worlds = determinize(seen, seed=1, num_worlds=300)[0]["hand"][:, 0]
    without = seen.copy()
    without[0, -3:] = [NOTHING, NOTHING, 0]
    free = determinize(without, seed=1, num_worlds=300)[0]["hand"][:, 0]
    nine_or_more = slice(RANK_NAMES.index("9"), None)
    assert (worlds[:, nine_or_more].sum(axis=1) == 2).all()  # the two picked up
    assert (free[:, nine_or_more].sum(axis=1) > 2).mean() > 0.3


def ways(unseen: list[int], held: list[int]) -> dict[tuple[int, ...], int]:
    """Every way to put some of these cards into places with such bounds, one by one."""
    if not held:
        return {(): 1}
    found: dict[tuple[int, ...], int] = {}
    for i, rank in enumerate(unseen):
        if rank < held[0]:
            for rest, count in ways([*unseen[:i], *unseen[i + 1 :]], held[1:]).items():
                key = (rank, *rest)
                found[key] = found.get(key, 0) + count
    return found


def test_worlds_under_bounds_have_the_frequencies_of_full_enumeration() -> None:
    # Seat 0 holds cards below 4 and below 7 and a free one; three more lie face down.
    batch = position("1 5 9", face_down="2 6 8", other_hand="10 10 10")
    states = batch.states.copy()
    states["bounds"][0, 0] = [3, 6, 0]
    batch.load(states)
    seen = batch.observe([1])
    unseen = [0, 1, 4, 5, 7, 8]
    law: dict[tuple[int, ...], int] = {}
    for hand, count in ways(unseen, [3, 6, NOTHING]).items():
        key = tuple(sorted(hand))
        law[key] = law.get(key, 0) + count
    num_worlds = 30_000
    worlds = determinize(seen, seed=5, num_worlds=num_worlds)[0]["hand"][:, 0]
    drawn: dict[tuple[int, ...], int] = {}
    for copies in worlds:
        key = tuple(np.repeat(np.arange(13), copies).tolist())
        drawn[key] = drawn.get(key, 0) + 1
    assert set(drawn) == set(law)
    for key, count in law.items():
        expected = num_worlds * count / sum(law.values())
        assert abs(drawn[key] - expected) < 5 * np.sqrt(expected)


def test_people_read_it() -> None:
    game = raw_env(2, render_mode="ansi")
    game.reset(seed=0)
    game._batch.load(play(position("2 3 4", pile="10"), "pick up").states)
    assert "4 cards, among them 10; 3 below 10" in " ".join(str(game.render()).split())
