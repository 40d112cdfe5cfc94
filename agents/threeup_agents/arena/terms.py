"""The terms under which a block's agents are asked: where each runs, and what it may take."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from threeup_agents import specs
from threeup_agents.arena.isolation import Isolated
from threeup_agents.arena.referee import PATIENCE
from threeup_agents.programs.child import MEMORY
from threeup_env.agent import Agent, MemoryAgent, has_memory
from threeup_env.engine.batch import Batch


@dataclass(frozen=True)
class Terms:
    """What agents may take beside their time per decision, and where they run."""

    isolate: bool = False
    """Each in a process of its own, as programs are anyway."""
    patience: float = PATIENCE
    """Seconds that an agent may take in a block of games beside its time per decision."""
    memory: int = MEMORY
    """Bytes that each process of an agent may hold, if it has processes of its own."""
    logs: Path | None = None
    """Folder for what they write to standard error; None keeps none."""


TERMS: Final = Terms()
"""Agents here, in this process."""


def take_in(
    name: str, maker: Callable[[], Agent | MemoryAgent], entrant: object, terms: Terms
) -> Agent | MemoryAgent:
    """Make an agent where the terms say.

    Args:
        name: of the agent.
        maker: makes it.
        entrant: what it is made of.
        terms: where.

    Raises:
        ValueError: no such agent, or one that can't be sent to another process.
    """
    if isinstance(entrant, str) and specs.is_program(entrant):
        program: Any = maker()
        program.log, program.memory = _log(name, terms), terms.memory
        agent: Agent | MemoryAgent = program
        return agent
    if terms.isolate:
        return Isolated(name, maker, _log(name, terms), terms.memory)
    return maker()


def try_out(spec: str, game: Batch, terms: Terms) -> None:
    """Make an agent before a run. Ask it once, if it is of this process and has no memory.

    Args:
        spec: of the agent.
        game: a first position; read only.
        terms: of the run.

    Raises:
        ValueError: no such agent, one for another table, or one that can't be made.
    """
    agent: Any = take_in(spec, partial(specs.make_any, spec), spec, terms)
    if isinstance(agent, Isolated):
        agent.try_out(terms.patience)
    elif not has_memory(agent):
        try:
            agent.act(game.observations.copy(), game.action_masks.copy())
        except ValueError as error:  # e.g. a policy for another table size
            raise ValueError(f"agent {spec!r}: {error}") from error


@contextmanager
def custody(agents: Sequence[Any]) -> Iterator[None]:
    """Close, in the end, the agents that have processes of their own."""
    try:
        yield
    finally:
        for agent in agents:
            if hasattr(agent, "deadline"):
                agent.close()


def _log(name: str, terms: Terms) -> Path | None:
    """The file of an agent's own words.

    >>> _log("program:node bot.js", Terms(logs=Path("out/programs"))).name
    'program-node-bot.js.log'
    """
    plain = re.sub(r"[^\w.]+", "-", name)[:100]
    return None if terms.logs is None else terms.logs / f"{plain}.log"
