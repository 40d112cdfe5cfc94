# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0", "tianshou==2.0.1"]
# ///
"""PPO of Tianshou for one learner; the environment plays the other seats.

    python tianshou_ppo.py

Tianshou's own loop for several agents never gives a waiting loser its -1, so there is one learner
here. `dict_observation` brings the mask to where the actor finds it, and `cut_off="termination"`
keeps PPO from adding a value to a real outcome.
"""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
import tyro
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.torch_utils import policy_within_training_step
from torch import nn

import threeup_agents
from threeup_env import ACTION_NAMES, ThreeUpEnv, observation_fields


@dataclass(frozen=True)
class Config:
    """PPO of Tianshou on 3UP 3DOWN."""

    num_players: int = 2  # seats at the table
    opponent: str = "random"  # at all other seats: any agent's spec
    updates: int = 40
    decisions: int = 2048  # of the learner, an update
    num_envs: int = 16  # games played at once
    learning_rate: float = 1e-3
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals, network and choices


class Network(nn.Module):
    """A body with a head: logits of the legal actions, or a value."""

    def __init__(self, num_features: int, num_outputs: int) -> None:
        super().__init__()
        hidden = nn.Linear(2 * num_features, 128)
        self.layers = nn.Sequential(hidden, nn.ReLU(), nn.Linear(128, num_outputs))

    def outputs(self, obs: Any) -> torch.Tensor:
        """`[B, num_outputs]` of the observations `[B, F]` in a batch."""
        seen = torch.as_tensor(np.asarray(obs["observation"]))
        return torch.as_tensor(
            self.layers(torch.cat([seen.float().log1p(), (seen > 0).float()], dim=1))
        )


class Actor(Network):
    """Logits, in the form that Tianshou asks of an actor."""

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[torch.Tensor, Any]:
        """The logits, very low where an action is illegal, and no state."""
        masks = torch.as_tensor(np.asarray(obs["action_mask"])).bool()
        return self.outputs(obs).masked_fill(~masks, -1e9), state

    @torch.no_grad()
    def act(self, observations: Any, action_masks: Any) -> Any:
        """Sample a legal action a row: the actor is an agent too."""
        logits, _ = self({"observation": observations, "action_mask": action_masks})
        return torch.multinomial(logits.softmax(dim=1), 1)[:, 0].numpy()


class Critic(Network):
    """Values, in the form that Tianshou asks of a critic."""

    def forward(self, obs: Any, **_: Any) -> torch.Tensor:
        """`[B, 1]`."""
        return self.outputs(obs)


def game(config: Config) -> gymnasium.Env[Any, Any]:
    """One table of the learner."""
    return ThreeUpEnv(
        config.num_players,
        max_steps=config.max_steps,
        opponents=threeup_agents.make(config.opponent),
        skip_forced=True,
        dict_observation=True,
        cut_off="termination",
    )


def train(config: Config) -> Actor:
    """Train an actor."""
    torch.manual_seed(config.seed)
    np.random.seed(config.seed)  # noqa: NPY002 - Tianshou draws minibatches from it
    envs = DummyVectorEnv([lambda: game(config) for _ in range(config.num_envs)])
    envs.seed([config.seed + number for number in range(config.num_envs)])
    num_features = max(part.stop for part in observation_fields(config.num_players).values())
    actor, critic = Actor(num_features, len(ACTION_NAMES)), Critic(num_features, 1)
    spaces = envs.action_space[0], envs.observation_space[0]
    algorithm = PPO(
        policy=DiscreteActorPolicy(
            actor=actor, action_space=spaces[0], observation_space=spaces[1]
        ),
        critic=critic,
        optim=AdamOptimizerFactory(lr=config.learning_rate),
        gamma=1.0,
        gae_lambda=0.95,
        ent_coef=0.01,
        max_grad_norm=0.5,
    )
    buffer = VectorReplayBuffer(2 * config.decisions, config.num_envs)
    collector = Collector(algorithm, envs, buffer)
    collector.reset()
    for update in range(1, config.updates + 1):
        with policy_within_training_step(algorithm.policy):
            played = collector.collect(n_step=config.decisions)
            learn(algorithm, buffer)
        collector.reset_buffer(keep_statistics=True)
        won = np.mean(played.returns > 0) if len(played.returns) else np.nan
        print(f"{update * config.decisions:,} decisions, won {won:.3f}")
    return actor


def learn(algorithm: PPO, buffer: VectorReplayBuffer) -> None:
    """PPO's epochs over what the buffer holds."""
    algorithm.update(buffer=buffer, batch_size=512, repeat=4)


if __name__ == "__main__":
    train(tyro.cli(Config, description=__doc__))
