"""Policies of Stable-Baselines3 and sb3-contrib: the `.zip` of `model.save`.

Such a file holds pickles, and loading a pickle runs whatever code is in it.
"""

import json
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from threeup_agents.outside.networks import Network, check_size, one_thread
from threeup_env.engine.actions import NUM_ACTIONS

_KNOWN: Final = "PPO, A2C, DQN, MaskablePPO"


def algorithm_of(path: Path) -> str:
    """Which algorithm wrote a file, told without loading any pickle in it.

    Raises:
        ValueError: no such file, not one of `model.save`, or of another algorithm.
    """
    where = f"policy {str(path)!r}"
    try:
        with ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
        module = str(data["policy_class"]["__module__"])
    except (OSError, BadZipFile, LookupError, ValueError, TypeError) as error:
        raise ValueError(
            f"{where}: expected a file of Stable-Baselines3's model.save; got {error}"
        ) from error
    if module == "sb3_contrib.common.maskable.policies":
        return "MaskablePPO"
    if module == "stable_baselines3.dqn.policies":
        return "DQN"
    if module == "stable_baselines3.common.policies" and {"gae_lambda", "ent_coef"} <= data.keys():
        return "PPO" if "clip_range" in data else "A2C"
    raise ValueError(f"{where}: expected a policy of {_KNOWN}; got one of {module}")


def load(path: Path, seed: int = 0, best_action: bool = False) -> Network:
    """Load a policy, whose observations are those of the faces with or without the mask in them.

    Illegal actions are left out of what it gives. PPO, A2C and MaskablePPO are sampled, or with
    `best_action` take the most probable action; DQN always takes the highest value.

    Raises:
        ValueError: not one of these, or one for other observations or actions.
        ImportError: Stable-Baselines3 or sb3-contrib isn't installed.
    """
    algorithm = algorithm_of(path)
    try:
        import sb3_contrib
        import stable_baselines3
    except ImportError as error:
        raise ImportError(
            f"{path}: Stable-Baselines3's files need it: pip install 'threeup[train]' ({error})"
        ) from error
    library = sb3_contrib if algorithm == "MaskablePPO" else stable_baselines3
    try:
        model = getattr(library, algorithm).load(path, device="cpu")
    except Exception as error:  # whatever the pickles and the shapes in it may raise
        raise ValueError(
            f"policy {str(path)!r}: expected to load {algorithm}; "
            f"got {type(error).__name__}: {error}"
        ) from error
    model.policy.set_training_mode(False)
    size = _check_spaces(path, model)
    is_dict = size != model.observation_space.shape

    def logits(
        observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[Any]:
        check_size(path, size[0], observations)
        given: Any = observations
        if is_dict:
            given = {"observation": observations, "action_mask": action_masks.astype(np.int8)}
        with one_thread():
            seen, _ = model.policy.obs_to_tensor(given)
            if algorithm == "DQN":
                found = model.q_net(seen)
            else:
                found = model.policy.get_distribution(seen).distribution.logits
        numbers: npt.NDArray[Any] = found.numpy()
        return numbers

    return Network(logits, path, seed, best_action or algorithm == "DQN")


def _check_spaces(path: Path, model: Any) -> tuple[int, ...]:
    """Give the shape of an observation; refuse other spaces than the faces have."""
    observed, actions = model.observation_space, model.action_space
    parts = getattr(observed, "spaces", None)
    if parts is not None and set(parts) == {"observation", "action_mask"}:
        observed = parts["observation"]
    if getattr(actions, "n", None) != NUM_ACTIONS or len(observed.shape or ()) != 1:
        raise ValueError(
            f"policy {str(path)!r}: expected observations [F], or those and their action_mask, "
            f"and Discrete({NUM_ACTIONS}); got {model.observation_space} and {actions}"
        )
    shape: tuple[int, ...] = observed.shape
    return shape
