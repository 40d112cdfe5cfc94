"""What comes from outside is refused by the field that is off."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import threeup_agents
from tests.engine.test_observation import random_play
from threeup_env import Batch, describe, determinize, observation_fields
from threeup_env.engine.checks import check_states, checked_observations

AGENTS = ("random", "greedy", "careful", "flat:2", "search:4", "look:4", "policy")


def decisions(num_players: int, num_games: int = 40, steps: int = 45) -> Batch:
    batch = Batch(num_games, num_players, seed=num_players)
    batch.reset()
    mover = threeup_agents.make("random", seed=1)
    for _ in range(steps):
        batch.step(mover.act(batch.observations, batch.action_masks))
    return batch


@pytest.mark.parametrize("num_players", range(2, 7))
def test_what_games_show_is_sound(num_players: int) -> None:
    for batch in random_play(num_players, "standard", seed=num_players, games=2):
        seen = np.concatenate([batch.observe([seat]) for seat in range(num_players)])
        np.testing.assert_array_equal(checked_observations(seen), seen)
        check_states(batch.states)


@pytest.mark.parametrize("spec", AGENTS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32])
def test_masks_of_any_kind_of_0_and_1_give_the_same_choices(spec: str, dtype: type) -> None:
    batch = decisions(2, num_games=1000 if spec in ("random", "greedy", "careful") else 40)
    first, second = (threeup_agents.make(spec, seed=3) for _ in range(2))
    expected = first.act(batch.observations, batch.action_masks)
    got = second.act(batch.observations, batch.action_masks.astype(dtype))
    np.testing.assert_array_equal(got, expected)
    assert batch.action_masks[np.arange(len(got)), got].all()


@pytest.mark.parametrize("spec", AGENTS)
def test_other_masks_are_refused(spec: str) -> None:
    batch = decisions(2)
    agent = threeup_agents.make(spec)
    twos: Any = batch.action_masks.astype(np.int8) * 2
    with pytest.raises(ValueError, match="action_masks: expected 0 and 1; got"):
        agent.act(batch.observations, twos)
    none = batch.action_masks.copy()
    none[3] = False
    with pytest.raises(ValueError, match="expected a legal action in each row; row 3 has none"):
        agent.act(batch.observations, none)
    with pytest.raises(ValueError, match=r"action_masks: expected 0 and 1, \[B, 94\]; got"):
        agent.act(batch.observations, batch.action_masks[:, :-1])


@pytest.mark.parametrize("spec", ["flat:2", "search:4", "look:4"])
def test_a_search_plays_no_action_that_the_rules_forbid(spec: str) -> None:
    batch = decisions(2)
    masks = batch.action_masks.copy()
    masks[2] = True
    with pytest.raises(ValueError, match="expected legal actions alone; row 2 has 'lay 1'"):
        threeup_agents.make(spec).act(batch.observations, masks)


IMPOSSIBLE = [("seat", 100), ("unseen", 127), ("hand_size[1]", 90), ("draw_pile_size", -1)]


@pytest.mark.parametrize("spec", ["careful", "flat:2", "search:4", "look:4", "policy"])
@pytest.mark.parametrize(("field", "value"), [*IMPOSSIBLE, ("top", 1), ("bounds[1]", 1)])
def test_observations_that_can_not_be_are_refused_by_name(
    spec: str, field: str, value: int
) -> None:
    batch = decisions(2)
    vectors = batch.observations.copy()
    vectors[5, observation_fields(2)[field]] = value
    message = rf"observations: expected in row 5 a possible {re.escape(field)}; got "
    with pytest.raises(ValueError, match=message):
        threeup_agents.make(spec).act(vectors, batch.action_masks)
    with pytest.raises(ValueError, match=rf"a possible {re.escape(field)}"):
        describe(vectors[5])
    with pytest.raises(ValueError, match=message):
        determinize(vectors, seed=0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("seat", 127), ("hand", -3), ("draw_pile_size", 127), ("num_seats", 7)),
        *(("variant", 3), ("winner", 5), ("top", 11), ("pile", 3), ("owed", -1)),
        *(("laying", 9), ("face_down_size", 4), ("bounds", 14), ("known", 8), ("max_steps", 0)),
    ],
)
def test_records_that_can_not_be_are_refused_by_name(field: str, value: int) -> None:
    batch = decisions(3, num_games=4)
    before = batch.states.copy()
    states = before.copy()
    states[field].reshape(4, -1)[2, 0] = value
    with pytest.raises(ValueError, match=rf"states: expected .*{field}"):
        batch.load(states)
    assert (batch.states == before).all()


def test_a_card_too_many_is_noticed() -> None:
    batch = decisions(2, num_games=3)
    states = batch.states.copy()
    states["out_of_play"][1, 0] = 7
    with pytest.raises(ValueError, match="expected in game 1 a possible draw_pile"):
        batch.load(states)


@given(data=st.data(), num_players=st.integers(2, 6))
@settings(deadline=None, max_examples=100)
def test_no_hostile_observation_does_harm(data: Any, num_players: int) -> None:
    batch = decisions(num_players, num_games=2, steps=data.draw(st.integers(0, 80)))
    vectors = batch.observations.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, vectors.shape[1] - 1))
        vectors[0, place] = data.draw(st.integers(-128, 127))
    for spec in ("careful", "flat:1", "search:2", "look:2", "policy"):
        agent = threeup_agents.make(spec)
        try:
            actions = agent.act(vectors, batch.action_masks)
        except ValueError as error:
            assert re.match("(observations|action_masks): expected", str(error))
        else:
            assert batch.action_masks[np.arange(2), actions].all()


@given(data=st.data(), num_players=st.integers(2, 6))
@settings(deadline=None, max_examples=100)
def test_no_hostile_record_does_harm(data: Any, num_players: int) -> None:
    batch = decisions(num_players, num_games=2, steps=data.draw(st.integers(0, 80)))
    states = batch.states.copy()
    raw = states.view(np.uint8).reshape(2, -1)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[0, data.draw(st.integers(0, raw.shape[1] - 1))] = data.draw(st.integers(0, 255))
    other = Batch(2, num_players, autoreset=False)
    try:
        other.load(states)
    except ValueError as error:
        assert str(error).startswith("states: expected")
        return
    mover = threeup_agents.make("random")
    for _ in range(30):
        rows = np.flatnonzero(other.action_masks.any(axis=1))
        if not len(rows):
            break
        other.step(mover.act(other.observations[rows], other.action_masks[rows]), rows)
        check_states(other.states)


def test_the_kind_of_an_array_is_checked_first() -> None:
    with pytest.raises(ValueError, match="states: expected STATE_DTYPE records"):
        check_states(np.zeros(3))
    with pytest.raises(ValueError, match="observations: expected int8"):
        checked_observations(np.zeros((2, 136), np.float32))
