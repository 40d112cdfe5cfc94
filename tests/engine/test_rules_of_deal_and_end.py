"""The deal, the end and what is public: R1 to R5 and R20 to R22, in the words of the table.

An id begins with the rule's number in README. Expected cards are what the rule
says, counted by hand.
"""

import numpy as np
import pytest

from tests.builders import Cards, dealt, legal, names, play, position, ranks, table
from threeup_env import RANK_NAMES, VARIANTS, Batch, observation_fields
from threeup_env.engine.cards import sorted_deck

# Seat 0: face down 1 2 3, in hand 7 8 9 10 C C+1. Seat 1: face down 4 5 6, in hand
# C+2 1 2 3 4 5. The draw pile begins with 6 7 8.
DECK = "1 2 3 4 5 6 7 8 9 10 C C+1 C+2 1 2 3 4 5 6 7 8"
LAYS = ("lay 7", "lay 8", "lay 9", "lay 1", "lay 2", "lay 3")


def seen_by(seat: int, batch: Batch, field: str) -> str:
    """The cards in a field of what a seat of a two-seat game observes."""
    return names(batch.observe([seat])[0, observation_fields(2)[field]])


@pytest.mark.parametrize("num_players", range(2, 7))
def test_r1_seats_act_clockwise_from_seat_0(num_players: int) -> None:
    batch = Batch(1, num_players, max_steps=200, autoreset=False)
    batch.reset()
    seats = []
    while legal(batch):
        seats.append(int(batch.seats[0]))
        batch.step(batch.action_masks.argmax(axis=1))
    turns = [seat for i, seat in enumerate(seats) if i == 0 or seat != seats[i - 1]]
    assert turns == [turn % num_players for turn in range(len(turns))]


@pytest.mark.parametrize(
    ("variant", "numbers", "total"),
    [
        pytest.param("standard", 7, 84, id="R2 seven of each number"),
        pytest.param("listed", 6, 74, id="R2 six of each number as listed"),
    ],
)
def test_deck(variant: str, numbers: int, total: int) -> None:
    assert VARIANTS[variant].copies == (*[numbers] * 10, 6, 6, 2)
    assert len(sorted_deck(variant)) == total


def test_r3_ranks_ascend_from_1_to_clear_2() -> None:
    assert RANK_NAMES == ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "C", "C+1", "C+2")


def test_r4_face_down_cards_then_hands_then_the_draw_pile() -> None:
    batch = dealt(DECK)
    dealt_cards = table(batch)
    assert dealt_cards["face_down"] == "1 2 3"
    assert batch.states["face_down"][0, 1].tolist() == ranks("6 5 4")  # the last is turned first
    assert dealt_cards["hand"] == "7 8 9 10 C C+1"
    assert dealt_cards["other_hand"] == "1 2 3 4 5 C+2"
    assert str(dealt_cards["draw_pile"]).startswith("6 7 8 ")


def test_r5_each_seat_lays_three_of_its_six() -> None:
    batch = dealt(DECK)
    assert legal(batch) == ["lay 7", "lay 8", "lay 9", "lay 10", "lay C", "lay C+1"]
    play(batch, *LAYS[:3])
    assert legal(batch) == ["lay 1", "lay 2", "lay 3", "lay 4", "lay 5", "lay C+2"]
    play(batch, *LAYS[3:])
    assert legal(batch) == ["play 10", "play C", "play C+1"]


def test_r5_what_a_seat_lays_is_hidden() -> None:
    one = play(dealt(DECK), "lay 7", "lay 8", "lay 9")
    other = play(dealt(DECK), "lay C", "lay 10", "lay 7")
    np.testing.assert_array_equal(one.observe([1]), other.observe([1]))


@pytest.mark.parametrize(
    ("num_laid", "expected"),
    [
        pytest.param(3, "", id="R5 face-up cards are hidden until the last seat has laid"),
        pytest.param(6, "7 8 9", id="R5 then all are open"),
    ],
)
def test_face_up_cards_of_the_other(num_laid: int, expected: str) -> None:
    batch = play(dealt(DECK), *LAYS[:num_laid])
    assert seen_by(1, batch, "face_up[1]") == expected


