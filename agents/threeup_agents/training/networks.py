"""The networks in training: an actor that sees the observation, a critic that may see more."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from threeup_agents.players.policy import Policy
from threeup_agents.training.masked_softmax import log_probs_and_entropies


def perceptron(sizes: list[int], last_gain: float) -> nn.Sequential:
    """Linear layers with ReLU between them, orthogonally initialised.

    Args:
        sizes: input, hidden and output sizes.
        last_gain: scale of the output layer's weights.
    """
    layers: list[nn.Module] = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        is_last = i == len(sizes) - 2
        layer = nn.Linear(fan_in, fan_out)
        nn.init.orthogonal_(layer.weight, last_gain if is_last else 2**0.5)
        nn.init.zeros_(layer.bias)
        layers += [layer] if is_last else [layer, nn.ReLU()]
    return nn.Sequential(*layers)


class AsymmetricPolicy(MaskableActorCriticPolicy):
    """Two separate networks; the actor's input is the first `num_seen` features alone.

    Args:
        observation_space: observation, then what only the critic sees; int8 `[F + P]`.
        action_space: the actions.
        lr_schedule: learning rate by progress remaining.
        num_seen: features of the observation, F.
        bounds: highest value of each feature, by which it is divided; `[F + P]`.
        hidden: sizes of the hidden layers, the same in both networks.
        levels: the actor also sees which features are at least 1, 2 and so on up to this.
        kwargs: SB3's own.
    """

    scale: torch.Tensor

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        num_seen: int,
        bounds: npt.NDArray[np.int8],
        hidden: tuple[int, ...] = (128, 128),
        levels: int = 0,
        **kwargs: Any,
    ) -> None:
        self.num_seen = num_seen
        self.hidden = hidden
        self.levels = levels
        self._bounds = bounds
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        num_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        scale = 1.0 / torch.from_numpy(self._bounds.astype(np.float32))
        self.register_buffer("scale", scale, persistent=False)
        num_inputs = self.num_seen * (1 + self.levels)
        self.actor = perceptron([num_inputs, *self.hidden, num_actions], 0.01)
        self.critic = perceptron([len(scale), *self.hidden, 1], 1.0)
        self.optimizer = self.optimizer_class(
            self.parameters(),
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )

    def scaled(self, obs: torch.Tensor) -> torch.Tensor:
        """Features between 0 and 1; float32 `[N, F + P]`."""
        return obs.to(self.scale.dtype) * self.scale

    def inputs(self, obs: torch.Tensor) -> torch.Tensor:
        """What the actor reads of the first `num_seen` features, and of no others."""
        seen = obs[:, : self.num_seen]
        inputs = [seen.to(self.scale.dtype) * self.scale[: self.num_seen]]
        inputs += [(seen >= level).to(self.scale.dtype) for level in range(1, self.levels + 1)]
        return torch.cat(inputs, dim=1)

    def logits(self, obs: torch.Tensor) -> torch.Tensor:
        """Logits `[N, A]`, not masked."""
        logits: torch.Tensor = self.actor(self.inputs(obs))
        return logits

    def both(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `[N, A]`, not masked, and values `[N]`."""
        return self.logits(obs), self.predict_values(obs).flatten()

    def evaluate_actions(
        self,
        obs: torch.Tensor,
        actions: torch.Tensor,
        action_masks: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Values, log-probabilities of `actions` and entropies, each `[N]`."""
        if action_masks is None:
            raise ValueError("action_masks: expected a mask for each row; got None")
        logits, values = self.both(obs)
        return (values, *log_probs_and_entropies(logits, action_masks, actions))

    def forward(
        self,
        obs: torch.Tensor,
        deterministic: bool = False,
        action_masks: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities, as SB3 wants them."""
        distribution = self.get_distribution(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.predict_values(obs), distribution.log_prob(actions)

    def get_distribution(
        self, obs: Any, action_masks: npt.NDArray[np.bool_] | None = None
    ) -> MaskableDistribution:
        """The actor's distribution."""
        distribution = self.action_dist.proba_distribution(action_logits=self.logits(obs))
        distribution.apply_masking(action_masks)
        return distribution

    def predict_values(self, obs: Any) -> torch.Tensor:
        """Values; `[N, 1]`."""
        values: torch.Tensor = self.critic(self.scaled(obs))
        return values

    def actor_weights(self) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
        """The actor's layers as (weights `[out, in]`, biases `[out]`), scaling folded in."""
        layers = [
            (layer.weight.detach().cpu().numpy().copy(), layer.bias.detach().cpu().numpy().copy())
            for layer in self.actor
            if isinstance(layer, nn.Linear)
        ]
        layers[0][0][:, : self.num_seen] *= self.scale[: self.num_seen].cpu().numpy()
        return layers

    def load_actor(self, policy: Policy) -> None:
        """Start the actor from an exported policy.

        Raises:
            ValueError: it has other layers, or was made for another table size.
        """
        own = [layer for layer in self.actor if isinstance(layer, nn.Linear)]
        sizes = [tuple(layer.weight.shape) for layer in own]
        theirs = [weights.shape for weights, _ in policy.layers]
        if sizes != theirs:
            raise ValueError(
                f"policy to start from: expected layers {sizes}; got {theirs} "
                f"(hidden {[size for size, _ in theirs[:-1]]}, levels {policy.levels})"
            )
        with torch.no_grad():
            for layer, (weights, biases) in zip(own, policy.layers, strict=True):
                layer.weight.copy_(torch.from_numpy(weights))
                layer.bias.copy_(torch.from_numpy(biases))
            own[0].weight[:, : self.num_seen] /= self.scale[: self.num_seen]
