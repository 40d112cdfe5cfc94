import numpy as np
import pytest

from threeup_env import RANK_NAMES, VARIANTS, Batch
from threeup_env.engine.cards import sorted_deck


def test_R2_standard_deck_is_seven_of_each_number_six_clear_six_clear_1_two_clear_2() -> None:
    copies = dict(zip(RANK_NAMES, VARIANTS["standard"].copies, strict=True))
    assert copies == {str(n): 7 for n in range(1, 11)} | {"C": 6, "C+1": 6, "C+2": 2}
    assert VARIANTS["standard"].deck_size == 84


def test_R2_listed_deck_is_two_copies_in_three_colours_and_two_clear_2() -> None:
    copies = dict(zip(RANK_NAMES, VARIANTS["listed"].copies, strict=True))
    assert copies == {str(n): 6 for n in range(1, 11)} | {"C": 6, "C+1": 6, "C+2": 2}
    assert VARIANTS["listed"].deck_size == 74


def test_R3_ranks_are_ordered_from_1_to_clear_2() -> None:
    assert RANK_NAMES == ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "C", "C+1", "C+2")


def test_mini_shows_every_rule() -> None:
    mini = dict(zip(RANK_NAMES, VARIANTS["mini"].copies, strict=True))
    assert (
        sum(count >= 3 for name, count in mini.items() if not name.startswith("C")) >= 2
    )  # R6, R9
    assert mini["C"] >= 2  # R8, R10
    assert mini["C+1"] >= 1  # R11
    assert mini["C+2"] >= 1  # R12
    layout = VARIANTS["mini"]
    assert layout.num_face_up >= 1  # R5
    assert layout.num_face_down >= 1  # R18
    assert layout.hand_size >= 2  # R12: a draw that may be declined needs a card left in hand
    assert layout.deck_size > 2 * layout.num_dealt  # R15


@pytest.mark.parametrize("variant", VARIANTS)
def test_decks_are_shuffled_from_the_whole_deck(variant: str) -> None:
    batch = Batch(64, variant=variant, seed=3)
    batch.reset()
    records = batch.states
    assert len({record.tobytes() for record in records}) == 64
    for record in records:
        dealt = [
            *np.repeat(np.arange(13), record.hand[:2].sum(axis=0)),
            *(record.face_down[s, i] for s in range(2) for i in range(record.face_down_size[s])),
            *record.draw_pile[: record.draw_pile_size],
        ]
        assert sorted(dealt) == sorted_deck(variant).tolist()


@pytest.mark.parametrize(
    ("deck", "message"),
    [
        ([[0, 1, 2]], r"deck: expected 10 rank ids .* for variant 'mini'; got shape \(3,\)"),
        ([[0, 0, 0, 1, 1, 1, 10, 10, 11, 99]], "expected rank ids 0..12; got 99"),
        ([[0, 0, 0, 0, 1, 1, 10, 10, 11, 12]], "with 1 3 times, got 4, 2 3 times, got 2"),
        ([[0.0] * 10], "got shape .* of float64"),
    ],
)
def test_a_wrong_deck_is_refused_by_saying_what_is_wrong(
    deck: list[list[int]], message: str
) -> None:
    batch = Batch(1, variant="mini")
    with pytest.raises(ValueError, match=message):
        batch.reset(decks=deck)


@pytest.mark.parametrize(
    ("variant", "num_players", "message"),
    [
        ("big", 2, "variant: expected one of 'standard', 'listed', 'mini'; got 'big'"),
        ("standard", 7, "num_players: expected 2 to 6 for variant 'standard'; got 7"),
        ("standard", 1, "num_players: expected 2 to 6 for variant 'standard'; got 1"),
        ("mini", 3, "num_players: expected 2 for variant 'mini'; got 3"),
    ],
)
def test_an_unknown_variant_or_table_size_is_refused(
    variant: str, num_players: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(1, num_players, variant)
