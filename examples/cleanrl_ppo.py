# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0"]
# ///
"""Masked PPO in one file, as CleanRL writes it, on the vector environment; torch alone.

    python cleanrl_ppo.py
    threeup evaluate --agents greedy "cleanrl_ppo.py:load?file=cleanrl_ppo.pt"

A step of the environment runs from one decision of the learner to its next one, so PPO needs
no word about turns, and the learner's reward arrives whoever ends the game.
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import tyro
from torch import nn
from torch.distributions import Categorical

import threeup_agents
from threeup_env import ACTION_NAMES, ThreeUpVectorEnv, observation_fields


@dataclass(frozen=True)
class Config:
    """Masked PPO on 3UP 3DOWN."""

    num_players: int = 2  # seats at the table
    opponent: str = "greedy"  # at all other seats: any agent's spec, or self
    decisions: int = 6_000_000  # of the learner, over all games
    num_envs: int = 1024  # games played at once
    num_steps: int = 32  # decisions of each game between two updates
    epochs: int = 2  # passes over a rollout
    minibatch: int = 2048  # decisions of a gradient step
    learning_rate: float = 1.5e-3  # at first; it falls linearly to 0
    gae_lambda: float = 0.95  # of the advantages (Schulman et al. 2016), undiscounted
    clip: float = 0.2  # how far a probability ratio may move (Schulman et al. 2017)
    entropy: float = 0.005  # weight of the policy's entropy
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals, network and choices
    file: str = "cleanrl_ppo.pt"  # where the network goes


class Network(nn.Module):
    """Policy and value of int8 observations `[B, F]`; an agent too, since it has `act`."""

    def __init__(self, num_features: int, hidden: int = 256) -> None:
        super().__init__()
        first, second = nn.Linear(4 * num_features, hidden), nn.Linear(hidden, hidden)
        self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.policy, self.value = nn.Linear(hidden, len(ACTION_NAMES)), nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, seen: torch.Tensor, masks: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """The policy over the legal actions, and the values `[B]`."""
        # Beside the counts as thermometers: whether I hold two 7s is a column of its own.
        levels = [seen.float().log1p(), *((seen > n).float() for n in range(3))]
        hidden = self.body(torch.cat(levels, dim=1))
        logits = self.policy(hidden).masked_fill(~masks, -1e9)
        return Categorical(logits=logits, validate_args=False), self.value(hidden)[:, 0]

    @torch.no_grad()
    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Sample a legal action a row."""
        policy, _ = self(torch.tensor(observations), torch.tensor(action_masks))
        return np.asarray(policy.sample())


@torch.no_grad()
def collect(envs: ThreeUpVectorEnv, network: Network, config: Config) -> dict[str, torch.Tensor]:
    """Some decisions of every game with their advantages; `[T, B]` each part."""
    steps: list[dict[str, torch.Tensor]] = []
    for _ in range(config.num_steps + 1):
        step = {"seen": torch.tensor(envs.games.observations)}
        step["masks"] = torch.tensor(envs.games.action_masks)
        policy, step["values"] = network(step["seen"], step["masks"])
        steps.append(step)
        if len(steps) <= config.num_steps:
            step["actions"] = policy.sample()
            step["log_probs"] = policy.log_prob(step["actions"])
            _, rewards, terminations, truncations, _ = envs.step(step["actions"].numpy())
            step["rewards"] = torch.tensor(rewards)
            # A game that is cut off has a real outcome: no value is added to it.
            step["ends"] = torch.tensor(terminations | truncations)
    after = steps.pop()["values"]
    advantage = torch.zeros_like(after)
    for step in reversed(steps):
        goes_on = ~step["ends"]
        error = step["rewards"] + goes_on * after - step["values"]
        step["advantages"] = advantage = error + goes_on * config.gae_lambda * advantage
        after = step["values"]
    return {name: torch.stack([step[name] for step in steps]) for name in steps[0]}


def update(
    network: Network, adam: torch.optim.Adam, rollout: dict[str, torch.Tensor], config: Config
) -> None:
    """PPO's epochs over one rollout."""
    batch = {name: part.flatten(0, 1) for name, part in rollout.items()}
    for _ in range(config.epochs):
        for rows in torch.split(torch.randperm(len(batch["actions"])), config.minibatch):
            part = {name: column[rows] for name, column in batch.items()}
            policy, values = network(part["seen"], part["masks"])
            ratio = (policy.log_prob(part["actions"]) - part["log_probs"]).exp()
            gains, returns = part["advantages"], part["advantages"] + part["values"]
            gains = (gains - gains.mean()) / (gains.std() + 1e-8)
            clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
            gain = torch.min(ratio * gains, clipped * gains) + config.entropy * policy.entropy()
            adam.zero_grad()
            (0.5 * (values - returns).square() - gain).mean().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            adam.step()


def train(config: Config) -> Network:
    """Train a network and leave it in `config.file`."""
    torch.manual_seed(config.seed)
    network = Network(max(part.stop for part in observation_fields(config.num_players).values()))
    rival = network if config.opponent == "self" else threeup_agents.make(config.opponent)
    sizes = config.num_envs, config.num_players
    envs = ThreeUpVectorEnv(*sizes, max_steps=config.max_steps, opponents=rival, skip_forced=True)
    envs.reset(seed=config.seed)
    adam = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    size, start = config.num_envs * config.num_steps, time.perf_counter()
    for done in range(0, config.decisions, size):
        adam.param_groups[0]["lr"] = config.learning_rate * (1 - done / config.decisions)
        rollout = collect(envs, network, config)
        update(network, adam, rollout, config)
        won = (rollout["rewards"][rollout["ends"]] > 0).float().mean()
        print(f"{done + size:,} decisions, {time.perf_counter() - start:.0f} s, won {won:.3f}")
    torch.save(network.state_dict(), config.file)
    return network


def load(file: str) -> Network:
    """The network of a file, for the arena."""
    weights = torch.load(file, weights_only=True)
    network = Network(weights["body.0.weight"].shape[1] // 4)
    network.load_state_dict(weights)
    return network


if __name__ == "__main__":
    train(tyro.cli(Config, description=__doc__))
