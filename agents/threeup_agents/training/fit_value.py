"""Fit the value network of one table size to how rollouts end.

Games are dealt and played by the rollouts' own rule, a tenth of the actions at random; some of
their positions are played on to the end, and the network learns who won. The header of a file
holds the command that made it, for those in `search/values` of this form:

    python -m threeup_agents.training.fit_value --num-players N
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
import tyro
from safetensors.numpy import save_file
from torch import nn

from threeup_agents.files import atomic_write
from threeup_agents.search import value
from threeup_agents.search.rollouts import roll_out, rollout_action
from threeup_agents.training.networks import perceptron
from threeup_env import Batch
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.compiled import compiled
from threeup_env.engine.rng import AGENTS, random_below, streams
from threeup_env.engine.rules import apply_action, win_share, write_legal_actions
from threeup_env.engine.state import EMPTY, ENV_ID, STATE_DTYPE

RANDOM_PER_MILLE: Final = 100
"""Of the actions that lead to the positions."""
STEPS_BETWEEN: Final = 8
"""Steps from one position of a game to the next, on average."""
GAMES: Final = 20_000
"""Dealt at once."""


@dataclass(frozen=True)
class Config:
    """Fit the network by which `search` judges the positions of one table size."""

    num_players: int = 2
    """Seats at the table, 2 to 6."""
    positions: int = 8_000_000
    """Positions to learn from."""
    held_out: int = 200_000
    """Others, to measure the fit by."""
    epochs: int = 4
    """Passes over the positions."""
    minibatch: int = 4096
    """Positions in a minibatch."""
    learning_rate: float = 2e-3
    """Of Adam at the start; falls linearly to 0."""
    seed: int = 0
    """Starts deals, actions and the network."""
    out: Path | None = None
    """File to write; without it the one that `search` uses."""


def main(config: Config) -> None:
    """Draw positions, fit, write the file."""
    start = time.perf_counter()
    torch.manual_seed(config.seed)
    features, shares = draw_positions(config)
    network = perceptron([features.shape[1], *value.HIDDEN, 1], 1.0)
    seen = slice(config.held_out, None)
    fit(network, torch.from_numpy(features[seen]), torch.from_numpy(shares[seen]), config)

    with torch.no_grad():
        kept = torch.from_numpy(features[: config.held_out])
        expected = torch.sigmoid(network(kept).flatten()).numpy()
    ends = shares[: config.held_out]
    explained = 1.0 - float(((expected - ends) ** 2).mean() / ends.var())
    path = config.out or value.shipped_file(config.num_players)
    facts = asdict(config) | {
        "env": ENV_ID,
        "command": " ".join(["python -m threeup_agents.training.fit_value", *sys.argv[1:]]),
        "explained_variance": round(explained, 4),
        "seconds": round(time.perf_counter() - start),
    }
    save(network, facts, path)
    print(f"{path.name}: explains {explained:.3f} of the variance of win shares")


def draw_positions(
    config: Config,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Features `[N, V]` of positions, and the win share that a rollout gave, `[N]`."""
    size = config.positions + config.held_out
    features = np.empty((size, value.value_size(config.num_players)), np.float32)
    shares = np.empty(size, np.float32)
    stream = streams(config.seed, 1, AGENTS)
    filled = 0
    seed = config.seed
    while filled < size:
        batch = Batch(GAMES, config.num_players, seed=seed)
        batch.reset()
        filled += write_positions(batch.states, stream, features[filled:], shares[filled:])
        seed += 1
    return features, shares


@compiled
def write_positions(
    states: npt.NDArray[np.void],
    stream: npt.NDArray[np.uint64],
    features: npt.NDArray[np.float32],
    shares: npt.NDArray[np.float32],
) -> int:
    """Play games that have just been dealt, noting positions on the way.

    Args:
        states: `STATE_DTYPE` `[B]`; played to the end.
        stream: uint64 `[1]`; advanced.
        features: float32 `[N, V]`; overwritten from the first row on.
        shares: of the seat whose features they are; float32 `[N]`; likewise.

    Returns:
        The number of rows written, N at most.
    """
    copy = np.zeros(1, STATE_DTYPE)
    legal = np.empty(NUM_ACTIONS, np.int64)
    row = 0
    for i in range(len(states)):
        game = states[i]
        observer = random_below(stream, int(game.num_seats))
        while game.winner == EMPTY and row < len(features):
            if game.laying == 0 and random_below(stream, STEPS_BETWEEN) == 0:
                value.write_features(game, observer, features[row])
                copy[0] = game
                roll_out(copy[0], observer)
                shares[row] = win_share(copy[0], observer)
                row += 1
            action = rollout_action(game, observer)
            if random_below(stream, 1000) < RANDOM_PER_MILLE:
                action = legal[random_below(stream, write_legal_actions(game, legal))]
            apply_action(game, action)
    return row


def fit(network: nn.Module, features: torch.Tensor, shares: torch.Tensor, config: Config) -> None:
    """Minimise the cross-entropy of win shares; features `[N, V]`, shares `[N]`.

    Raises:
        ValueError: the loss isn't finite.
    """
    optimizer = torch.optim.Adam(network.parameters(), config.learning_rate)
    steps = config.epochs * (len(features) // config.minibatch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1.0 / steps, steps)
    for _ in range(config.epochs):
        order = torch.randperm(len(features))
        for start in range(0, len(features) - config.minibatch + 1, config.minibatch):
            rows = order[start : start + config.minibatch]
            logits = network(features[rows]).flatten()
            loss: Any = nn.functional.binary_cross_entropy_with_logits(logits, shares[rows])
            if not torch.isfinite(loss):
                raise ValueError(
                    f"fit at learning rate {config.learning_rate:g}: expected a finite "
                    f"loss; got {loss.item()}"
                )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def save(network: nn.Sequential, facts: dict[str, object], path: Path) -> None:
    """Write the file as `value.read` wants it, whole or not at all.

    Raises:
        ValueError: a weight isn't finite.
    """
    if not all(torch.isfinite(parameter).all() for parameter in network.parameters()):
        raise ValueError(f"{str(path)!r}: expected finite weights; the fit has diverged")
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    tensors = []
    for layer in layers:
        tensors += [layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy()]
    tensors[4] = tensors[4].flatten()
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {value.FACTS: json.dumps(facts, default=str)}
    named = dict(zip(value.ValueNetwork._fields, tensors, strict=True))
    with atomic_write(path) as temporary:
        save_file(named, temporary, metadata=header)


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
