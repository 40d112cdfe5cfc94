"""Checkpoints: everything that a training run needs to go on as if it had never stopped.

One safetensors file, so no pickle is read here either, written beside the old one and
renamed: a run that is killed while writing keeps its last checkpoint.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import save_file

from threeup_agents.files import (
    OBJECT,
    atomic_write,
    check_fields,
    checksum,
    dict_of,
    list_of,
    number,
    parse_json,
    read_tensors,
    whole,
)
from threeup_agents.players.policy import Policy, layout
from threeup_agents.training.selfplay import SelfPlayPPO
from threeup_env.engine.state import ENV_ID, STATE_DTYPE

FILE: Final = "checkpoint.safetensors"
"""Its name in a run's folder."""
FORMAT: Final = 1
"""Version of the file."""
_KEY: Final = "threeup_checkpoint"
COUNTERS: Final = ("num_timesteps", "_n_updates", "_current_progress_remaining", "num_snapshots")
"""SB3's counters, by which its schedules go, and the pool's."""
_HEADER: Final = {
    "pool": list_of(whole(1)),
    "counters": OBJECT,
    "tally": dict_of(number()),
    "rng": OBJECT,
    "facts": OBJECT,
}


def save(path: Path, model: SelfPlayPPO, facts: dict[str, Any]) -> None:
    """Write a checkpoint, between two rollouts.

    Args:
        path: the file.
        model: policy, optimizer, games, pool, counters and streams are taken from it.
        facts: the caller's own, JSON; `load` gives them back.

    Raises:
        ValueError: a number of the networks or the optimizer isn't finite.
        OSError: e.g. a full disk; then the checkpoint that was there is still there.
    """
    tensors = {f"policy.{name}": value for name, value in model.policy.state_dict().items()}
    optimizer = model.policy.optimizer.state_dict()
    for index, state in optimizer["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
    for name, value in tensors.items():
        if not torch.isfinite(value).all():
            raise ValueError(f"checkpoint {str(path)!r}: expected finite numbers in {name}")
    games = model.env
    arrays = {
        "states": games.batch.states.copy().view(np.uint8).reshape(games.num_envs, -1),
        "seat_agents": games.seat_agents,
    }
    for name, array in (model.carried or {}).items():
        arrays[f"carried.{name}"] = array
    for index, policy in enumerate(model.pool):
        for layer, (weights, biases) in enumerate(policy.layers):
            arrays[f"pool.{index}.{layer}.weights"] = weights
            arrays[f"pool.{index}.{layer}.biases"] = biases
    tensors |= {name: torch.from_numpy(array) for name, array in arrays.items()}
    tensors["torch_rng"] = torch.get_rng_state()
    contiguous = {name: value.detach().contiguous() for name, value in tensors.items()}
    header = {
        "format": FORMAT,
        "env": ENV_ID,
        "checksum": checksum({name: value.numpy() for name, value in contiguous.items()}),
        "layout": layout(),
        "state": repr(STATE_DTYPE.descr),
        "pool": [len(policy.layers) for policy in model.pool],
        "counters": {name: getattr(model, name) for name in COUNTERS},
        "tally": games.tally,
        "rng": model.rng.bit_generator.state,
        "facts": facts,
    }
    with atomic_write(path) as temporary:
        save_file(contiguous, temporary, metadata={_KEY: json.dumps(header)})
        with temporary.open("rb") as file:
            os.fsync(file.fileno())


def decisions(path: Path) -> int:
    """Decisions that had been trained on when a checkpoint was written.

    Raises:
        ValueError: not a checkpoint, or truncated.
    """
    found: int = _read(path)[0]["counters"]["num_timesteps"]
    return found


def load(path: Path, model: SelfPlayPPO) -> dict[str, Any]:
    """Put a checkpoint into a model that was made with the same settings.

    Returns:
        The facts given to `save`.

    Raises:
        ValueError: not a checkpoint, truncated, or of other settings or another layout.
    """
    header, tensors = _read(path)
    _check_tensors(path, model, tensors)
    try:
        _put(header, tensors, model)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as e:
        raise ValueError(f"checkpoint {str(path)!r}: expected a training state; got {e}") from e
    facts: dict[str, Any] = header["facts"]
    return facts


def _put(header: dict[str, Any], tensors: dict[str, torch.Tensor], model: SelfPlayPPO) -> None:
    """Put what has been read into a model."""
    policy = {name: tensors[f"policy.{name}"] for name in model.policy.state_dict()}
    model.policy.load_state_dict(policy)
    optimizer = model.policy.optimizer.state_dict()
    optimizer["state"] = _group(tensors, "optimizer")
    model.policy.optimizer.load_state_dict(optimizer)
    games = model.env
    games.batch.load(tensors["states"].numpy().view(STATE_DTYPE)[:, 0])
    games.seat_agents[:] = tensors["seat_agents"].numpy()
    games.tally = header["tally"]
    carried = {
        name.partition(".")[2]: value.numpy()
        for name, value in tensors.items()
        if name.startswith("carried.")
    }
    model.carried = carried or None
    model.pool = [_snapshot(model, tensors, i, depth) for i, depth in enumerate(header["pool"])]
    for name in COUNTERS:
        setattr(model, name, header["counters"][name])
    model.rng.bit_generator.state = header["rng"]
    torch.set_rng_state(tensors["torch_rng"])
    model._last_obs = games.batch.observations  # else SB3 deals anew


def _check_tensors(path: Path, model: SelfPlayPPO, tensors: dict[str, torch.Tensor]) -> None:
    """Refuse a checkpoint of other networks, table sizes, numbers of games, or with no numbers."""
    expected = {f"policy.{name}": value.shape for name, value in model.policy.state_dict().items()}
    expected["states"] = torch.Size((model.env.num_envs, STATE_DTYPE.itemsize))
    expected["seat_agents"] = torch.Size(model.env.seat_agents.shape)
    for name, shape in expected.items():
        found = tuple(tensors[name].shape) if name in tensors else None
        if found != tuple(shape):
            raise ValueError(
                f"checkpoint {str(path)!r}: expected {name} of shape {tuple(shape)}; "
                f"got {found or 'none'}"
            )
    for name, value in tensors.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"checkpoint {str(path)!r}: expected finite numbers in {name}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    where = f"checkpoint {str(path)!r}"
    metadata, tensors = read_tensors(path, f"{where}: expected a checkpoint", "pt")
    if _KEY not in metadata:
        raise ValueError(f"{where}: expected {_KEY!r} in its header; got {sorted(metadata)}")
    try:
        header = parse_json(metadata[_KEY])
    except ValueError as error:
        raise ValueError(f"{where}: expected JSON in its header; {error}") from error
    check_fields(where, header, {})
    expected = {"format": FORMAT, "env": ENV_ID, "layout": layout()}
    expected["state"] = repr(STATE_DTYPE.descr)
    for key, value in expected.items():
        if header.get(key) != value:
            raise ValueError(f"{where}: expected {key} {value!r}; got {header.get(key)!r:.80}")
    check_fields(where, header, _HEADER)
    kinds = {name: number() if name.endswith("remaining") else whole() for name in COUNTERS}
    check_fields(f"{where}: counters", header["counters"], kinds)
    try:
        found = checksum({name: value.numpy() for name, value in tensors.items()})
    except TypeError as error:  # e.g. bfloat16
        raise ValueError(f"{where}: expected tensors of NumPy's types; {error}") from error
    if header.get("checksum", found) != found:  # older ones have none
        raise ValueError(f"{where}: expected the tensors that were written; the file is damaged")
    return header, tensors


def _snapshot(
    model: SelfPlayPPO, tensors: dict[str, torch.Tensor], index: int, num_layers: int
) -> Policy:
    """One policy of the opponent pool."""
    names = [f"pool.{index}.{layer}" for layer in range(num_layers)]
    layers = [
        (tensors[f"{name}.weights"].numpy(), tensors[f"{name}.biases"].numpy()) for name in names
    ]
    return Policy(layers, (model.env.batch.num_players,), levels=model.policy.levels)


def _group(tensors: dict[str, torch.Tensor], prefix: str) -> dict[int, dict[str, torch.Tensor]]:
    """Gather "prefix.0.step", "prefix.0.exp_avg", ... by number."""
    grouped: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith(f"{prefix}."):
            _, index, field = name.split(".", 2)
            grouped.setdefault(int(index), {})[field] = value
    return grouped
