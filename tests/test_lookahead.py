from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common import logger

import agents
import train
from agents.lookahead import LOGITS_PER_WIN, Lessons, LookAhead, relative, write_action_values
from agents.value import HORIZON, play_on, shipped, worth
from tests.builders import position
from threeup_env import Batch, action_id
from threeup_env.actions import NUM_ACTIONS
from threeup_env.observation import observation_fields
from threeup_env.rules import apply_action, write_legal_actions
from threeup_env.state import STATE_DTYPE

torch.set_num_threads(1)  # these networks are too small for more


def learner(num_players: int = 3, **settings: Any) -> LookAhead:
    """A small learner with its games dealt."""
    small: dict[str, Any] = {"num_games": 128, "minibatch": 1024, "hidden": (64, 64), "levels": 4}
    small |= {"teacher": "careful", "lookahead": True, "learning_rate": 3e-3}
    model = train.build(train.Config(num_players=num_players, **(small | settings)))
    assert isinstance(model, LookAhead)
    model._setup_learn(10**9)
    model.set_logger(logger.configure(None, []))
    return model


def collect(model: LookAhead) -> Lessons:
    """One rollout, without an update."""
    buffer = model.rollout_buffer
    model.collect_rollouts(model.env, model._init_callback(None), buffer, model.n_steps)
    return model._lessons


def values_of(states: np.ndarray) -> np.ndarray:
    """`write_action_values` of some games, all looked ahead in; float32 `[K, A]`."""
    values = np.zeros((len(states), NUM_ACTIONS), np.float32)
    network = shipped(int(states[0]["num_seats"]))
    write_action_values(states, np.ones(len(states), np.bool_), network, values)
    return values


@pytest.mark.parametrize("num_players", range(2, 7))
def test_an_action_is_worth_what_plain_python_finds(num_players: int) -> None:
    batch = Batch(60, num_players, seed=5)
    batch.reset()
    careful = agents.make("careful")
    for _ in range(25):
        batch.step(careful.act(batch.observations, batch.action_masks))
    before = batch.states.copy()
    values = values_of(batch.states)
    np.testing.assert_array_equal(batch.states, before)
    legal, scratch = (np.empty(NUM_ACTIONS, np.int64) for _ in range(2))
    differing = 0
    for row in range(60):
        actions = legal[: write_legal_actions(batch.states[row], legal)].copy()
        seat = int(batch.states[row]["seat"])
        expected = []
        for action in actions:
            game = np.zeros(1, STATE_DTYPE)
            game[0] = batch.states[row]
            apply_action(game[0], action)
            play_on(game[0], seat, HORIZON, scratch)
            expected.append(worth(game[0], seat, shipped(num_players)))
        wanted = np.zeros(NUM_ACTIONS)
        wanted[actions] = np.array(expected) - np.mean(expected)
        np.testing.assert_allclose(values[row], wanted, atol=1e-6)
        differing += np.ptp(expected) > 0.01
    assert differing > 20


def test_the_move_that_wins_is_worth_a_whole_game() -> None:
    """Two fives go out at once; after one of them the other seat's 8, 9 and 10 win instead."""
    states = position("5 5", pile="3", other_hand="8 9 10").states
    values = values_of(states)[0]
    assert values[action_id("play 5 x2")] == 0.5  # a win share of 1, less the mean
    assert values[action_id("play 5")] == -0.5


def test_games_not_looked_ahead_in_have_no_values() -> None:
    states = np.repeat(position("5 5", pile="3").states, 3)
    values = np.zeros((3, NUM_ACTIONS), np.float32)
    write_action_values(states, np.array([False, True, False]), shipped(2), values)
    assert values.any(axis=1).tolist() == [False, True, False]


def test_relative_logits_are_win_shares_less_their_mean() -> None:
    logits = torch.tensor([[30.0, 60.0, 999.0], [5.0, 7.0, 9.0]])
    masks = torch.tensor([[True, True, False], [False, True, False]])
    expected = torch.tensor([[-15.0, 15.0, 0.0], [0.0, 0.0, 0.0]]) / LOGITS_PER_WIN
    torch.testing.assert_close(relative(logits, masks), expected)


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_it_looks_ahead_once_the_draw_pile_is_empty(num_players: int) -> None:
    model = learner(num_players)
    for _ in range(3):
        lessons = collect(model)
    fields = observation_fields(num_players)
    cards = lessons.observations[:, fields["draw_pile_size"]][:, 0]
    laying = lessons.observations[:, fields["laying"]][:, 0]
    np.testing.assert_array_equal(lessons.ahead, (cards == 0) & (laying == 0))
    assert 100 < lessons.ahead.sum() < len(lessons.ahead)
    assert (lessons.action_masks.sum(axis=1) > 1).all()  # forced moves teach nothing
    assert not lessons.values[~lessons.ahead].any()
    assert not lessons.values[~lessons.action_masks].any()
    np.testing.assert_allclose(lessons.values.sum(axis=1), 0, atol=1e-5)
    taught = agents.make("careful").act(lessons.observations, lessons.action_masks)
    np.testing.assert_array_equal(lessons.taught, taught)


def test_it_learns_the_move_that_wins() -> None:
    model = learner(2)
    batch = position("5 5", pile="3", other_hand="8 9 10")
    observations, masks, values = batch.observations, batch.action_masks, values_of(batch.states)
    taught = np.array([action_id("play 5")])  # here the teacher's word doesn't count
    model._lessons = Lessons(observations, masks, taught, values, np.array([True]))
    for _ in range(50):
        model.train()
    chances = model.export((2,)).probabilities(observations, masks)[0]
    assert chances[action_id("play 5 x2")] > 0.99
    assert model.logger.name_to_value["train/gain_over_teacher"] == 1


def test_it_learns_what_the_teacher_does_while_there_is_a_draw_pile() -> None:
    model = learner()
    for _ in range(12):
        collect(model)
        model.train()
    assert model.logger.name_to_value["train/teacher_agreement"] > 0.5
    lessons = collect(model)
    early = ~lessons.ahead
    rows = lessons.observations[early], lessons.action_masks[early]
    best = model.export((3,)).probabilities(*rows).argmax(axis=1)
    assert (best == lessons.taught[early]).mean() > 0.7
    untrained = learner().export((3,)).probabilities(*rows).argmax(axis=1)
    assert (untrained == lessons.taught[early]).mean() < 0.5
