"""The rules of a turn: R6 to R19 and the worked cases, in the words of the table.

An id begins with the rule's number in README. Expected cards are what the rule
says, counted by hand.
"""

import pytest

from tests.builders import Cards, legal, names, play, position, table


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(
            {"hand": "3 7 9", "pile": "4 7"}, "play 7, play 9", id="R6 equal or higher than the top"
        ),
        pytest.param(
            {"hand": "3 7 9"}, "play 3, play 7, play 9", id="R6 anything on an empty pile"
        ),
        pytest.param(
            {"hand": "9 C C+1 C+2", "pile": "10"},
            "play C, play C+1, play C+2",
            id="R7 Clear cards can always be played",
        ),
        pytest.param(
            {"hand": "5 5 5 6"},
            "play 5, play 5 x2, play 5 x3, play 6",
            id="R8 one to all of the equal cards",
        ),
        pytest.param(
            {"hand": "C C"}, "play C, play C x2", id="R8 R10 case 12: two Clears may go together"
        ),
        pytest.param(
            {"hand": "C+1 C+1 C+2 C+2"},
            "play C+1, play C+2",
            id="R8 Clear +1 and Clear +2 go one at a time",
        ),
        pytest.param(
            {"hand": "3 4", "pile": "9", "face_up": "10"},
            "pick up",
            id="R14 whoever can play no card of the hand must pick up",
        ),
        pytest.param(
            {"hand": "3 10", "pile": "9"}, "play 10", id="R14 whoever can play may not pick up"
        ),
        pytest.param(
            {"hand": "5", "face_up": "5 6", "face_down": "1"},
            "play 5",
            id="R16 the hand alone while it has cards",
        ),
        pytest.param(
            {"face_up": "5 5 6", "face_down": "1", "pile": "5"},
            "play 5, play 5 x2, play 6",
            id="R16 face-up cards once hand and draw pile are gone",
        ),
        pytest.param(
            {"face_up": "5 6", "face_down": "C", "pile": "9"},
            "pick up",
            id="R16 no face-down card while face-up cards lie",
        ),
        pytest.param(
            {"face_down": "7 8 9"}, "flip", id="R18 face-down cards are turned, never chosen"
        ),
        pytest.param(
            {"face_down": "1 2 3", "pile": "9"},
            "flip",
            id="R18 case 18: flip although no face-down card can be played",
        ),
    ],
)
def test_legal_actions(before: Cards, expected: str) -> None:
    assert ", ".join(legal(position(**before))) == expected


