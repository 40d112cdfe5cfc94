import pytest

from threeup_env import ACTION_NAMES, Batch, IllegalActionError, action_id
from threeup_env.engine.actions import DRAW, FLIP, NUM_ACTIONS, PICK_UP


def test_every_name_round_trips() -> None:
    assert [action_id(name) for name in ACTION_NAMES] == list(range(94))
    assert len(set(ACTION_NAMES)) == NUM_ACTIONS == 94


def test_the_table_is_thirteen_lays_seventy_eight_plays_and_three_others() -> None:
    lays = [name for name in ACTION_NAMES if name.startswith("lay ")]
    plays = [name for name in ACTION_NAMES if name.startswith("play ")]
    assert len(lays) == 13
    assert len(plays) == 10 * 7 + 6 + 1 + 1
    assert plays[6] == "play 1 x7"
    assert plays[-3:] == ["play C x6", "play C+1", "play C+2"]
    assert [ACTION_NAMES[a] for a in (DRAW, FLIP, PICK_UP)] == ["draw", "flip", "pick up"]


def test_an_unknown_name_is_refused_with_examples_of_right_ones() -> None:
    with pytest.raises(ValueError, match=r"expected e\.g\. 'lay 7', .*; got 'play 7x2'"):
        action_id("play 7x2")


def test_an_illegal_action_names_the_game_the_seat_and_the_legal_set() -> None:
    batch = Batch(2)
    batch.reset()
    before = batch.states.copy()
    legal = int(batch.action_masks[0].argmax())
    with pytest.raises(IllegalActionError) as error:
        batch.step([legal, action_id("draw")])
    text = str(error.value)
    assert text.startswith("game 1, seat 0: expected one of ")
    assert text.endswith("; got 91 'draw'")
    for action in batch.action_masks[1].nonzero()[0]:
        assert f"{action} '{ACTION_NAMES[action]}'" in text
    assert (batch.states == before).all()


@pytest.mark.parametrize("action", [-1, -2, 94, 10**9])
def test_an_id_outside_the_table_is_refused(action: int) -> None:
    batch = Batch(1)
    batch.reset()
    with pytest.raises(IllegalActionError, match=rf"got {action} \(ids are 0\.\.93\)"):
        batch.step([action])
