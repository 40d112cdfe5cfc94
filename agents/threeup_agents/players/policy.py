"""Trained policies as files: weights and facts in safetensors, run by NumPy alone."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from threeup_agents.files import (
    OBJECT,
    atomic_write,
    check_fields,
    check_tensor,
    list_of,
    number,
    one_of,
    parse_json,
    read_tensors,
    whole,
)
from threeup_agents.players.sampling import sample
from threeup_env.engine.actions import ACTION_NAMES, NUM_ACTIONS, action_id
from threeup_env.engine.cards import MAX_SEATS, MIN_SEATS
from threeup_env.engine.checks import checked_masks, checked_observations
from threeup_env.engine.observation import OBSERVATION_DTYPE, num_players_of, observation_size
from threeup_env.engine.state import ENV_ID

FORMAT: Final = 1
"""Version of the file: which keys its facts have, and what its tensors are named."""
TEMPERATURE: Final = 1.0
"""Divides the logits of a policy that doesn't say otherwise."""
_KEY: Final = "threeup_policy"
_FACTS: Final = {
    "num_players": list_of(whole(MIN_SEATS, MAX_SEATS), least=1),
    "temperature": number(above=0),
    "architecture": OBJECT,
    "training": OBJECT,
}
_ARCHITECTURE: Final = {
    "layers": list_of(whole(1), least=2),
    "activation": one_of("relu"),
    "levels": whole(0),
}

Layers = Sequence[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]
"""Weights `[out, in]` and biases `[out]` of each layer; ReLU between them."""


