"""A player that follows a solved game: a strategy in a file, and what a seat has seen as its key.

The strategy is found by `threeup exact`. Two positions have the same key if a seat has seen the
same on the way to both: its own observations at its decisions, and every public event.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from threeup_agents.files import (
    atomic_write,
    check_fields,
    number,
    one_of,
    parse_json,
    read_tensors,
    whole,
)
from threeup_agents.players.sampling import sample
from threeup_env.engine.actions import FIRST_PLAY, NUM_ACTIONS
from threeup_env.engine.cards import VARIANT_NAMES
from threeup_env.engine.checks import checked_masks, checked_observations
from threeup_env.engine.compiled import compiled
from threeup_env.engine.observation import STEPS_LEFT, VARIANT
from threeup_env.engine.state import ENV_ID

SHIPPED: Final = Path(__file__).parent / "policies" / "exact-mini.safetensors"
FORMAT: Final = "threeup exact strategy"
WHOLE: Final = 65535
"""Weights of an information set add up to about this; uint16 in the file."""
_KEY: Final = "facts"
_FACTS: Final = {
    "format": one_of(FORMAT),
    "env": one_of(ENV_ID),
    "variant": one_of(*VARIANT_NAMES),
    "max_steps": whole(1),
    "iterations": whole(1),
    "nash_conv": number(0),
    "value": number(-1),
}


@dataclass(frozen=True)
class MixedStrategy:
    """What to play in K information sets of a variant at a table of two."""

    keys: npt.NDArray[np.uint64]
    """Of the information sets, ascending; `[K]`."""
    first: npt.NDArray[np.int64]
    """Set k has the actions `first[k]` to `first[k + 1] - 1`; `[K + 1]`."""
    actions: npt.NDArray[np.int8]
    """Those that it may play; `[M]`."""
    weights: npt.NDArray[np.uint16]
    """In proportion to their probabilities, none 0; `[M]`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """How it was found: variant, max_steps, iterations, nash_conv, value."""

    def chances(
        self, keys: npt.NDArray[np.uint64], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """How likely each action is, up to a factor a row; equal where nothing is known.

        Args:
            keys: uint64 `[B]`.
            action_masks: bool `[B, A]`; each row has a True.

        Returns:
            float64 `[B, A]`, 0 where illegal.
        """
        found = action_masks.astype(np.float64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        rows = np.flatnonzero(self.keys[places] == keys)
        starts, stops = self.first[places[rows]], self.first[places[rows] + 1]
        counts = stops - starts
        ends = counts.cumsum()
        chosen = np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
        found[rows] = 0
        found[np.repeat(rows, counts), self.actions[chosen]] = self.weights[chosen]
        return found

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            OSError: e.g. a full disk; then the file that was there is still there.
        """
        facts = {"format": FORMAT, "env": ENV_ID} | dict(self.facts)
        tensors: dict[str, npt.NDArray[Any]] = {
            "keys": self.keys,
            "counts": np.diff(self.first).astype(np.uint8),
            "actions": self.actions,
            "weights": self.weights,
        }
        with atomic_write(path) as temporary:
            save_file(tensors, temporary, metadata={_KEY: json.dumps(facts)})

    @classmethod
    def read(cls, path: Path) -> "MixedStrategy":
        """Read what `save` wrote; nothing in it is ever executed.

        Raises:
            ValueError: not such a file, a damaged one, or one for another environment.
        """
        where = f"strategy {str(path)!r}"
        header, tensors = read_tensors(path, f"{where}: expected an exact strategy", "numpy")
        try:
            facts = parse_json(header[_KEY])
        except (KeyError, ValueError):
            raise ValueError(f"{where}: expected the facts {_KEY!r} in its header") from None
        check_fields(where, facts, _FACTS)
        kinds = {"keys": "u8", "counts": "u1", "actions": "i1", "weights": "u2"}
        for name, kind in kinds.items():
            found = tensors.get(name)
            if found is None or found.ndim != 1 or found.dtype != np.dtype(kind):
                got = "none" if found is None else f"{found.dtype} of shape {found.shape}"
                raise ValueError(f"{where}: expected a row of {np.dtype(kind)} {name!r}; got {got}")
        keys, actions, weights = (tensors[name] for name in ("keys", "actions", "weights"))
        first = np.concatenate([[0], tensors["counts"].cumsum(dtype=np.int64)])
        sizes = (len(keys) == len(first) - 1, first[-1] == len(actions) == len(weights))
        if not all(sizes) or not (np.diff(first) > 0).all() or not (keys[1:] > keys[:-1]).all():
            raise ValueError(f"{where}: expected ascending keys with actions and weights for each")
        if ((actions < 0) | (actions >= NUM_ACTIONS) | (weights == 0)).any():
            raise ValueError(f"{where}: expected actions of 0..{NUM_ACTIONS - 1}, weights above 0")
        return cls(keys, first, actions, weights, facts)


@lru_cache
def shipped() -> MixedStrategy:
    """The strategy for `mini` that comes with the package."""
    return MixedStrategy.read(SHIPPED)


class Exact:
    """Plays a solved game at a table of two; has memory, see `threeup_env.agent.MemoryAgent`.

    Where it would never come by itself, and beyond the step limit that the game was solved for,
    it has no strategy and plays any legal action.

    Args:
        strategy: what to play; None means the shipped one for `mini`.
        seed: starts the agent's own random stream.
        path: the file that the strategy came from, if it did.
    """

    def __init__(
        self, strategy: MixedStrategy | None = None, seed: int = 0, path: Path | None = None
    ) -> None:
        self.name = "exact"
        self.strategy = strategy or shipped()
        self._path = path if strategy is not None else SHIPPED
        self._rng = np.random.default_rng(seed)
        self._keys = np.zeros(0, np.uint64)

    def begin(
        self, slots: npt.NDArray[np.int64], seats: npt.NDArray[np.int64], num_players: int
    ) -> None:
        """Forget all games, as `MemoryAgent.begin`.

        Raises:
            ValueError: not a table of two.
        """
        if num_players != 2:
            raise ValueError(f"agent 'exact': expected a table of 2; got {num_players}")
        self._keys = np.zeros(len(slots), np.uint64)

    def act(
        self,
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        slots: npt.NDArray[np.int64],
        events: Sequence[npt.NDArray[np.int8]],
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `MemoryAgent.act`.

        Raises:
            ValueError: a game of another variant.
        """
        observations = checked_observations(observations)
        masks = checked_masks(action_masks)
        variant = self.strategy.facts["variant"]
        if (observations[:, VARIANT] != VARIANT_NAMES.index(variant)).any():
            raise ValueError(f"agent 'exact': expected games of the variant {variant!r}")
        keys = self._keys[slots]
        for k in range(max(map(len, events), default=0)):
            rows = np.flatnonzero([len(seen) > k for seen in events])
            latest = np.array([events[row][k] for row in rows.tolist()])
            keys[rows] = with_events(keys[rows], latest)
        self._keys[slots] = with_observations(keys, observations)
        return sample(self.strategy.chances(self._keys[slots], masks), self._rng)

    def data_files(self, num_players: int) -> list[Path]:
        """The file that it plays by; none for a strategy that came as an object."""
        return [] if self._path is None else [self._path]


def with_observations(
    keys: npt.NDArray[np.uint64], observations: npt.NDArray[np.int8]
) -> npt.NDArray[np.uint64]:
    """Keys of seats that come to decide: what they see joins what they have seen; `[K]`.

    The step limit isn't part of it, so that a strategy goes with any.
    """
    seen = observations.copy()
    seen[:, STEPS_LEFT] = 0
    return mixed(keys, seen)


def with_events(
    keys: npt.NDArray[np.uint64], events: npt.NDArray[np.int8]
) -> npt.NDArray[np.uint64]:
    """Keys after an event that all seats see.

    Lays say nothing that the observations of the first turn don't, and who lays later sees
    them hidden (R5): they leave the keys as they are.

    Args:
        keys: uint64 `[..., K]`.
        events: int8 `[K, 6]`.
    """
    plays = events[:, 1] >= FIRST_PLAY
    shape = keys.shape
    flat = np.broadcast_to(events, (*shape, events.shape[1])).reshape(-1, events.shape[1])
    after = mixed(keys.ravel(), np.ascontiguousarray(flat)).reshape(shape)
    return np.where(plays, after, keys)


@compiled
def mixed(keys: npt.NDArray[np.uint64], rows: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Hash a row into each key, a byte at a time (FNV-1a, then splitmix64's last steps).

    Args:
        keys: uint64 `[K]`.
        rows: int8 `[K, M]`.

    Returns:
        uint64 `[K]`, a new array.
    """
    found = np.empty_like(keys)
    for i in range(len(keys)):
        key = keys[i] ^ np.uint64(0xCBF29CE484222325)
        for value in rows[i]:
            key = (key ^ np.uint64(np.uint8(value))) * np.uint64(0x100000001B3)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found[i] = key ^ (key >> np.uint64(31))
    return found