def test_r4_r15_the_sizes_are_those_of_the_variant() -> None:
    batch = dealt("1 1 1 2 2 2 C C C+1 C+2", variant="mini")
    assert legal(batch) == ["lay 1", "lay 2"]
    play(batch, "lay 1", "lay C", "play 2")
    assert [table(batch)[name] for name in ("hand", "face_up", "face_down")] == ["2 C+1", "1", "1"]


@pytest.mark.parametrize(
    ("before", "actions"),
    [
        pytest.param({"hand": "5 5"}, ["play 5 x2"], id="R20 the last card wins"),
        pytest.param({"face_up": "5"}, ["play 5"], id="R20 face-up"),
        pytest.param({"face_down": "5"}, ["flip"], id="R20 face-down"),
        pytest.param(
            {"face_down": "C+2", "pile": "9"}, ["flip"], id="R20 case 10: a Clear +2 owes nothing"
        ),
        pytest.param({"hand": "C+2 5"}, ["play C+2", "play 5"], id="R20 whatever is still owed"),
    ],
)
def test_win(before: Cards, actions: list[str]) -> None:
    batch = play(position(**before), *actions)
    assert batch.terminations.tolist() == [True]
    assert batch.rewards.tolist() == [[1, -1]]
    assert (legal(batch), table(batch)["owed"]) == ([], 0)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"hand": "5 6"}, id="R21 case 21: 1 card against 3"),
        pytest.param({"hand": "5 6 7 8"}, id="R21 as many cards"),
        pytest.param({"hand": "5 6", "face_up": "1", "face_down": "1 2"}, id="R21 more cards"),
        pytest.param({"hand": "5 6 7", "draw_pile": "1"}, id="R15 R21 the turn ends with its draw"),
    ],
)
def test_nobody_wins_what_is_cut_off(before: Cards) -> None:
    batch = play(position(**before, max_steps=1), "play 5")
    assert (batch.terminations[0], batch.truncations[0]) == (False, True)
    assert batch.rewards.tolist() == [[-1, -1]]
    assert legal(batch) == []


def test_r21_the_last_action_may_still_win() -> None:
    batch = play(position(hand="5", max_steps=1), "play 5")
    assert (batch.terminations[0], batch.truncations[0]) == (True, False)


def test_r21_every_kind_of_action_counts() -> None:
    before = position(hand="C+1 3", draw_pile="1 2", face_down="1", max_steps=3)
    assert not play(before, "play C+1", "draw").truncations[0]
    assert play(before, "play 3").truncations[0]


@pytest.mark.parametrize(
    ("before", "actions", "known"),
    [
        pytest.param(
            {"hand": "3", "pile": "9 9"}, ["pick up"], "9 9", id="R22 picked-up cards are known"
        ),
        pytest.param(
            {"hand": "3", "pile": "4 9 9", "other_hand": "1 2 3"},
            ["pick up", "play 1", "play 9"],
            "4 9",
            id="R22 until they are played",
        ),
        pytest.param(
            {"face_down": "4 9", "pile": "6"}, ["flip"], "4 6", id="R22 a failed card is known"
        ),
        pytest.param(
            {"hand": "3 4 5", "draw_pile": "8"}, ["play 3"], "", id="R22 drawn cards are secret"
        ),
        pytest.param(
            {"hand": "C+1 3", "draw_pile": "8"}, ["play C+1", "draw"], "", id="R22 R12 here too"
        ),
    ],
)
def test_what_the_other_knows_of_a_hand(before: Cards, actions: list[str], known: str) -> None:
    batch = play(position(**before), *actions)
    assert seen_by(1, batch, "hand[1]") == known


def test_r22_face_down_cards_are_secret_from_their_owner() -> None:
    batch = position(face_down="1 2 3", draw_pile="", other_hand="8 9 10")
    assert seen_by(0, batch, "unseen") == "1 2 3 8 9 10"
