"""What the faces have in common: spaces, and the checks of what they are given."""

import operator
import warnings
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, Space

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_DECK_SIZE, MAX_HAND, NUM_RANKS
from threeup_env.engine.events import EVENT_DTYPE, EVENT_SIZE, NO_EVENT
from threeup_env.engine.observation import observation_bounds

CUT_OFF_MODES: Final = ("truncation", "termination")
"""What a game that `max_steps` cuts off may be reported as."""

LearnerObservation: TypeAlias = Any
"""int8 `[F]`, or with `dict_observation` a dictionary of that and of the mask, int8 `[A]`; with
`history` of the last events too, int8 `[K, 6]`."""


def observation_box(num_players: int) -> Space[npt.NDArray[np.int8]]:
    """The space of a flat observation."""
    high = observation_bounds(num_players)
    box: Space[npt.NDArray[np.int8]] = Box(np.zeros_like(high), high, dtype=np.int8)
    return box


def masked_space(num_players: int) -> Dict:
    """The space of an observation with its mask beside it."""
    mask = Box(0, 1, (NUM_ACTIONS,), np.int8)
    return Dict({"observation": observation_box(num_players), "action_mask": mask})


def events_box(num_players: int, history: int) -> Space[npt.NDArray[np.int8]]:
    """The space of the last events, int8 `[K, 6]`; rows of -1 stand for none."""
    high = {
        "seat": num_players - 1,
        "action": NUM_ACTIONS - 1,
        "turned": NUM_RANKS - 1,
        "drawn": MAX_HAND,
        "picked_up": MAX_DECK_SIZE,
        "cleared": 1,
    }
    row = np.array([high[name] for name in EVENT_DTYPE.names or ()], np.int8)
    box: Space[npt.NDArray[np.int8]] = Box(
        np.int8(NO_EVENT), np.tile(row, (history, 1)), (history, EVENT_SIZE), np.int8
    )
    return box


def learner_spaces(
    num_players: int, dict_observation: bool, history: int
) -> tuple[Space[Any], Discrete]:
    """The spaces of one learner: its observation, flat or with mask and events, and its actions."""
    if not (dict_observation or history):
        return observation_box(num_players), Discrete(NUM_ACTIONS)
    parts = masked_space(num_players).spaces
    if history:
        parts["events"] = events_box(num_players, history)
    return Dict(parts), Discrete(NUM_ACTIONS)


def no_actions() -> npt.NDArray[np.int8]:
    """The mask of a seat that isn't to act; int8 `[A]`."""
    return np.zeros(NUM_ACTIONS, np.int8)


def check_options(options: dict[str, Any] | None, *known: str) -> tuple[Any, ...]:
    """Give the options that `reset` takes, each None if it isn't there.

    Raises:
        ValueError: an option that is not known, or no mapping.
    """
    given = _as_mapping(options)
    for name in given:
        if name not in known:
            names = " or ".join(map(repr, known)) if len(known) > 1 else f"{known[0]!r} alone"
            raise ValueError(f"options: expected {names}; got {name!r}")
    return tuple(given.get(name) for name in known)


def known_options(options: dict[str, Any] | None, *known: str) -> dict[str, Any]:
    """Give the options that `reset` knows; warn its caller of others.

    Raises:
        ValueError: no mapping.
    """
    given = _as_mapping(options)
    if unknown := [key for key in given if key not in known]:
        expected, ignored = (", ".join(map(repr, keys)) for keys in (known, unknown))
        warnings.warn(f"reset options: expected {expected}; ignored {ignored}", stacklevel=3)
    return {key: value for key, value in given.items() if key in known}


def _as_mapping(options: dict[str, Any] | None) -> Mapping[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ValueError(f"options: expected a dict or None; got {options!r}")
    return options


def check_seed(seed: object) -> int | None:
    """Give the seed as Python's integer, or None.

    Raises:
        TypeError: neither an integer nor None.
        ValueError: a negative integer.
    """
    if seed is None:
        return None
    wrong = f"seed: expected None or an integer of at least 0; got {seed!r}"
    if isinstance(seed, bool | np.bool_):
        raise TypeError(wrong)
    try:
        number = operator.index(seed)  # type: ignore[arg-type]  # checking is the point
    except TypeError:
        raise TypeError(wrong) from None
    if number < 0:
        raise ValueError(wrong)
    return number


def fresh_seed() -> int:
    """A seed from the operating system."""
    entropy = np.random.SeedSequence().entropy
    assert isinstance(entropy, int)
    return entropy


def check_action(agent: str, action: object) -> int:
    """Give an agent's action as Python's integer.

    Raises:
        TypeError: not an integer.
    """
    try:
        return operator.index(action)  # type: ignore[arg-type]  # checking is the point
    except TypeError:
        hint = "; None is for an agent whose game has ended" if action is None else ""
        raise TypeError(f"{agent}: expected an action id; got {action!r}{hint}") from None


def check_cut_off(cut_off: str) -> None:
    """Check that a face knows what to report a game as that is cut off."""
    if cut_off not in CUT_OFF_MODES:
        modes = " or ".join(map(repr, CUT_OFF_MODES))
        raise ValueError(f"cut_off: expected {modes}; got {cut_off!r}")


def check_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> None:
    """Check that a face knows the way of drawing that is asked of it."""
    if render_mode is not None and render_mode not in metadata["render_modes"]:
        modes = " or ".join(map(repr, [None, *metadata["render_modes"]]))
        raise ValueError(f"render_mode: expected {modes}; got {render_mode!r}")
