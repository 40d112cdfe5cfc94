"""What a seat knows after its action, held against what it then observes."""

import numpy as np
import pytest

from threeup_env import Batch, action_id, observation_fields
from threeup_env.engine.actions import FLIP
from threeup_env.engine.afterstates import afterstates
from threeup_env.engine.determinize import determinize
from threeup_env.engine.observation import decode, observation_size, write_observation


def random_actions(batch: Batch, rng: np.random.Generator) -> np.ndarray:
    """A legal action of each game."""
    drawn = np.where(batch.action_masks, rng.random(batch.action_masks.shape), -1)
    actions: np.ndarray = drawn.argmax(axis=1)
    return actions


@pytest.mark.parametrize("num_players", range(2, 7))
def test_where_nothing_is_hidden_it_is_the_next_observation(num_players: int) -> None:
    batch = Batch(64, num_players, seed=3, autoreset=False)
    batch.reset()
    rng = np.random.default_rng(num_players)
    equal = drawn = 0
    fields = observation_fields(num_players)
    while batch.action_masks.any(axis=1).all():
        before, seats = batch.states.copy(), batch.seats.copy()
        actions = random_actions(batch, rng)
        rows = np.flatnonzero(actions != FLIP)
        found = afterstates(batch.observations[rows], actions[rows])
        batch.step(actions)
        for after, row in zip(found, rows, strict=True):
            state, seen = batch.states[row], np.empty(observation_size(num_players), np.int8)
            write_observation(state, int(seats[row]), seen)
            count = int(before["draw_pile_size"][row] - state["draw_pile_size"])
            shown = before["laying"][row] > 0 and state["laying"] == 0
            got, right = decode(after), decode(seen)
            if shown:  # the others' laid cards are chance's answer (R5)
                right["seats"]["face_up"][1:] = 0
                right["unseen"] = got["unseen"]
            if count:
                missing = right["seats"]["hand"][0] - got["seats"]["hand"][0]
                assert missing.sum() == count and (missing >= 0).all()
                if not shown:
                    assert (got["unseen"] - right["unseen"] == missing).all()
                right["unseen"] = got["unseen"]
                right["seats"]["hand"][0] = got["seats"]["hand"][0]
                drawn += 1
            right["steps_left"] = got["steps_left"]  # counted from what is left, 127 and more
            for name, part in fields.items():
                assert (after[part] == seen[part]).all(), name
            equal += 1
    assert equal > 500 and drawn > 50


def test_hidden_cards_change_nothing() -> None:
    """Twins that differ in what the seat can't know have the same afterstates."""
    batch, twin = (Batch(32, 3, seed=5) for _ in range(2))
    batch.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        batch.step(random_actions(batch, rng))
    twin.load(determinize(batch.observations, seed=9)[:, 0])
    assert (twin.states["hand"] != batch.states["hand"]).any()
    actions = random_actions(batch, rng)
    rows = np.flatnonzero(actions != FLIP)
    found = [afterstates(b.observations[rows], actions[rows]) for b in (batch, twin)]
    np.testing.assert_array_equal(found[0], found[1])


def test_a_seat_that_clears_the_pile_sees_it_out_of_play() -> None:
    """By hand: a Clear with its draw (R10, R15)."""
    batch = Batch(1, 2, seed=1)
    batch.reset()
    while batch.states["laying"][0] > 0 or not batch.action_masks[0, action_id("play C")]:
        batch.step(batch.action_masks.argmax(axis=1))
    before = decode(batch.observations)[0]
    after = decode(afterstates(batch.observations, np.array([action_id("play C")])))[0]
    assert after["pile"].sum() == 0 and after["top"].sum() == 0
    assert after["out_of_play"].sum() == before["out_of_play"].sum() + before["pile"].sum() + 1
    assert after["seats"]["hand_size"][0] == 3
    assert after["seats"]["hand"][0].sum() == before["seats"]["hand"][0].sum() - 1
    assert after["draw_pile_size"] == before["draw_pile_size"] - 1
    assert after["seats"]["acting"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("actions", "match"),
    [
        ([FLIP], r"row 0 has \d+ 'flip'"),
        ([action_id("play C")], "row 0 has"),
        ([-1], "row 0 has -1 'no action'"),
        ([1.0], "expected integers of shape"),
        ([0, 0], r"expected integers of shape \(1,\)"),
    ],
)
def test_what_it_refuses(actions: list[float], match: str) -> None:
    batch = Batch(1, 2, seed=1)
    batch.reset()
    with pytest.raises(ValueError, match=match):
        afterstates(batch.observations, np.array(actions))
