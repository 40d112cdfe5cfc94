# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0", "ray[rllib]==2.60.0"]
# ///
"""PPO of RLlib by self-play: one policy for all seats, on one machine or on a Ray cluster.

    python rllib_selfplay.py --num-env-runners 2
    ray start --head                                  # on the first machine
    ray start --address FIRST:6379                    # on each other one
    python rllib_selfplay.py --num-env-runners 32 --address auto

Where a game ends each seat gets its own outcome, whoever has ended it. One game an env runner:
with several the runner of version 2.60 loses decisions, see the table in README.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
import torch
import tyro
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from threeup_env import ACTION_NAMES, observation_fields, raw_env


@dataclass(frozen=True)
class Config:
    """PPO of RLlib on 3UP 3DOWN."""

    num_players: int = 2  # seats at the table
    iterations: int = 20  # updates
    decisions: int = 4000  # of all seats, an update
    num_env_runners: int = 0  # processes that play; 0 for the learner's own
    address: str = "local"  # of a Ray cluster
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts network and choices
    folder: str = ""  # where the checkpoint goes, none if empty


class Table(MultiAgentEnv):  # type: ignore[misc]
    """The game as RLlib wants it: only who acts next is shown anything, until the end."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.game = raw_env(**(config or {}), cut_off="termination")
        self.possible_agents = self.agents = self.game.possible_agents[:]
        num_features = max(
            part.stop for part in observation_fields(len(self.possible_agents)).values()
        )
        masks = spaces.Box(0.0, 1.0, (len(ACTION_NAMES),))
        seen = spaces.Box(-1.0, 127.0, (num_features,))
        each = spaces.Dict({"observations": seen, "action_mask": masks})
        self.observation_spaces = dict.fromkeys(self.agents, each)
        self.action_spaces = dict.fromkeys(self.agents, spaces.Discrete(len(ACTION_NAMES)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Deal."""
        self.game.reset(seed=seed)
        return self._views([self.game.agent_selection]), {}

    def step(self, action_dict: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Take the action of the seat to act."""
        self.game.step(int(action_dict[self.game.agent_selection]))
        over = any(self.game.terminations.values())
        told = self.possible_agents if over else [self.game.agent_selection]
        rewards = {agent: self.game.rewards[agent] for agent in told}
        ends = dict.fromkeys([*told, "__all__"], over)
        return self._views(told), rewards, ends, dict.fromkeys(ends, False), {}

    def _views(self, agents: list[str]) -> dict[str, Any]:
        views = {agent: self.game.observe(agent) for agent in agents}
        names = {"observations": "observation", "action_mask": "action_mask"}
        return {
            agent: {new: view[old].astype(np.float32) for new, old in names.items()}
            for agent, view in views.items()
        }


class Player:
    """The shared policy as an agent."""

    def __init__(self, module: Any) -> None:
        self.module = module

    @torch.no_grad()
    def act(self, observations: Any, action_masks: Any) -> Any:
        """Sample a legal action a row."""
        seen = torch.tensor(observations, dtype=torch.float32)
        masks = torch.tensor(action_masks, dtype=torch.float32)
        view = {"obs": {"observations": seen, "action_mask": masks}}
        logits = self.module.forward_inference(view)["action_dist_inputs"]
        return torch.multinomial(logits.softmax(dim=1), 1)[:, 0].numpy()


def settings(config: Config) -> PPOConfig:
    """What RLlib trains by."""
    module = RLModuleSpec(
        module_class=ActionMaskingTorchRLModule,
        model_config={"fcnet_hiddens": [128, 128], "fcnet_activation": "relu"},
    )
    table = {"num_players": config.num_players, "max_steps": config.max_steps}
    return (
        PPOConfig()
        .environment(Table, env_config=table, disable_env_checking=True)  # it knows no masks
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda *_, **__: "shared")
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"shared": module}))
        .env_runners(
            num_env_runners=config.num_env_runners,
            num_envs_per_env_runner=1,
            batch_mode="complete_episodes",
            sample_timeout_s=None,  # games of a slow machine would be lost
        )
        .training(
            train_batch_size_per_learner=config.decisions,
            minibatch_size=512,
            num_epochs=4,
            lr=1e-3,
            gamma=1.0,
            lambda_=0.95,
            entropy_coeff=0.01,
        )
        .debugging(seed=config.seed)
    )


def train(config: Config, algorithm: Any = None) -> Player:
    """Train the shared policy; on a cluster if there is an address."""
    algorithm = algorithm or settings(config).build_algo()
    for iteration in range(1, config.iterations + 1):
        played = algorithm.train()["env_runners"]
        print(f"iteration {iteration}: {played['num_env_steps_sampled_lifetime']:.0f} decisions")
    if config.folder:
        algorithm.save_to_path(config.folder)
    return Player(algorithm.get_module("shared"))


if __name__ == "__main__":
    given = tyro.cli(Config, description=__doc__)
    ray.init(given.address)
    train(given)
