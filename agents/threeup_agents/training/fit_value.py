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
from threeup_env.engine.rules import apply_action, write_legal_actions
from threeup_env.engine.state import EMPTY, ENV_ID, STATE_DTYPE, Record

RANDOM_PER_MILLE: Final = 100
"""Of the actions that lead to the positions."""
DRAW_PILE_STEPS: Final = 16
"""Choices of a game from one position to the next while there is a draw pile, on average."""
END_STEPS: Final = 2
"""And after that."""
GAMES: Final = 20_000
"""Dealt at once."""


@dataclass(frozen=True)
class Config:
    """Fit the network by which `search` judges the positions of one table size."""

    num_players: int = 2
    """Seats at the table, 2 to 6."""
    positions: int = 6_000_000
    """Positions to learn from."""
    held_out: int = 200_000
    """Others, to measure the fit by."""
    epochs: int = 2
    """Passes over the positions."""
    minibatch: int = 8192
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
    features, winners = draw_positions(config)
    size = value.value_size(config.num_players)
    network = perceptron([size + 1, *value.HIDDEN, config.num_players + 1], 1.0)
    seen = slice(config.held_out, None)
    fit(network, torch.from_numpy(features[seen]), torch.from_numpy(winners[seen]), config)

    kept = torch.from_numpy(features[: config.held_out])
    with torch.no_grad():
        parts = range(0, len(kept), config.minibatch)
        rows = (held(kept[start : start + config.minibatch], size) for start in parts)
        logits = torch.cat([network(each) for each in rows])
        expected = torch.softmax(logits, 1).numpy()[:, 0]
    ends = winners[: config.held_out] == 0
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


def held(features: torch.Tensor, size: int) -> torch.Tensor:
    """1 for each feature that holds, float32 `[N, V + 1]`, from their lists `[N, most_features]`.

    The last column, of what is no feature, is 0.
    """
    rows = torch.zeros(len(features), size + 1).scatter_(1, features.long(), 1.0)
    rows[:, size] = 0.0
    return rows


def draw_positions(config: Config) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
    """Features `[N, most_features]` of positions, and who won in a rollout, `[N]`."""
    size = config.positions + config.held_out
    features = np.empty((size, value.most_features(config.num_players)), np.int16)
    winners = np.empty(size, np.int64)
    stream = streams(config.seed, 1, AGENTS)
    filled = 0
    seed = config.seed
    while filled < size:
        batch = Batch(GAMES, config.num_players, seed=seed)
        batch.reset()
        filled += write_positions(batch.states, stream, features[filled:], winners[filled:])
        seed += 1
    return features, winners


@compiled
def write_positions(
    states: npt.NDArray[np.void],
    stream: npt.NDArray[np.uint64],
    features: npt.NDArray[np.int16],
    winners: npt.NDArray[np.int64],
) -> int:
    """Play games that have just been dealt, noting choices on the way.

    Args:
        states: `STATE_DTYPE` `[B]`; played to the end.
        stream: uint64 `[1]`; advanced.
        features: int16 `[N, most_features]`; overwritten from the first row on.
        winners: likewise, by what a rollout gave; int64 `[N]`. Seats are counted from the one to
            act, S is nobody.

    Returns:
        The number of rows written, N at most.
    """
    copy = np.zeros(1, STATE_DTYPE)
    legal = np.empty(NUM_ACTIONS, np.int64)
    sheet = np.zeros(1, value.SHEET_DTYPE)
    row = 0
    for i in range(len(states)):
        game = states[i]
        observer = random_below(stream, int(game.num_seats))
        while game.winner == EMPTY and row < len(features):
            count = write_legal_actions(game, legal)
            between = DRAW_PILE_STEPS if game.draw_pile_size > 0 else END_STEPS
            if game.laying == 0 and count > 1 and random_below(stream, between) == 0:
                note_features(game, sheet[0], features[row])
                copy[0] = game
                roll_out(copy[0], int(game.seat))
                winners[row] = seats_between(game, int(copy[0].winner))
                row += 1
            action = rollout_action(game, observer)
            if random_below(stream, 1000) < RANDOM_PER_MILLE:
                action = legal[random_below(stream, count)]
            apply_action(game, action)
    return row


@compiled
def note_features(game: Record, sheet: Record, features: npt.NDArray[np.int16]) -> None:
    """Write what holds to a row, int16 `[most_features]`, filled up with what is no feature."""
    count = value.write_features(game, sheet)
    padding = value.value_size(int(game.num_seats))
    for k in range(len(features)):
        features[k] = sheet.features[k] if k < count else padding


@compiled
def seats_between(game: Record, winner: int) -> int:
    """How many seats the winner sits behind the one to act; S if nobody has won."""
    num_seats = int(game.num_seats)
    if winner < 0:
        return num_seats
    return (winner - int(game.seat) + num_seats) % num_seats


def fit(network: nn.Module, features: torch.Tensor, winners: torch.Tensor, config: Config) -> None:
    """Minimise the cross-entropy of who wins; features `[N, most_features]`, winners `[N]`.

    Raises:
        ValueError: the loss isn't finite.
    """
    size = value.value_size(config.num_players)
    optimizer = torch.optim.Adam(network.parameters(), config.learning_rate)
    steps = config.epochs * (len(features) // config.minibatch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1.0 / steps, steps)
    for _ in range(config.epochs):
        order = torch.randperm(len(features))
        for start in range(0, len(features) - config.minibatch + 1, config.minibatch):
            rows = order[start : start + config.minibatch]
            logits = network(held(features[rows], size))
            loss: Any = nn.functional.cross_entropy(logits, winners[rows])
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
    first, second, last = (layer for layer in network if isinstance(layer, nn.Linear))
    weights = [first.weight.T, first.bias, second.weight.T, second.bias, last.weight, last.bias]
    tensors = [tensor.detach().numpy().copy() for tensor in weights]
    tensors[0][-1] = 0.0  # the row of no feature
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {value.FACTS: json.dumps(facts, default=str)}
    named = dict(zip(value.ValueNetwork._fields, tensors, strict=True))
    with atomic_write(path) as temporary:
        save_file(named, temporary, metadata=header)


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
