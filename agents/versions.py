"""What a result depends on beside its settings: code, policies, libraries."""

import hashlib
import platform
import sys
from pathlib import Path

import numba
import numpy as np
import scipy

import agents
import threeup_env
from agents import value
from threeup_env import batch
from threeup_env.compiled import reachable


def engine_hash() -> str:
    """Name the code that decides what happens in a game; any change to it gives another."""
    return _digest(sorted(reachable(Path(batch.__file__))))


def agent_hash(spec: str, num_players: int) -> str:
    """Name an agent's code, all that it imports, and the networks that it reads if it does.

    Raises:
        ValueError: no such agent.
    """
    module = sys.modules[type(agents.make(spec)).__module__]
    source = Path(str(module.__file__))
    files = sorted(reachable(source))
    if policy := agents.policy_file(spec):
        files.append(policy)
    elif module.__name__ == "agents.ppo":
        files.append(source.parent / "policies" / f"ppo-{num_players}.safetensors")
    elif module.__name__ == "agents.search":
        files.append(value.shipped_file(num_players))
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
