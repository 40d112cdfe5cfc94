"""Magnetic mirror descent: its loss against sums by hand, its magnet, what it is for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from stable_baselines3.common import logger

from threeup_agents.training import __main__ as train
from threeup_agents.training import checkpoint, run
from threeup_agents.training.mirror_descent import MirrorDescent, divergences
from threeup_agents.training.settings import Config, check

torch.set_num_threads(1)  # these networks are too small for more


def learner(**settings: Any) -> MirrorDescent:
    """A small learner with its games dealt."""
    small: dict[str, Any] = {
        "magnet": 0.1,
        "num_games": 32,
        "rollout_steps": 40,
        "minibatch": 256,
        "hidden": (32, 32),
    }
    model = run.build(Config(variant="mini", **(small | settings)))
    assert isinstance(model, MirrorDescent)
    model._setup_learn(10_000)
    return model


def update(model: MirrorDescent) -> None:
    """One rollout and its update."""
    buffer = model.rollout_buffer
    model.collect_rollouts(model.env, model._init_callback(None), buffer, model.n_steps)
    model.set_logger(logger.configure(None, []))
    model.train()


def weights(network: torch.nn.Sequential) -> npt.NDArray[np.float32]:
    """All parameters in a row."""
    found = [parameter.detach().numpy().ravel() for parameter in network.parameters()]
    return np.concatenate(found, dtype=np.float32)


def logits(*rows: tuple[float, ...]) -> torch.Tensor:
    """Of these probabilities, shifted: only their differences count."""
    return torch.tensor(rows, dtype=torch.float64).log() + 3


def test_the_parts_of_the_loss_are_those_of_the_paper() -> None:
    policy = logits((1 / 2, 1 / 2, 0.3), (1 / 4, 1 / 4, 1 / 2))
    before = logits((1 / 4, 3 / 4, 0.6), (1 / 4, 1 / 4, 1 / 2))
    magnet = logits((1 / 2, 1 / 2, 0.1), (1 / 3, 1 / 3, 1 / 3))
    masks = torch.tensor([[True, True, False], [True, True, True]])
    actions, advantages = torch.tensor([0, 2]), torch.tensor([2.0, -1.0], dtype=torch.float64)
    parts = divergences(policy, before, magnet, masks, actions, advantages)
    # The first action has become twice as likely, the second is as likely as it was.
    assert parts.policy_gradient_loss.item() == pytest.approx(-(2 * 2 - 1 * 1) / 2)
    assert parts.approx_kl.item() == pytest.approx(0.5 * (np.log(2) + np.log(2 / 3)) / 2)
    pull = 0.5 * np.log(3 / 4) + 0.5 * np.log(3 / 2)
    assert parts.magnet_kl.item() == pytest.approx(pull / 2)
    assert -parts.entropy_loss.item() == pytest.approx((np.log(2) + 1.5 * np.log(2)) / 2)
    whole = -1.5 + 0.1 * 0.5 * np.log(4 / 3) / 2 + 0.4 * pull / 2  # eta 10, alpha 0.4
    assert parts.loss(0.4).item() == pytest.approx(whole)


def test_without_pulls_the_gradient_is_that_of_the_policy_gradient() -> None:
    policy = logits((0.2, 0.8)).requires_grad_()
    masks, actions = torch.ones(1, 2, dtype=torch.bool), torch.tensor([0])
    advantages = torch.tensor([3.0], dtype=torch.float64)
    given = policy.detach()
    loss = divergences(policy, given, given, masks, actions, advantages).loss(0.1)
    (gradient,) = torch.autograd.grad(loss, policy)
    # Both divergences are least there. d p[a] / p[a] = [j = a] - p[j] (Williams 1992).
    np.testing.assert_allclose(gradient.numpy(), [[-3 * 0.8, 3 * 0.8]])


def test_the_magnet_goes_half_of_the_way_in_its_half_life() -> None:
    model = learner(magnet_half_life=1000)
    start = weights(model.policy.magnet)
    update(model)
    share = 1 - 0.5 ** (model.rollout_buffer.num_trained / 1000)
    expected = (1 - share) * start + share * weights(model.policy.actor)
    np.testing.assert_allclose(weights(model.policy.magnet), expected, atol=1e-6)


def test_a_magnet_without_a_half_life_stays() -> None:
    model = learner(magnet_half_life=0)
    start = weights(model.policy.magnet)
    update(model)
    np.testing.assert_array_equal(weights(model.policy.magnet), start)
    assert (weights(model.policy.actor) != start).any()


def test_a_checkpoint_holds_the_magnet(tmp_path: Path) -> None:
    model, other = learner(), learner(seed=5)
    update(model)
    checkpoint.save(tmp_path / "x", model, {})
    checkpoint.load(tmp_path / "x", other)
    np.testing.assert_array_equal(weights(other.policy.magnet), weights(model.policy.magnet))


def test_who_starts_from_a_policy_has_it_as_magnet() -> None:
    trained, model = learner(), learner(seed=5)
    update(trained)
    model.policy.load_actor(trained.export((2,)))
    np.testing.assert_allclose(weights(model.policy.magnet), weights(trained.policy.actor))


def test_looking_ahead_and_a_magnet_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"lookahead: expected no magnet; got 0\.1"):
        check(Config(lookahead=True, magnet=0.1))
    with pytest.raises(ValueError, match="magnet: expected at least 0; got -1"):
        check(Config(magnet=-1))


def matching_pennies(magnet: float, share: float) -> tuple[npt.NDArray[np.float64], float]:
    """Self-play on a matrix game: both seats' chances at the end, and their NashConv.

    Seat 0 gets 3 for two heads, 1 for two tails and -1 for two that differ. Heads with chance
    1/3 leave the other seat no better answer, at both seats (by hand).
    """
    payoff = torch.tensor([[3.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    given = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    still = torch.zeros_like(given)
    masks, actions = torch.ones(2, 2, dtype=torch.bool), torch.arange(2)
    for _ in range(1000):
        chances = given.softmax(dim=1)
        gains = payoff @ chances[1], -chances[0] @ payoff
        after = []
        for seat in range(2):
            own = given[seat].clone().requires_grad_()
            before, pull = given[seat].expand(2, 2), still[seat].expand(2, 2)
            weighed = 2 * chances[seat] * gains[seat]  # each action as often as it is played
            parts = divergences(own.expand(2, 2), before, pull, masks, actions, weighed)
            after.append(given[seat] - 0.5 * torch.autograd.grad(parts.loss(magnet), own)[0])
        given = torch.stack(after)
        still = torch.lerp(still, given, share)
    chances = given.softmax(dim=1)
    nash_conv = (payoff @ chances[1]).max() - (chances[0] @ payoff).min()
    return chances.numpy(), nash_conv.item()


def test_self_play_nears_the_equilibrium_with_a_magnet_that_follows_and_not_without() -> None:
    chances, nash_conv = matching_pennies(magnet=0.5, share=0.02)
    np.testing.assert_allclose(chances, [[1 / 3, 2 / 3]] * 2, atol=1e-4)
    assert nash_conv < 1e-3
    assert matching_pennies(magnet=0.0, share=0.0)[1] > 1  # it goes around, ever wider
    assert 0.1 < matching_pennies(magnet=0.5, share=0.0)[1] < 0.5  # that of the game with the pull


@pytest.mark.slow
def test_mirror_descent_learns_to_be_hard_to_exploit(tmp_path: Path) -> None:
    options = ["--variant", "mini", "--num-games", "256", "--minibatch", "1024", "--levels", "3"]
    options += ["--magnet", "0.2", "--magnet-half-life", "50000", "--temperature", "1"]
    options += ["--decisions", "300000", "--num-threads", "1", "--ladder"]
    assert train.main([*options, "--run-dir", str(tmp_path / "run")]) == 0
    found = json.loads((tmp_path / "run" / "curve.json").read_text())[-1]["nash_conv"]
    assert found < 0.386 / 3  # a third of what the README says of careful
