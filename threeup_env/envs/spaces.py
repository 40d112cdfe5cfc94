"""What the faces have in common: spaces, and the checks of what they are given."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, Space

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.observation import observation_bounds


def observation_box(num_players: int) -> Space[npt.NDArray[np.int8]]:
    """The space of a flat observation."""
    high = observation_bounds(num_players)
    box: Space[npt.NDArray[np.int8]] = Box(np.zeros_like(high), high, dtype=np.int8)
    return box


def masked_space(num_players: int) -> Dict:
    """The space of an observation with its mask beside it."""
    mask = Box(0, 1, (NUM_ACTIONS,), np.int8)
    return Dict({"observation": observation_box(num_players), "action_mask": mask})


def learner_spaces(num_players: int) -> tuple[Space[npt.NDArray[np.int8]], Discrete]:
    """The spaces of one learner: the flat observation, and the table of actions."""
    return observation_box(num_players), Discrete(NUM_ACTIONS)


def no_actions() -> npt.NDArray[np.int8]:
    """The mask of a seat that isn't to act; int8 `[A]`."""
    return np.zeros(NUM_ACTIONS, np.int8)


def check_options(options: dict[str, Any] | None, known: str) -> Any:
    """Give the one option that `reset` takes, or None.

    Raises:
        ValueError: an option that is not known.
    """
    for name in options or ():
        if name != known:
            raise ValueError(f"options: expected {known!r} alone; got {name!r}")
    return (options or {}).get(known)


def check_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> None:
    """Check that a face knows the way of drawing that is asked of it."""
    if render_mode is not None and render_mode not in metadata["render_modes"]:
        modes = " or ".join(map(repr, [None, *metadata["render_modes"]]))
        raise ValueError(f"render_mode: expected {modes}; got {render_mode!r}")