@pytest.mark.parametrize(
    ("before", "actions", "after"),
    [
        # Discards and clearing
        pytest.param(
            {"hand": "7 7 9", "pile": "4 7", "draw_pile": "1 2 3"},
            ["play 7 x2"],
            {"pile": "", "hand": "1 2 9", "draw_pile": "3", "seat": 1},
            id="R9 R15 case 1: three of one number clear",
        ),
        pytest.param(
            {"hand": "7 8 9", "pile": "7 7"},
            ["play 7"],
            {"pile": "", "hand": "8 9", "seat": 1},
            id="R9 case 2: the third of one number clears",
        ),
        pytest.param(
            {"hand": "7 7 9", "pile": "6 7"},
            ["play 7"],
            {"pile": "6 7 7", "hand": "7 9", "seat": 1},
            id="R9 case 2: two of one number do not clear",
        ),
        pytest.param(
            {"hand": "7 9 9", "other_hand": "7 7 8"},
            ["play 7", "play 7 x2"],
            {"pile": "", "other_hand": "8", "seat": 0},
            id="R9 several players clear together",
        ),
        pytest.param(
            {"hand": "3 4 5", "pile": "7 7", "other_hand": "7 8 9"},
            ["pick up", "play 7"],
            {"pile": "7", "hand": "3 4 5 7 7"},
            id="R9 case 17: a pick-up starts the run anew",
        ),
        pytest.param(
            {"hand": "C 4 5", "pile": "8 9", "draw_pile": "1 2"},
            ["play C"],
            {"pile": "", "hand": "1 4 5", "seat": 1, "owed": 0},
            id="R10 Clear takes the pile away and ends the turn",
        ),
        pytest.param(
            {"hand": "C C 4"},
            ["play C x2"],
            {"pile": "", "hand": "4", "seat": 1},
            id="R10 case 12: two Clears onto an empty pile",
        ),
        # Extra discards
        pytest.param(
            {"hand": "C+1 4 5", "pile": "8 9"},
            ["play C+1"],
            {"pile": "", "hand": "4 5", "seat": 0, "owed": 1},
            id="R11 Clear +1 takes the pile away and leaves one owed",
        ),
        pytest.param(
            {"hand": "C+2 4 5", "pile": "8 9"},
            ["play C+2"],
            {"pile": "", "hand": "4 5", "seat": 0, "owed": 2},
            id="R12 Clear +2 takes the pile away and leaves two owed",
        ),
        pytest.param(
            {"hand": "C+1 3", "draw_pile": "1 2 4 5 6"},
            ["play C+1"],
            {"legal": "play 3, draw"},
            id="R12 case 3: draw is legal after a Clear +1",
        ),
        pytest.param(
            {"hand": "C+1 3", "draw_pile": "1 2 4 5 6"},
            ["play C+1", "draw"],
            {"legal": "play 1, play 2, play 3", "hand": "1 2 3", "owed": 1, "seat": 0},
            id="R12 case 3: draw fills the hand to three, once",
        ),
        pytest.param(
            {"hand": "C+2", "draw_pile": "4 6", "face_up": "9"},
            ["play C+2", "draw"],
            {"hand": "4 6", "draw_pile": "", "owed": 2, "seat": 0},
            id="R12 draw fills the hand as far as the draw pile lasts",
        ),
        pytest.param(
            {"hand": "C+1 3 4 5", "draw_pile": "1 2"},
            ["play C+1"],
            {"legal": "play 3, play 4, play 5"},
            id="R12 no draw with three cards in hand",
        ),
        pytest.param(
            {"hand": "C+1 3"},
            ["play C+1"],
            {"legal": "play 3"},
            id="R12 no draw from an empty draw pile",
        ),
        pytest.param(
            {"hand": "C 3", "other_hand": "5", "draw_pile": "1 2"},
            ["play C"],
            {"legal": "play 5"},
            id="R12 no draw after a Clear or before a discard",
        ),
        pytest.param(
            {"hand": "C+2 4 6", "draw_pile": "1 2 3"},
            ["play C+2"],
            {"legal": "play 4, play 6, draw"},
            id="R12 case 4: draw is legal before the first owed discard",
        ),
        pytest.param(
            {"hand": "C+2 4 6", "draw_pile": "1 2 3"},
            ["play C+2", "play 4"],
            {"legal": "play 6", "owed": 1, "seat": 0},
            id="R12 case 4: draw is not legal before the second",
        ),
        pytest.param(
            {"hand": "C+2 4 6", "draw_pile": "1 2 3", "face_up": "9"},
            ["play C+2", "play 4", "play 6"],
            {"pile": "4 6", "hand": "1 2 3", "owed": 0, "seat": 1},
            id="R12 R15 case 4: the last owed discard ends the turn",
        ),
        pytest.param(
            {"hand": "C+2 9 3", "draw_pile": "1 2"},
            ["play C+2", "play 9"],
            {"legal": "pick up"},
            id="R13 R14 case 5: an owed discard that can't follow",
        ),
        pytest.param(
            {"hand": "C+2 9 3", "draw_pile": "1 2"},
            ["play C+2", "play 9", "pick up"],
            {"hand": "3 9", "pile": "", "draw_pile": "1 2", "owed": 0, "seat": 1},
            id="R13 R14 case 5: picking up ends the turn without a draw",
        ),
        pytest.param(
            {"hand": "C+2 C+1 5", "draw_pile": "1 2"},
            ["play C+2", "play C+1"],
            {"owed": 2, "legal": "play 5, draw"},
            id="R12 R13 case 13: a Clear +1 as the first of two leaves two",
        ),
        pytest.param(
            {"hand": "C+2 C+1 C+1 5", "draw_pile": "1 2", "face_up": "9"},
            ["play C+2", "play C+1", "play 5", "play C+1"],
            {"owed": 1, "legal": "draw", "seat": 0},
            id="R12 R13 case 13: a Clear +1 as the last owed leaves one",
        ),
        pytest.param(
            {"hand": "C+2 C+2 3 4 5"},
            ["play C+2", "play C+2"],
            {"owed": 3, "seat": 0},
            id="R13 a Clear +2 as the first of two leaves three",
        ),
        pytest.param(
            {"hand": "C+1 C 4"},
            ["play C+1", "play C"],
            {"owed": 0, "seat": 1},
            id="R13 a Clear pays an owed discard",
        ),
        pytest.param(
            {"hand": "C+2 7 7 7 9"},
            ["play C+2", "play 7 x3"],
            {"pile": "", "owed": 1, "seat": 0, "legal": "play 9"},
            id="R9 R13 case 15: three of one number pay one discard",
        ),
        # Picking up and drawing
        pytest.param(
            {"hand": "3", "pile": "4 9 9", "draw_pile": "1 2"},
            ["pick up"],
            {"hand": "3 4 9 9", "pile": "", "draw_pile": "1 2", "seat": 1},
            id="R14 the whole pile goes into hand",
        ),
        pytest.param(
            {"face_up": "C+2 9 3", "face_down": "1 2 4"},
            ["play C+2", "play 9"],
            {"legal": "pick up", "face_up": "3"},
            id="R14 case 14: a face-up card that can't follow",
        ),
        pytest.param(
            {"face_up": "C+2 9 3", "face_down": "1 2 4"},
            ["play C+2", "play 9", "pick up"],
            {"hand": "9", "face_up": "3", "pile": "", "seat": 1, "owed": 0},
            id="R14 case 14: the face-up card stays on the table",
        ),
        pytest.param(
            {"hand": "3 3 4 4 5 5 6 6", "draw_pile": "1 2"},
            ["play 3"],
            {"hand": "3 4 4 5 5 6 6", "draw_pile": "1 2", "seat": 1},
            id="R15 case 11: whoever holds three or more draws nothing",
        ),
        pytest.param(
            {"hand": "3 4 5", "draw_pile": "8"},
            ["play 3"],
            {"hand": "4 5 8", "draw_pile": ""},
            id="R15 draw back up to three",
        ),
        pytest.param(
            {"hand": "4 4 4", "draw_pile": "8 9", "face_up": "9"},
            ["play 4 x3"],
            {"hand": "8 9", "draw_pile": "", "seat": 1},
            id="R15 draw as far as the draw pile lasts",
        ),
        # Zones
        pytest.param(
            {"hand": "C+2", "face_up": "9", "face_down": "4 10 10"},
            ["play C+2"],
            {"legal": "play 9", "owed": 2},
            id="R16 case 6: owed discards come from the face-up cards",
        ),
        pytest.param(
            {"hand": "C+2", "face_up": "9", "face_down": "4 10 10"},
            ["play C+2", "play 9"],
            {"legal": "flip", "owed": 1, "seat": 0},
            id="R16 case 6: then from the face-down cards",
        ),
        pytest.param(
            {"hand": "C+2", "face_up": "9", "face_down": "4 10 10"},
            ["play C+2", "play 9", "flip"],
            {"hand": "4 9", "face_down": "10 10", "pile": "", "owed": 0, "seat": 1},
            id="R16 R18 case 6: a failing flip among them picks up",
        ),
        pytest.param(
            {"hand": "C+2 7", "face_up": "7 7 9"},
            ["play C+2", "play 7"],
            {"legal": "play 7, play 7 x2, play 9", "owed": 1},
            id="R16 case 16: a zone becomes active in the middle of a turn",
        ),
        pytest.param(
            {"hand": "C+2 7", "face_up": "7 7 9"},
            ["play C+2", "play 7", "play 7 x2"],
            {"pile": "", "face_up": "9", "owed": 0, "seat": 1},
            id="R9 R16 case 16: cards of two zones clear together",
        ),
        pytest.param(
            {"hand": "C+1", "draw_pile": "4 5 6", "face_up": "9"},
            ["play C+1"],
            {"legal": "draw", "owed": 1},
            id="R17 case 7: an empty hand after a Clear +1 must draw",
        ),
        pytest.param(
            {"hand": "C+2 5", "draw_pile": "1 2 3 4", "face_up": "9"},
            ["play C+2", "play 5"],
            {"hand": "1 2 3", "draw_pile": "4", "pile": "5", "owed": 0, "seat": 1},
            id="R17 case 8: the second owed discard lapses",
        ),
        pytest.param(
            {"face_down": "4 9 10", "pile": "6"},
            ["flip"],
            {"hand": "4 6", "face_down": "9 10", "pile": "", "seat": 1},
            id="R18 case 9: a failed card goes into hand with the pile",
        ),
        pytest.param(
            {"face_down": "4 9 10", "pile": "6", "other_hand": "1 2 3"},
            ["flip", "play 1"],
            {"legal": "play 4, play 6"},
            id="R16 R18 case 9: the other face-down cards stay locked",
        ),
        pytest.param(
            {"face_down": "4 9 10", "pile": "6", "other_hand": "1 2 3"},
            ["flip", "play 1", "play 4", "pick up", "play 6", "pick up"],
            {"hand": "", "legal": "flip"},
            id="R18 case 9: until that hand is gone",
        ),
        pytest.param(
            {"face_down": "9 4 10", "pile": "6"},
            ["flip"],
            {"pile": "6 9", "face_down": "4 10", "seat": 1},
            id="R18 the first dealt is turned first",
        ),
        pytest.param(
            {"face_down": "C+1 4 10", "pile": "6"},
            ["flip"],
            {"pile": "", "owed": 1, "seat": 0, "legal": "flip"},
            id="R18 a turned card has all its effects",
        ),
        pytest.param(
            {"face_up": "4 5 6", "pile": "6 7", "other_hand": "3 4 5"},
            ["pick up", "play 3"],
            {"legal": "play 6, play 7", "face_up": "4 5 6"},
            id="R19 after picking up, the hand comes first again",
        ),
        pytest.param(
            {"hand": "5", "face_up": "9"},
            ["play 5"],
            {"seat": 1, "legal": "play 8, play 9, play 10"},
            id="R1 R20 an empty hand alone does not win",
        ),
    ],
)
def test_play(before: Cards, actions: list[str], after: dict[str, str | int]) -> None:
    batch = play(position(**before), *actions)
    assert {name: table(batch)[name] for name in after} == after


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param("play 9 x2", "4 9 9 9", id="R9 a cleared pile leaves play for good"),
        pytest.param("play C", "4 9 C", id="R10 the Clear included"),
        pytest.param("play C+1", "4 9 C+1", id="R11 the Clear +1 included"),
        pytest.param("play C+2", "4 9 C+2", id="R12 the Clear +2 included"),
    ],
)
def test_what_leaves_play(action: str, expected: str) -> None:
    batch = position(hand="9 9 C C+1 C+2", pile="4 9")
    gone = batch.states["out_of_play"][0].copy()
    play(batch, action)
    assert names(batch.states["out_of_play"][0] - gone) == expected
