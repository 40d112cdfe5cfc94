"""Who takes part in a run: agents by their specs, and objects that a person gives in Python."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import cloudpickle

from threeup_agents import specs
from threeup_agents.arena.play import Entrant
from threeup_agents.arena.terms import Terms, try_out
from threeup_agents.outside.functions import agent_of
from threeup_env.agent import Agent, name_of
from threeup_env.engine.batch import Batch

_CLASS_IDS: Final[Mapping[str, type]] = getattr(
    cloudpickle.cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID", {}
)
"""The random ids of classes that cloudpickle has written or read here."""


class Given:
    """An object as an entrant; what it may be says `threeup_agents.outside.functions`.

    Where it can be pickled, every block of games is played by a copy of it as it was when given,
    so that a game doesn't depend on what was played before it, nor on the number of workers. Where
    it can't, it plays itself, and what it remembers goes on from block to block.

    Args:
        thing: the object.
        name: in the results; None means its own.

    Raises:
        ValueError: it is no agent, and gives none.

    Example:
        >>> Given(lambda observation, mask: mask.argmax()).name
        'lambda'
    """

    def __init__(self, thing: Any, name: str | None = None) -> None:
        self.name = name_of(thing).strip("<>") if name is None else name
        self.pickled: bytes | None = None
        self.unpickled_for = ""
        self._thing: Any = None
        self.home = _home(thing)
        try:
            self.pickled = cloudpickle.dumps(thing)
        except Exception as error:  # whatever an object's own way of being pickled raises
            self.unpickled_for = f"{type(error).__name__}: {error}"
            self._thing = thing
        self(0)

    def identity(self) -> bytes | None:
        """What tells the object from others: its pickle, None if it has none.

        cloudpickle gives a class without a module a random id, which is left out. So a script that
        is run again goes on with its folder. Where a pickle differs from one process to the next,
        because of a set of texts or a notebook's names for its cells, the folder is refused.
        """
        if self.pickled is None:
            return None
        told = self.pickled
        for random_id in _CLASS_IDS:
            told = told.replace(random_id.encode(), b"")
        return told

    def __call__(self, seed: int) -> Agent:
        """Make the agent of a block of games."""
        thing = self._thing if self.pickled is None else cloudpickle.loads(self.pickled)
        try:
            return agent_of(thing, seed, any_name_is_seed=True)
        except ValueError as error:
            raise ValueError(f"agent {self.name!r}: {error}") from error


def _home(thing: Any) -> Path | None:
    """The file that a thing or its class comes from; None where a pickle holds its code itself."""
    kind = thing if isinstance(thing, type | FunctionType) else type(thing)
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return None if kind.__module__ == "__main__" or file is None else Path(file)


def check_names(agents: Sequence[str]) -> None:
    """Refuse two agents of one name, and one policy twice unless it is given names.

    Raises:
        ValueError: names the one that is there already.
    """
    seen: set[Any] = set()
    for spec in agents:
        name, rest = specs.named(spec)
        place = specs.policy_file(rest)
        keys = {name} if place is None or name != rest else {name, (place, rest.endswith(":best"))}
        if keys & seen:
            raise ValueError(
                f"agents: expected each one once; got {name!r} more than once. "
                f"Other names are given as NAME={rest}, in Python as (name, agent)"
            )
        seen |= keys


def check_entrants(
    entrants: Mapping[str, Entrant], num_players: int, variant: str, workers: int, terms: Terms
) -> None:
    """Make each agent once, and ask those of the project and networks for a first choice.

    Raises:
        ValueError: an unknown agent, one for another table, or an object that can't be sent to
            other processes.
        ImportError: a library that an agent needs isn't installed.
    """
    game = Batch(1, num_players, variant)
    game.reset()
    for name, entrant in entrants.items():
        if not isinstance(entrant, str):
            wrong = f"workers: expected 1 with agent {name!r}" if workers > 1 else ""
            wrong = f"isolate: expected another agent than {name!r}" if terms.isolate else wrong
            if wrong and isinstance(entrant, Given) and entrant.pickled is None:
                raise ValueError(f"{wrong}, which can't be pickled ({entrant.unpickled_for})")
        else:
            try_out(entrant, game, terms)


def about(entrant: Entrant) -> str:
    """What an entrant does, as far as its spec tells."""
    return specs.about(entrant) if isinstance(entrant, str) else "an object given in Python"
