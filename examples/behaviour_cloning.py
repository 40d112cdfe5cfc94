# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0", "minari[hdf5]==0.5.4"]
# ///
"""Learn from a dataset of Minari to play as its teacher does; `minari_dataset.py` makes one.

python behaviour_cloning.py
threeup evaluate --agents careful greedy "behaviour_cloning.py:load?file=behaviour_cloning.pt"
"""

from dataclasses import dataclass
from typing import Any

import minari
import numpy as np
import numpy.typing as npt
import torch
import tyro
from torch import nn

from threeup_env import ACTION_NAMES


@dataclass(frozen=True)
class Config:
    """Clone a teacher."""

    name: str = "threeup/careful-v0"  # of the dataset
    epochs: int = 20  # passes over the dataset
    minibatch: int = 1024  # decisions of a gradient step
    learning_rate: float = 2e-3  # at first; it falls linearly to 0
    seed: int = 1  # starts network and order
    file: str = "behaviour_cloning.pt"  # where the network goes


class Network(nn.Module):
    """Logits of the legal actions from int8 observations `[B, F]`; an agent, since it has `act`."""

    def __init__(self, num_features: int, hidden: int = 256) -> None:
        super().__init__()
        first, second = nn.Linear(5 * num_features, hidden), nn.Linear(hidden, hidden)
        last = nn.Linear(hidden, len(ACTION_NAMES))
        self.layers = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)

    def forward(self, seen: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        """Logits `[B, A]`."""
        # Beside the counts as thermometers: whether I hold two 7s is a column of its own.
        levels = [seen.float().log1p(), *((seen > n).float() for n in range(4))]
        logits = self.layers(torch.cat(levels, dim=1))
        return torch.where(masks, logits, -1e9)

    @torch.no_grad()
    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """The most probable action a row."""
        logits = self(torch.tensor(observations), torch.tensor(action_masks))
        return np.asarray(logits.argmax(dim=1))


def read(name: str) -> dict[str, torch.Tensor]:
    """Decisions between two or more actions, of all episodes; the last observations left out."""
    parts: dict[str, list[Any]] = {"seen": [], "masks": [], "actions": []}
    for episode in minari.load_dataset(name).iterate_episodes():
        parts["seen"].append(episode.observations["observation"][:-1])
        parts["masks"].append(episode.observations["action_mask"][:-1].astype(np.bool_))
        parts["actions"].append(episode.actions)
    columns = {name: np.concatenate(column) for name, column in parts.items()}
    has_choice = columns["masks"].sum(axis=1) > 1
    return {name: torch.tensor(column[has_choice]) for name, column in columns.items()}


def train(config: Config) -> Network:
    """Train a network and leave it in `config.file`."""
    torch.manual_seed(config.seed)
    data = read(config.name)
    network = Network(data["seen"].shape[1])
    adam = torch.optim.Adam(network.parameters(), config.learning_rate)
    for epoch in range(config.epochs):
        adam.param_groups[0]["lr"] = config.learning_rate * (1 - epoch / config.epochs)
        right = 0
        for rows in torch.split(torch.randperm(len(data["actions"])), config.minibatch):
            seen, masks, actions = (column[rows] for column in data.values())
            logits = network(seen, masks)
            adam.zero_grad()
            loss = nn.functional.cross_entropy(logits, actions)
            torch.autograd.backward(loss)
            adam.step()
            right += int((logits.argmax(dim=1) == actions).sum())
        print(f"epoch {epoch + 1}: as the teacher in {right / len(data['actions']):.3f}")
    torch.save(network.state_dict(), config.file)
    return network


def load(file: str) -> Network:
    """The network of a file, for the arena."""
    weights = torch.load(file, weights_only=True)
    network = Network(weights["layers.0.weight"].shape[1] // 5)
    network.load_state_dict(weights)
    return network


if __name__ == "__main__":
    train(tyro.cli(Config, description=__doc__))
