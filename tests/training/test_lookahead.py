from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common import logger

import threeup_agents
from tests.builders import position
from threeup_agents.search.value import HORIZON, play_on, shipped, worth
from threeup_agents.training import run
from threeup_agents.training.lookahead import MARGIN, Lessons, LookAhead, beyond_margin, write_gains
from threeup_agents.training.settings import Config
from threeup_env import Batch, action_id
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_DECK_SIZE
from threeup_env.engine.determinize import deal_unseen, write_seen, write_unseen
from threeup_env.engine.observation import observation_fields
from threeup_env.engine.rng import AGENTS, streams
from threeup_env.engine.rules import apply_action, write_legal_actions
from threeup_env.engine.state import STATE_DTYPE

torch.set_num_threads(1)  # these networks are too small for more


def learner(num_players: int = 3, **settings: Any) -> LookAhead:
    """A small learner with its games dealt."""
    small: dict[str, Any] = {"num_games": 128, "minibatch": 1024, "hidden": (64, 64), "levels": 4}
    small |= {"teacher": "careful", "lookahead": True, "learning_rate": 3e-3}
    model = run.build(Config(num_players=num_players, **(small | settings)))
    assert isinstance(model, LookAhead)
    model._setup_learn(10**9)
    model.set_logger(logger.configure(None, []))
    return model


def collect(model: LookAhead) -> Lessons:
    """One rollout, without an update."""
    buffer = model.rollout_buffer
    model.collect_rollouts(model.env, model._init_callback(None), buffer, model.n_steps)
    return model._lessons


def gains_of(batch: Batch, taught: np.ndarray, num_worlds: int = 3) -> np.ndarray:
    """`write_gains` of some games, all looked ahead in; float32 `[K, A]`."""
    gains = np.zeros((batch.num_games, NUM_ACTIONS), np.float32)
    ahead = np.ones(batch.num_games, np.bool_)
    network, stream = shipped(batch.num_players), streams(3, 1, AGENTS)
    write_gains(batch.observations, taught, ahead, num_worlds, network, stream, gains)
    return gains


@pytest.mark.parametrize("num_players", range(2, 7))
def test_an_action_gains_what_plain_python_finds(num_players: int) -> None:
    batch = Batch(90, num_players, seed=5)
    batch.reset()
    careful = threeup_agents.make("careful")
    for _ in range(25):
        batch.step(careful.act(batch.observations, batch.action_masks))
    taught = careful.act(batch.observations, batch.action_masks)
    gains = gains_of(batch, taught)

    legal, scratch = (np.empty(NUM_ACTIONS, np.int64) for _ in range(2))
    cards, stream = np.empty(MAX_DECK_SIZE, np.int8), streams(3, 1, AGENTS)
    seen, game = (np.zeros(1, STATE_DTYPE) for _ in range(2))
    differing = 0
    for row, observation in enumerate(batch.observations):
        seat = int(batch.seats[row])
        shares: dict[int, list[float]] = {}
        write_seen(observation, seen[0])
        size = write_unseen(observation, cards)
        for _ in range(3):
            world = seen.copy()
            deal_unseen(world[0], cards, size, stream)
            for action in legal[: write_legal_actions(world[0], legal)].tolist():
                game[:] = world
                apply_action(game[0], action)
                play_on(game[0], seat, HORIZON, scratch)
                share = worth(game[0], seat, shipped(num_players))
                shares.setdefault(action, []).append(share)
        assert sorted(shares) == np.flatnonzero(batch.action_masks[row]).tolist()
        wanted = np.zeros(NUM_ACTIONS)
        for action, outcomes in shares.items():
            wanted[action] = np.mean(outcomes) - np.mean(shares[int(taught[row])])
        np.testing.assert_allclose(gains[row], wanted, atol=1e-6)
        differing += int(np.ptp(wanted) > 0.01)
    assert differing > 20


def test_the_move_that_wins_gains_a_whole_game() -> None:
    """Two fives go out at once; after one of them the other seat's 8, 9 and 10 win instead."""
    gains = gains_of(position("5 5", pile="3"), np.array([action_id("play 5")]))[0]
    assert gains[action_id("play 5 x2")] == 1.0
    assert np.count_nonzero(gains) == 1  # 0 for the teacher's own


def test_decisions_not_looked_ahead_in_have_no_gains() -> None:
    observations = np.repeat(position("5 5", pile="3").observations, 3, axis=0)
    gains = np.zeros((3, NUM_ACTIONS), np.float32)
    taught = np.full(3, action_id("play 5"))
    ahead = np.array([False, True, False])
    write_gains(observations, taught, ahead, 1, shipped(2), streams(3, 1, AGENTS), gains)
    assert gains.any(axis=1).tolist() == [False, True, False]


def test_the_teacher_is_left_for_more_than_the_margin() -> None:
    gains = torch.tensor([[0.0, 2 * MARGIN], [-0.5, 0.0]])
    kept = beyond_margin(gains, torch.tensor([0, 1]))
    torch.testing.assert_close(kept, torch.tensor([[0.0, MARGIN], [-0.5 - MARGIN, 0.0]]))


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
    assert lessons.gains[lessons.ahead].any()
    assert not lessons.gains[~lessons.ahead].any()
    assert not lessons.gains[~lessons.action_masks].any()
    assert not lessons.gains[np.arange(len(lessons.taught)), lessons.taught].any()
    taught = threeup_agents.make("careful").act(lessons.observations, lessons.action_masks)
    np.testing.assert_array_equal(lessons.taught, taught)


def test_it_learns_the_move_that_wins() -> None:
    model = learner(2)
    batch = position("5 5", pile="3", other_hand="8 9 10")
    observations, masks = batch.observations, batch.action_masks
    taught = np.array([action_id("play 5")])  # here the teacher's word doesn't count
    model._lessons = Lessons(observations, masks, taught, gains_of(batch, taught), np.array([True]))
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
