"""What a person may give as an agent: an object with `act`, what makes one, a function of a row.

Which of these a function is, its positional parameters without a default say:
two are a row's observation and mask, one is the agent's seed, none makes an agent as it is.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from threeup_env.agent import Agent, name_of

_PARTS = ("observation", "mask")


class RowFunction:
    """A function `f(observation, mask) -> action` as an agent, asked row by row.

    Args:
        function: of one observation, int8 `[F]`, and its mask, bool `[A]`; gives the id of a
            legal action.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = name_of(function)
        self._function = function

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one action per row, as `Agent.act`.

        Raises:
            TypeError: the function gave something else than an integer.
        """
        actions = np.empty(len(observations), np.int64)
        for row, parts in enumerate(zip(observations, action_masks, strict=True)):
            action = self._function(*parts)
            if not isinstance(action, int | np.integer) or isinstance(action, bool):
                got = f"{type(action).__name__} {action!r}"[:80]
                raise TypeError(f"{self.name}: expected the id of an action, an integer; got {got}")
            actions[row] = action
        return actions


def agent_of(
    thing: Any,
    seed: int,
    arguments: Mapping[str, Any] | None = None,
    any_name_is_seed: bool = False,
) -> Agent:
    """Give the agent that a person's object stands for.

    A class or function is called with its `arguments`, and with `seed` if it has a parameter
    of that name. Of a function that still lacks two parameters the agent asks row by row.

    Args:
        thing: an object with `act`, a class or function that gives one, or a function of a row.
        seed: starts the agent's own random stream.
        arguments: by keyword.
        any_name_is_seed: a function that lacks one parameter is given the seed, whatever
            the parameter is called.

    Raises:
        ValueError: none of these, or arguments that it doesn't take.
    """
    arguments = dict(arguments or {})
    if callable(getattr(thing, "act", None)) and not isinstance(thing, type):
        if arguments:
            raise ValueError(f"expected no arguments for an object; got {_listed(arguments)}")
        found: Agent = thing
        return found
    if not callable(thing):
        raise ValueError(
            f"expected an object with a method act, or a class or function that gives one; "
            f"got {type(thing).__name__}"
        )
    known = _parameters(thing)
    _check_arguments(known, arguments)
    if "seed" in known and "seed" not in arguments:
        arguments["seed"] = seed
    lacking = [
        name
        for name, parameter in known.items()
        if name not in arguments
        and parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    is_function = not isinstance(thing, type)
    if is_function and len(lacking) == len(_PARTS) and not arguments:
        return RowFunction(thing)
    if is_function and any_name_is_seed and len(lacking) == 1:
        made = thing(seed, **arguments)
    elif lacking:
        raise ValueError(f"expected the arguments {_listed(lacking)} too")
    else:
        made = thing(**arguments)
    if not callable(getattr(made, "act", None)) or isinstance(made, type):
        raise ValueError(f"expected to be given an object with act; got {type(made).__name__}")
    agent: Agent = made
    return agent


def _parameters(thing: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(thing).parameters
    except (ValueError, TypeError) as error:
        raise ValueError(f"expected a function whose parameters can be told; {error}") from error


def _check_arguments(known: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]) -> None:
    kinds = {parameter.kind for parameter in known.values()}
    unknown = [name for name in arguments if name not in known]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(f"expected arguments among {_listed(known)}; got {unknown[0]!r}")


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"