@lru_cache
def layout() -> str:
    """Name the layout of observations and actions: a hash of what each feature and id means."""
    text = repr((OBSERVATION_DTYPE.descr, ACTION_NAMES))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Policy:
    """A network from observations to action probabilities."""

    layers: Layers
    num_players: tuple[int, ...]
    """Table sizes that it plays; smaller tables' observations are padded with zeros."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the training that made it: command, seed, decisions, time, curve."""
    temperature: float = TEMPERATURE
    """Divides the logits in sampled play."""
    levels: int = 0
    """The network also sees which features are at least 1, 2 and so on up to this."""

    def logits(self, observations: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """The network's output, not masked.

        Args:
            observations: int8 `[B, F]`.

        Returns:
            float32 `[B, A]`.

        Raises:
            ValueError: a table size that the policy doesn't play.
        """
        num_players = num_players_of(observations)
        if num_players not in self.num_players:
            raise ValueError(
                f"policy: expected a table of {' or '.join(map(str, self.num_players))} "
                f"players; got {num_players}"
            )
        size = self.layers[0][0].shape[1] // (1 + self.levels)
        seen = np.pad(observations, ((0, 0), (0, size - observations.shape[1])))
        thermometer = [seen >= level for level in range(1, self.levels + 1)]
        values = np.concatenate([seen, *thermometer], axis=1, dtype=np.float32)
        for i, (weights, biases) in enumerate(self.layers):
            values = values @ weights.T + biases
            if i < len(self.layers) - 1:
                np.maximum(values, 0, out=values)
        return values

    def probabilities(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        temperature: float = 1.0,
    ) -> npt.NDArray[np.float64]:
        """Probability of each action, exactly 0 where illegal.

        Args:
            observations: int8 `[B, F]`.
            action_masks: bool `[B, A]`; each row has a True.
            temperature: divides the logits.

        Returns:
            float64 `[B, A]`.
        """
        logits = np.where(action_masks, self.logits(observations), -np.inf).astype(np.float64)
        weights: npt.NDArray[np.float64] = np.exp(
            (logits - logits.max(axis=1, keepdims=True)) / temperature
        )
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def players(self) -> dict[str, Callable[[int], "PolicyPlayer"]]:
        """Its ways to play, by name: each gives an agent for a seed."""
        return {
            "sampled": lambda seed: PolicyPlayer(self, "policy", seed),
            "best": lambda seed: PolicyPlayer(self, "policy", seed, best_action=True),
        }

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            ValueError: a weight isn't finite.
            OSError: e.g. a full disk; then the file that was there is still there.
        """
        if not all(np.isfinite(array).all() for layer in self.layers for array in layer):
            raise ValueError(f"policy {str(path)!r}: expected finite weights; they have diverged")
        facts = {
            "format": FORMAT,
            "env": ENV_ID,
            "layout": layout(),
            "num_players": list(self.num_players),
            "temperature": self.temperature,
            "architecture": {
                "layers": [self.layers[0][0].shape[1], *(len(b) for _, b in self.layers)],
                "activation": "relu",
                "levels": self.levels,
            },
            "training": dict(self.training),
        }
        tensors = {}
        for i, (weights, biases) in enumerate(self.layers):
            tensors[f"{i}.weights"] = np.ascontiguousarray(weights, np.float32)
            tensors[f"{i}.biases"] = np.ascontiguousarray(biases, np.float32)
        with atomic_write(path) as temporary:
            save_file(tensors, temporary, metadata={_KEY: json.dumps(facts)})


@dataclass(frozen=True, repr=False)
class Chances:
    """What a policy thinks of one decision; shows as a table, likeliest first."""

    agent: str
    """Name of the agent."""
    actions: tuple[str, ...]
    """Names of the legal actions, `[K]`."""
    chances: npt.NDArray[np.float64]
    """How likely each is in sampled play, `[K]`."""

    def __repr__(self) -> str:
        rows = zip(self.actions, self.chances, strict=True)
        return "\n".join([self.agent, *(f"{name:12}{chance:8.3f}" for name, chance in rows)])

    @property
    def weights(self) -> dict[int, float]:
        """The chances by action, as recordings keep them."""
        rows = zip(self.actions, self.chances.tolist(), strict=True)
        return {action_id(name): round(chance, 4) for name, chance in rows}


class PolicyPlayer:
    """Plays a policy: samples from it, or takes its best action.

    Args:
        policy: one for the tables it will see.
        name: the agent's name.
        seed: starts the agent's own random stream.
        best_action: take the likeliest action. Two such players can circle until the
            game is cut off, so sampling is the default.
        path: the file that the policy came from, if it did.
    """

    def __init__(
        self,
        policy: Policy,
        name: str,
        seed: int = 0,
        best_action: bool = False,
        path: Path | None = None,
    ) -> None:
        self.name = name
        self.policy = policy
        self.path = path
        self.best_action = best_action
        self._rng = np.random.default_rng(seed)

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`."""
        return sample(self.probabilities(observations, action_masks), self._rng)

    def probabilities(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """How likely it takes each action: at its temperature, or the best one for sure.

        Args:
            observations: int8 `[B, F]`.
            action_masks: bool `[B, A]`; each row has a True.

        Returns:
            float64 `[B, A]`.
        """
        observations = checked_observations(observations)
        action_masks = checked_masks(action_masks)
        found = self.policy.probabilities(observations, action_masks, self.policy.temperature)
        return np.eye(found.shape[1])[found.argmax(axis=1)] if self.best_action else found

    def explain(
        self, observation: npt.NDArray[np.int8], action_mask: npt.NDArray[np.bool_]
    ) -> Chances:
        """Say how likely each legal action is in sampled play.

        Args:
            observation: of the seat to act; int8 `[F]`.
            action_mask: bool `[A]`.
        """
        temperature = self.policy.temperature
        chances = self.policy.probabilities(observation[None], action_mask[None], temperature)[0]
        legal = np.flatnonzero(action_mask)
        order = legal[np.argsort(-chances[legal], kind="stable")]
        return Chances(self.name, tuple(ACTION_NAMES[i] for i in order), chances[order])

    def data_files(self, num_players: int) -> list[Path]:
        """The policy file that it plays by; none for a policy that came as an object."""
        return [] if self.path is None else [self.path]


def load(path: Path, seed: int = 0, best_action: bool = False) -> PolicyPlayer:
    """Load an agent from a policy file; nothing in it is ever executed.

    Args:
        path: the file.
        seed: starts the agent's own random stream.
        best_action: see `PolicyPlayer`.

    Raises:
        ValueError: not a policy file, truncated, or made for another environment.
    """
    return PolicyPlayer(read(path), name_of_file(path), seed, best_action, path)


def name_of_file(path: Path) -> str:
    """What an agent from a policy file is called: as its run's folder, or as the file.

    >>> name_of_file(Path("runs/a/policy.safetensors")), name_of_file(Path("b.safetensors"))
    ('a', 'b')
    """
    name = path.parent.name if path.name == "policy.safetensors" else path.stem
    return name or path.stem


def read(path: Path) -> Policy:
    """Read a policy file.

    Raises:
        ValueError: not a policy file, truncated, or made for another environment.
    """
    where = f"policy {str(path)!r}"
    metadata, tensors = read_tensors(path, f"{where}: expected a policy file", "numpy")
    try:
        facts = parse_json(metadata[_KEY])
    except (KeyError, ValueError):
        raise ValueError(
            f"{where}: expected the facts {_KEY!r} in its header; got {metadata!r:.200}"
        ) from None
    check_fields(where, facts, {})
    for key, expected in (("format", FORMAT), ("env", ENV_ID), ("layout", layout())):
        if facts.get(key) != expected:
            raise ValueError(f"{where}: expected {key} {expected!r}; got {facts.get(key)!r:.80}")
    check_fields(where, facts, _FACTS)
    architecture = {"activation": "relu", "levels": 0} | facts["architecture"]
    check_fields(f"{where}: architecture", architecture, _ARCHITECTURE)
    levels = architecture["levels"]
    return Policy(
        _layers(path, facts, levels, tensors),
        tuple(facts["num_players"]),
        facts["training"],
        facts["temperature"],
        levels,
    )


def _layers(path: Path, facts: dict[str, Any], levels: int, tensors: dict[str, Any]) -> Layers:
    """Check the tensors against the architecture that the file states, and the table."""
    sizes = facts["architecture"]["layers"]
    layers = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        for name, shape in ((f"{i}.weights", (fan_out, fan_in)), (f"{i}.biases", (fan_out,))):
            check_tensor(f"policy {str(path)!r}", tensors, name, shape)
        layers.append((tensors[f"{i}.weights"], tensors[f"{i}.biases"]))
    inputs = observation_size(max(facts["num_players"])) * (1 + levels)
    expected = (inputs, NUM_ACTIONS)
    if (sizes[0], sizes[-1]) != expected:
        raise ValueError(
            f"policy {str(path)!r}: expected {expected[0]} inputs and {expected[1]} outputs; "
            f"got {sizes[0]} and {sizes[-1]}"
        )
    return layers
