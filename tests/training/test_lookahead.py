"""Learning by looking ahead: which decisions it keeps, and that it learns from them."""

from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common import logger

import threeup_agents
from tests.builders import position
from threeup_agents.search.position import NUM_LOOKED
from threeup_agents.training import run
from threeup_agents.training.lessons import Lessons, learn_from
from threeup_agents.training.lookahead import LookAhead, within_decision
from threeup_agents.training.settings import Config
from threeup_env import action_id
from threeup_env.engine.observation import observation_fields

torch.set_num_threads(1)


def learner(num_players: int = 3, **settings: Any) -> LookAhead:
    """A small learner with its games dealt."""
    small: dict[str, Any] = {"num_games": 64, "rollout_steps": 16, "minibatch": 256}
    small |= {"hidden": (32, 16), "lookahead": True, "learning_rate": 3e-3}
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


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_it_keeps_the_decisions_that_the_network_decides(num_players: int) -> None:
    model = learner(num_players)
    lessons = collect(model)
    assert 64 * 16 <= len(lessons.counts) == model.num_timesteps < 64 * 18
    if num_players == 2:
        opening = lessons.observations
        for _ in range(5):
            lessons = collect(model)
    fields = observation_fields(num_players)
    cards = lessons.observations[:, fields["draw_pile_size"]][:, 0]
    laying = lessons.observations[:, fields["laying"]][:, 0]
    if num_players == 2:
        assert (cards > 0).any() and (cards == 0).any()
        assert opening[:, fields["laying"]].any()
    else:
        assert not cards.any() and not laying.any()
    assert (lessons.counts > 1).all()  # forced moves teach nothing
    assert lessons.counts.sum() == len(lessons.actions) == len(lessons.gains)
    habits = lessons.looked[:, -1] == 1
    assert habits.sum() == len(lessons.counts)
    assert not lessons.gains[habits].any() and lessons.gains[~habits].any()
    rows = np.repeat(np.arange(len(lessons.counts)), lessons.counts)
    masks = np.zeros((len(lessons.counts), 94), np.bool_)
    masks[rows, lessons.actions] = True
    careful = threeup_agents.make("careful").act(lessons.observations, masks)
    np.testing.assert_array_equal(lessons.actions[habits], careful)


def test_half_of_the_games_are_against_others() -> None:
    model = learner(num_games=400)
    named = (model.env.seat_agents > 0).any(axis=1)
    assert model.opponents == ("greedy", "careful")
    assert 140 < named.sum() < 260  # binomial(400, 1/2), five deviations
    assert ((model.env.seat_agents == 0).sum(axis=1)[named] == 1).all()


def test_values_within_a_decision_by_hand() -> None:
    values = torch.tensor([1.0, 3.0, 5.0, 6.0, 7.0])
    found = within_decision(values, torch.tensor([0, 0, 1, 1, 1]))
    torch.testing.assert_close(found, torch.tensor([-1.0, 1.0, -1.0, 0.0, 1.0]))


def test_the_network_is_shown_the_look_in_some_decisions() -> None:
    model = learner()
    collect(model)
    for sample in model._minibatches():
        looked = sample.features[:, -NUM_LOOKED:]
        assert not looked[~sample.shown][:, :-1].any()
        assert (looked[sample.shown][:, 0] == 1).all()
        assert 0.4 < sample.shown.float().mean() < 0.9
        per_decision = torch.bincount(sample.decisions, sample.shown.double())
        counts = torch.bincount(sample.decisions)
        assert ((per_decision == 0) | (per_decision == counts)).all()  # all of its actions alike
        assert torch.bincount(sample.decisions, looked[:, -1].double()).eq(1).all()


def test_it_learns_the_move_that_loses() -> None:
    model = learner(2)
    batch = position("5 5", pile="3", other_hand="8 9 10")
    network = model.policy.network()
    lessons, _ = learn_from(
        batch.observations, batch.action_masks, batch.states, np.uint64(1), network, num_threads=1
    )
    model._lessons = Lessons(*(np.concatenate([array] * 64) for array in lessons))
    for _ in range(60):
        model.train()
    for agent in model.export((2,)).players().values():
        found = agent(0).explain(batch.observations[0])
        assert found.actions == ("play 5 x2", "play 5")
        assert found.gains[1] == pytest.approx(-1, abs=0.05)
        assert found.chosen == "play 5 x2"
    assert action_id("play 5") in found.weights


def test_more_lessons_explain_more() -> None:
    """Sums of squares of gains that weren't learnt from, by a network that has learnt or not."""
    model = learner(3, num_games=256, rollout_steps=16)

    def explained() -> list[float]:
        held_out = collect(model)
        kept, model.n_epochs = model.n_epochs, 1
        model.policy.optimizer.param_groups[0]["lr"] = 0.0
        model.lr_schedule = lambda remaining: 0.0
        model._lessons = held_out
        model.train()
        model.n_epochs = kept
        return [
            model.logger.name_to_value[f"train/gains_explained_{name}"]
            for name in ("looking", "net")
        ]

    schedule = model.lr_schedule
    before = explained()
    model.lr_schedule = schedule
    for _ in range(8):
        collect(model)
        model.train()
    after = explained()
    assert after[0] > before[0] + 0.2 and after[1] > before[1]
    assert after[0] > after[1]  # a look tells more than the position alone


def test_any_number_of_threads_collects_the_same() -> None:
    found = []
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        found.append(collect(learner(2, num_games=30)))
    torch.set_num_threads(1)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def learnt(num_threads: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Any]:
    """Sizes of the minibatches of two rollouts in several parts, and the weights after them."""
    sizes: list[int] = []
    sample = LookAhead._sample

    def noted(self: LookAhead, part: Any, starts: Any) -> Any:
        sizes.append(len(part))
        return sample(self, part, starts)

    monkeypatch.setattr(LookAhead, "_sample", noted)
    torch.set_num_threads(num_threads)
    try:
        model = learner(2, minibatch=64)
        for _ in range(2):
            collect(model)
            model.train()
    finally:
        torch.set_num_threads(1)
        monkeypatch.undo()
    assert sum(sizes) == model.n_epochs * model.num_timesteps  # every decision, in each epoch
    weights = torch.nn.utils.parameters_to_vector(model.policy.parameters())
    return sizes, weights.detach().numpy()


def test_threads_learn_the_same_from_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, weights = learnt(2, monkeypatch)
    assert max(sizes) < 100 and len(sizes) > 2 * 2 * 8
    again, repeated = learnt(2, monkeypatch)
    assert again == sizes
    np.testing.assert_array_equal(repeated, weights)
    alone, same = learnt(1, monkeypatch)
    assert alone == sizes
    np.testing.assert_allclose(same, weights, atol=1e-3)  # sums in another order
