"""The agent `policy`: a network on the position after each action, with a look ahead or without.

Its files are safetensors, as those of `players.policy`: weights and facts, nothing that runs.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from safetensors.numpy import save_file

from threeup_agents.files import (
    OBJECT,
    atomic_write,
    check_fields,
    check_tensor,
    list_of,
    one_of,
    parse_json,
    read_tensors,
    whole,
)
from threeup_agents.players.policy import layout, name_of_file
from threeup_agents.search.position import LAYOUT, PositionNetwork, position_size
from threeup_agents.search.scoring import policy_rows
from threeup_agents.search.searchers import legal_mask, spread
from threeup_agents.search.value import shipped as shipped_values
from threeup_agents.search.value import shipped_file as values_file
from threeup_env.engine.actions import ACTION_NAMES, action_id
from threeup_env.engine.cards import MAX_SEATS, MIN_SEATS, VARIANT_NAMES
from threeup_env.engine.checks import checked_observations
from threeup_env.engine.observation import num_players_of
from threeup_env.engine.rng import AGENTS, streams
from threeup_env.engine.state import ENV_ID

NUM_WORLDS: Final = 64
"""Worlds in which `policy` looks ahead; `policy:net` in none."""
IN_DUELS: Final = 32
"""The same between two, who look ahead in every decision."""
MARGIN: Final = 0.01
"""Win share that an action must gain over the habit to be preferred to it. Without a margin two
seats can put off the end, each for a little that is only the network's error."""
SHIPPED: Final = Path(__file__).parent / "policies"
"""Where the shipped policies lie, one a table size."""
FACTS: Final = "threeup_positions"
"""Under which the file's header holds how it was made."""
BAR: Final = 0.02
"""Win share by which one action must be better than another to be shown e times as large."""
_FIELDS: Final = {
    "env": one_of(ENV_ID),
    "layout": one_of(layout()),
    "features": one_of(LAYOUT),
    "num_players": whole(MIN_SEATS, MAX_SEATS),
    "variant": one_of(*VARIANT_NAMES),
    "hidden": list_of(whole(1), least=2),
    "training": OBJECT,
}


