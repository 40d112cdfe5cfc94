# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0"]
# ///
"""Masked PPO with a GRU over the latest public events, beside what a seat sees now; torch alone.

    python recurrent_ppo.py
    threeup evaluate --agents random "recurrent_ppo.py:Player?file=recurrent_ppo.pt"

In the arena the player is told what has happened since its last decision, and keeps the latest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import nn
from torch.distributions import Categorical

import threeup_agents
from threeup_env import ACTION_NAMES, ThreeUpVectorEnv, action_id, observation_fields

LATEST = 16  # events that the network looks back on, K
SHOWN = ("observation", "action_mask", "events")
Rollout = dict[str, torch.Tensor]
SEAT = observation_fields(2)["seat"].start


@dataclass(frozen=True)
class Config:
    """Masked PPO with a memory on 3UP 3DOWN."""

    num_players: int = 2  # seats at the table
    opponent: str = "greedy"  # at all other seats: any agent's spec
    decisions: int = 2_000_000  # of the learner, over all games
    num_envs: int = 512  # games played at once
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals, network and choices
    file: str = "recurrent_ppo.pt"  # where the network goes


class Network(nn.Module):
    """Policy and value of observations `[B, F]` and events `[B, K, 6]`, both int8."""

    def __init__(self, num_players: int, hidden: int = 128) -> None:
        super().__init__()
        self.num_players = num_players
        num_features = max(part.stop for part in observation_fields(num_players).values())
        self.seat, self.action = nn.Embedding(num_players + 1, 32), nn.Embedding(95, 32)
        self.numbers = nn.Linear(4, 32)  # turned, drawn, picked up, cleared
        self.memory = nn.GRU(32, 64, batch_first=True)
        self.body = nn.Sequential(nn.Linear(2 * num_features + 64, hidden), nn.ReLU())
        self.policy, self.value = nn.Linear(hidden, len(ACTION_NAMES)), nn.Linear(hidden, 1)

    def forward(self, seen: Any, masks: Any, events: Any) -> tuple[Categorical, torch.Tensor]:
        """The policy over the legal actions, and the values `[B]`; any arrays will do."""
        seen, events = torch.as_tensor(seen), torch.as_tensor(events).long()
        who, what = events[..., 0], events[..., 1]
        # Seats count from the observer; 0 says that there is no event.
        seats = torch.where(who < 0, 0, (who - seen[:, SEAT, None]) % self.num_players + 1)
        # Lays, which are hidden at first, stand in the observation: here they are all alike.
        actions = torch.where(what < action_id("play 1"), 0, what + 1)
        vectors = self.seat(seats) + self.action(actions) + self.numbers(events[..., 2:] / 4)
        remembered = self.memory(vectors)[1][0]
        hidden = self.body(torch.cat([seen.float().log1p(), (seen > 0).float(), remembered], dim=1))
        logits = self.policy(hidden).masked_fill(~torch.as_tensor(masks).bool(), -1e9)
        return Categorical(logits=logits, validate_args=False), self.value(hidden)[:, 0]


@torch.no_grad()
def collect(envs: Any, network: Network, shown: Any, num_steps: int = 32) -> tuple[Rollout, Any]:
    """Some decisions of every game with their advantages, `[T, B]` each part; what comes next."""
    steps: list[Rollout] = []
    for _ in range(num_steps):
        step = {name: torch.as_tensor(part) for name, part in shown.items()}
        policy, step["values"] = network(*step.values())
        step["actions"] = policy.sample()
        step["log_probs"] = policy.log_prob(step["actions"])
        shown, rewards, won, cut, _ = envs.step(step["actions"].numpy())
        step["rewards"], step["ends"] = torch.tensor(rewards), torch.tensor(won | cut)
        steps.append(step)
    after = network(*shown.values())[1]
    advantage = torch.zeros_like(after)
    for step in reversed(steps):
        goes_on = ~step["ends"]  # a game that is cut off has a real outcome: nothing is added
        error = step["rewards"] + goes_on * after - step["values"]
        step["advantages"] = advantage = error + goes_on * 0.95 * advantage
        after = step["values"]
    return {name: torch.stack([step[name] for step in steps]) for name in steps[0]}, shown


def update(network: Network, adam: Any, rollout: Rollout) -> None:
    """PPO's epochs over one rollout."""
    batch = {name: part.flatten(0, 1) for name, part in rollout.items()}
    for _ in range(2):
        for rows in torch.split(torch.randperm(len(batch["actions"])), 2048):
            part = {name: column[rows] for name, column in batch.items()}
            policy, values = network(*(part[name] for name in SHOWN))
            ratio = (policy.log_prob(part["actions"]) - part["log_probs"]).exp()
            gains = part["advantages"] / part["advantages"].std()
            gain = torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains) + 0.01 * policy.entropy()
            adam.zero_grad()
            error = values - part["values"] - part["advantages"]
            (0.5 * error.square() - gain).mean().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            adam.step()


def train(config: Config) -> Network:
    """Train a network and leave it in `config.file`."""
    torch.manual_seed(config.seed)
    network = Network(config.num_players)
    how = config.num_envs, config.num_players, "standard", config.max_steps
    rival = threeup_agents.make(config.opponent)
    envs = ThreeUpVectorEnv(*how, rival, skip_forced=True, history=LATEST)
    shown, _ = envs.reset(seed=config.seed)
    adam = torch.optim.Adam(network.parameters())
    for done in range(0, config.decisions, config.num_envs * 32):
        adam.param_groups[0]["lr"] = 1e-3 * (1 - done / config.decisions)
        rollout, shown = collect(envs, network, shown)
        update(network, adam, rollout)
        print(f"{done:,}: won {(rollout['rewards'] > 0).sum() / rollout['ends'].sum():.3f}")
    torch.save(network.state_dict(), config.file)
    return network


class Player:
    """The network of a file as an agent with memory, see `threeup_env.agent.MemoryAgent`."""

    def __init__(self, file: str) -> None:
        weights = torch.load(file, weights_only=True)
        self.network = Network(len(weights["seat.weight"]) - 1)
        self.network.load_state_dict(weights)

    def begin(self, slots: Any, seats: Any, num_players: int) -> None:
        """New games: nothing has happened in them."""
        self.latest = np.full((len(slots), LATEST, 6), -1, np.int8)

    @torch.no_grad()
    def act(self, observations: Any, action_masks: Any, slots: Any, events: Any) -> Any:
        """Sample a legal action a row."""
        for slot, new in zip(slots, events, strict=True):
            self.latest[slot] = np.concatenate([self.latest[slot], new])[-LATEST:]
        return self.network(observations, action_masks, self.latest[slots])[0].sample().numpy()


if __name__ == "__main__":
    train(tyro.cli(Config, description=__doc__))
