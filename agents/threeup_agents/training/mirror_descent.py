"""Self-play that nears an equilibrium: magnetic mirror descent.

A policy that learns to beat itself as it is now goes around in circles. Here it is pulled
towards a magnet as well, and towards what it was before the update: while the magnet stands
still, it nears the one equilibrium of the game with that pull (Sokota et al. 2023, "A Unified
Approach to Reinforcement Learning, Quantal Response Equilibria, and Two-Player Zero-Sum
Games", ICLR, arXiv 2206.05825). A magnet that follows the policy slowly leads it on to one of
the game itself.
"""

import copy
from collections import defaultdict
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import explained_variance
from torch import nn

from threeup_agents.players.policy import Policy
from threeup_agents.training.networks import AsymmetricPolicy
from threeup_agents.training.selfplay import SelfPlayPPO

STEP_SIZE: Final = 10.0
"""The paper's eta: the pull to the policy before the update has the weight 1 / eta."""
ILLEGAL: Final = -1e8
"""Logit of an illegal action; its probability is 0, and so is its part of a divergence."""


class MagneticPolicy(AsymmetricPolicy):
    """Beside actor and critic a magnet: an actor that no gradient moves.

    It begins as the actor does, which is near the uniform policy.
    """

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        self.magnet = copy.deepcopy(self.actor).requires_grad_(requires_grad=False)

    def load_actor(self, policy: Policy) -> None:
        """Start actor and magnet from an exported policy, as `AsymmetricPolicy.load_actor`."""
        super().load_actor(policy)
        self.follow(1.0)

    def follow(self, share: float) -> None:
        """Move the magnet's parameters by a share of the way to the actor's."""
        with torch.no_grad():
            for own, actor in zip(self.magnet.parameters(), self.actor.parameters(), strict=True):
                own.lerp_(actor, share)


class MirrorDescent(SelfPlayPPO):
    """Games and bookkeeping of `SelfPlayPPO`, with another way to learn.

    Args:
        magnet: weight of the pull to the magnet, the paper's alpha; `ent_coef` and
            `clip_range` play no part.
        half_life: decisions in which the magnet goes half of the way to where the policy
            stands; 0 for a magnet that stays near the uniform policy.
        given: those of `SelfPlayPPO`.
        more: likewise.
    """

    policy: MagneticPolicy

    def __init__(
        self, *given: Any, magnet: float = 0.1, half_life: int = 200_000, **more: Any
    ) -> None:
        self.magnet = magnet
        self.half_life = half_life
        super().__init__(*given, **({"policy": MagneticPolicy} | more))

    def _improve(self) -> None:
        """Update the networks from the rollout, and then the magnet."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        before = copy.deepcopy(self.policy.actor)
        seen: dict[str, list[float]] = defaultdict(list)
        for _ in range(self.n_epochs):
            for sample in self.rollout_buffer.get(self.batch_size):
                inputs = self.policy.inputs(sample.observations)
                with torch.no_grad():
                    fixed = before(inputs), self.policy.magnet(inputs)
                advantages = sample.advantages - sample.advantages.mean()
                advantages /= sample.advantages.std() + 1e-8
                given = sample.action_masks, sample.actions, advantages
                parts = divergences(self.policy.actor(inputs), *fixed, *given)
                values = self.policy.predict_values(sample.observations).flatten()
                value_loss = nn.functional.mse_loss(values, sample.returns)
                loss: Any = parts.loss(self.magnet) + self.vf_coef * value_loss
                self._descend(loss)
                named = parts._asdict() | {"value_loss": value_loss, "loss": loss}
                for name, part in named.items():
                    seen[name].append(part.item())
        if self.half_life:
            self.policy.follow(1 - 0.5 ** (self.rollout_buffer.num_trained / self.half_life))
        self._n_updates += self.n_epochs
        for name, numbers in seen.items():
            self.logger.record(f"train/{name}", float(np.mean(numbers)))
        buffer = self.rollout_buffer
        explained = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
        self.logger.record("train/explained_variance", explained)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")


class Parts(NamedTuple):
    """Means over a minibatch; tensors of no dimension."""

    policy_gradient_loss: torch.Tensor
    """Minus the advantage of what was done, times how much likelier it has become."""
    approx_kl: torch.Tensor
    """Divergence of the policy from what it was before the update, in nats."""
    magnet_kl: torch.Tensor
    """Its divergence from the magnet."""
    entropy_loss: torch.Tensor
    """Minus its entropy; no part of the loss."""

    def loss(self, magnet: float) -> torch.Tensor:
        """What an update lessens, the critic's part aside."""
        pulls = self.approx_kl / STEP_SIZE + magnet * self.magnet_kl
        return self.policy_gradient_loss + pulls


def divergences(
    logits: torch.Tensor,
    before: torch.Tensor,
    magnet: torch.Tensor,
    action_masks: torch.Tensor,
    actions: torch.Tensor,
    advantages: torch.Tensor,
) -> Parts:
    """The parts of the loss of N decisions.

    Args:
        logits: the policy's, differentiable; float `[N, A]`.
        before: those that it had when it decided; `[N, A]`.
        magnet: the magnet's; `[N, A]`.
        action_masks: bool `[N, A]`; each row has a True.
        actions: what was done; int64 `[N]`.
        advantages: `[N]`.
    """
    now, old, pull = (
        torch.log_softmax(given.masked_fill(~action_masks, ILLEGAL), dim=1)
        for given in (logits, before, magnet)
    )
    chances = now.exp()
    ratios = (now - old).gather(1, actions[:, None]).squeeze(1).exp()
    return Parts(
        -(advantages * ratios).mean(),
        (chances * (now - old)).sum(dim=1).mean(),
        (chances * (now - pull)).sum(dim=1).mean(),
        (chances * now).sum(dim=1).mean(),
    )