@dataclass(frozen=True)
class PositionPolicy:
    """A network from the position after an action to what the action gains."""

    network: PositionNetwork
    num_players: int
    """The table size that it plays."""
    variant: str = "standard"
    """The deck that it knows, a key of `VARIANTS`."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the training that made it: command, seed, decisions, time, curve."""

    def players(self) -> dict[str, Callable[[int], "Positional"]]:
        """Its ways to play, by name: each gives an agent for a seed."""
        return {
            "looking": lambda seed: Positional(self, "policy", seed),
            "net": lambda seed: Positional(self, "policy:net", seed, num_worlds=0),
        }

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            ValueError: a weight isn't finite.
            OSError: e.g. a full disk; then the file that was there is still there.
        """
        if not all(np.isfinite(array).all() for array in self.network):
            raise ValueError(f"policy {str(path)!r}: expected finite weights; they have diverged")
        facts = {
            "env": ENV_ID,
            "layout": layout(),
            "features": LAYOUT,
            "num_players": self.num_players,
            "variant": self.variant,
            "hidden": [len(self.network.first_biases), len(self.network.second_biases)],
            "training": dict(self.training),
        }
        tensors = {
            name: np.ascontiguousarray(array, np.float32)
            for name, array in self.network._asdict().items()
        }
        with atomic_write(path) as temporary:
            save_file(tensors, temporary, metadata={FACTS: json.dumps(facts)})


@dataclass(frozen=True, repr=False)
class Gains:
    """What a policy thinks of one decision; shows as a table, best first."""

    agent: str
    """Name of the agent."""
    chosen: str
    """The action that it takes."""
    actions: tuple[str, ...]
    """Names of the legal actions, `[K]`."""
    gains: npt.NDArray[np.float64]
    """Expected win share over what `careful` does; all 0 where `careful` decides; `[K]`."""

    def __repr__(self) -> str:
        rows = zip(self.actions, self.gains, strict=True)
        lines = [f"{self.agent} takes {self.chosen}", f"{'action':12}{'gain':>8}"]
        return "\n".join(lines + [f"{name:12}{gain:+8.3f}" for name, gain in rows])

    @property
    def weights(self) -> dict[int, float]:
        """A share for each action, as recordings keep them: a better one has the larger."""
        shares = np.exp((self.gains - self.gains.max()) / BAR)
        if not self.gains.any():
            shares = np.array([name == self.chosen for name in self.actions], np.float64)
        pairs = zip(map(action_id, self.actions), (shares / shares.sum()).tolist(), strict=True)
        return {action: round(share, 4) for action, share in sorted(pairs)}


class Positional:
    """Plays by the positions that actions lead to; elsewhere by its look alone, or as `careful`.

    Args:
        policy: one for the tables it will see; None for the shipped one of each table size.
        name: the agent's name.
        seed: starts the agent's own random stream.
        num_worlds: worlds in which it looks ahead before; 0 for the network alone; None for
            `NUM_WORLDS`, or `IN_DUELS`.
        num_threads: threads for a batch; None means one for each core.
        path: the file that the policy came from, if it did.
    """

    def __init__(
        self,
        policy: PositionPolicy | None,
        name: str,
        seed: int = 0,
        num_worlds: int | None = None,
        num_threads: int | None = None,
        path: Path | None = None,
    ) -> None:
        self.policy = policy
        self.name = name
        self.num_worlds = num_worlds
        self.num_threads = num_threads or cpu_count()
        self.path = path
        self._seed = streams(seed, 1, AGENTS)[0]

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`.

        A row's choice depends on the seed, its observation and its mask: not on the other
        rows and not on the number of threads.
        """
        return spread(observations, action_masks, self.num_threads, self._decide)

    def probabilities(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """1 for what it takes, else 0; float64 `[B, A]`."""
        return np.eye(action_masks.shape[1])[self.act(observations, action_masks)]

    def explain(
        self,
        observation: npt.NDArray[np.int8],
        action_mask: npt.NDArray[np.bool_] | None = None,
    ) -> Gains:
        """Decide as `act` does and tell what each action is expected to gain.

        Args:
            observation: of a seat that is to act; int8 `[F]`.
            action_mask: the actions to choose from, bool `[A]`; None means the legal ones.

        Raises:
            ValueError: an observation of a seat that isn't to act, or a mask with an illegal
                action or none.
        """
        vector = checked_observations(np.asarray(observation)[None])[0]
        mask = legal_mask(vector, action_mask)
        actions, scores = self._decide(vector[None], mask[None])
        legal = np.flatnonzero(mask)
        order = legal[np.argsort(-scores[0, legal], kind="stable")]
        names = tuple(ACTION_NAMES[action] for action in order)
        return Gains(self.name, ACTION_NAMES[actions[0]], names, scores[0, order])

    def data_files(self, num_players: int) -> list[Path]:
        """The policy file that it plays by, and the value network that its look judges by."""
        own = shipped_file(num_players) if self.policy is None else self.path
        files = [] if own is None else [own]
        return files + ([] if self.num_worlds == 0 else [values_file(num_players)])

    def _decide(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Choices `[B]` and scores `[B, A]` of some rows, in this thread."""
        num_players = num_players_of(observations)
        policy = self.policy or shipped(num_players)
        if policy.num_players != num_players:
            raise ValueError(
                f"policy: expected a table of {policy.num_players} players; got {num_players}"
            )
        usual = IN_DUELS if num_players == MIN_SEATS else NUM_WORLDS
        visits = np.empty(action_masks.shape, np.int64)
        scores = np.empty(action_masks.shape, np.float64)
        actions = np.empty(len(action_masks), np.int64)
        policy_rows(
            observations,
            action_masks,
            self._seed,
            usual if self.num_worlds is None else self.num_worlds,
            MARGIN,
            visits,
            scores,
            actions,
            shipped_values(num_players),
            policy.network,
            VARIANT_NAMES.index(policy.variant),
        )
        return actions, scores


def load(
    path: Path | None, seed: int = 0, looks: bool = True, num_threads: int | None = None
) -> Positional:
    """Load an agent from a policy file; nothing in it is ever executed.

    Args:
        path: the file; None for the shipped policies.
        seed: starts the agent's own random stream.
        looks: whether it looks ahead before the network decides.
        num_threads: see `Positional`.

    Raises:
        ValueError: not such a file, truncated, or made for another environment.
    """
    worlds = None if looks else 0
    if path is None:
        return Positional(None, "policy" if looks else "policy:net", seed, worlds, num_threads)
    return Positional(read(path), name_of_file(path), seed, worlds, num_threads, path)


def shipped_file(num_players: int) -> Path:
    """Where the shipped policy for one table size lies."""
    return SHIPPED / f"policy-{num_players}.safetensors"


@lru_cache
def shipped(num_players: int) -> PositionPolicy:
    """The policy that comes with the agents for one table size."""
    return read(shipped_file(num_players))


def is_positional(path: Path) -> bool:
    """Whether a file is one of these, damaged or not, and no policy of another kind."""
    try:
        return FACTS in read_tensors(path, "", "numpy")[0]
    except ValueError:
        return False


def read(path: Path) -> PositionPolicy:
    """Read a policy file.

    Raises:
        ValueError: not such a file, truncated, or made for another environment.
    """
    where = f"policy {str(path)!r}"
    metadata, tensors = read_tensors(path, f"{where}: expected a policy file", "numpy")
    try:
        facts = parse_json(metadata[FACTS])
    except (KeyError, ValueError):
        raise ValueError(
            f"{where}: expected the facts {FACTS!r} in its header; got {metadata!r:.200}"
        ) from None
    check_fields(where, facts, _FIELDS)
    if len(facts["hidden"]) != len(PositionNetwork._fields) // 2:
        raise ValueError(f"{where}: expected two hidden layers; got {facts['hidden']}")
    shapes: list[tuple[int, ...]] = []
    for fan_in, fan_out in pairwise([position_size(facts["num_players"]), *facts["hidden"]]):
        shapes += [(fan_in, fan_out), (fan_out,)]
    shapes.append((facts["hidden"][-1],))
    for name, shape in zip(PositionNetwork._fields, shapes, strict=True):
        check_tensor(where, tensors, name, shape)
    network = PositionNetwork(*(np.ascontiguousarray(tensors[n]) for n in PositionNetwork._fields))
    return PositionPolicy(network, facts["num_players"], facts["variant"], facts["training"])
