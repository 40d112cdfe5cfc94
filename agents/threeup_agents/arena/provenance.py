"""What a result depends on beside its settings: code, policies, libraries."""

import hashlib
import platform
import sys
from pathlib import Path

import numba
import numpy as np
import scipy

import threeup_env
from threeup_agents import specs
from threeup_agents.arena.entrants import Given
from threeup_agents.arena.play import Entrant
from threeup_agents.outside.code import own_files
from threeup_env.engine import batch
from threeup_env.engine.compiled import reachable


def engine_hash() -> str:
    """Name the code that decides what happens in a game; any change to it gives another."""
    return _digest(sorted(reachable(Path(batch.__file__))))


def agent_hash(entrant: Entrant, num_players: int, trust: bool = False) -> str | None:
    """Name an agent's code, all that it imports, its arguments, and the networks that it reads.

    Of a person's code that is what it imports from its own folder or package, and files that
    are named in its arguments or by its method `data_files(num_players)`. Of an object it is its
    pickle, and if that doesn't hold the code, the files of the code.

    Args:
        entrant: who takes part.
        num_players: seats at the table.
        trust: see `threeup_agents.make`.

    Returns:
        The name; None for an object that can't be pickled, of which nothing can be said.

    Raises:
        ValueError: no such agent.
    """
    if isinstance(entrant, Given):
        home = [] if entrant.home is None else sorted(own_files(entrant.home))
        told = entrant.identity()
        return None if told is None else _digest(home, told)
    assert isinstance(entrant, str)
    agent = specs.make_any(entrant, trust=trust)
    files = specs.source_files(entrant)
    if files is None:
        files = sorted(reachable(Path(str(sys.modules[type(agent).__module__].__file__))))
    if hasattr(agent, "data_files"):
        files = files + agent.data_files(num_players)
    given = specs.without_path(entrant)
    return _digest([file for file in files if file.is_file()], given.encode())


def versions() -> dict[str, str]:
    """Versions of what took part."""
    return {
        "threeup": threeup_env.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": str(numba.__version__),
        "scipy": str(scipy.__version__),
    }


def _digest(files: list[Path], rest: bytes = b"") -> str:
    digest = hashlib.sha256(rest)
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
