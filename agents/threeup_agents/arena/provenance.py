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
from threeup_env.engine import batch
from threeup_env.engine.compiled import reachable


def engine_hash() -> str:
    """Name the code that decides what happens in a game; any change to it gives another."""
    return _digest(sorted(reachable(Path(batch.__file__))))


def agent_hash(spec: str, num_players: int) -> str:
    """Name an agent's code, all that it imports, and the networks that it reads if it does.

    Raises:
        ValueError: no such agent.
    """
    agent = specs.make_any(spec)
    source = Path(str(sys.modules[type(agent).__module__].__file__))
    files = sorted(reachable(source))
    if hasattr(agent, "data_files"):
        files += agent.data_files(num_players)
    return _digest([file for file in files if file.is_file()])


def versions() -> dict[str, str]:
    """Versions of what took part."""
    return {
        "threeup": threeup_env.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": str(numba.__version__),
        "scipy": str(scipy.__version__),
    }


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
