"""What a result depends on beside its settings: code, policies, libraries."""

import hashlib
import platform
import sys
from pathlib import Path
from typing import Final

import numba
import numpy as np
import scipy

import agents
import threeup_env

_ENGINE: Final = (
    *("actions", "batch", "cards", "compiled", "determinize"),
    *("observation", "rng", "rules", "state"),
)


def engine_hash() -> str:
    """Name the code that decides what happens in a game; any change to it gives another."""
    folder = Path(threeup_env.__file__).parent
    return _digest([folder / f"{name}.py" for name in _ENGINE])


def agent_hash(spec: str, num_players: int) -> str:
    """Name an agent's code and, if it has one, its policy file.

    Raises:
        ValueError: no such agent.
    """
    module = sys.modules[type(agents.make(spec)).__module__]
    files = [Path(str(module.__file__))]
    if policy := agents.policy_file(spec):
        files.append(policy)
    elif module.__name__ == "agents.ppo":
        files.append(files[0].parent / "policies" / f"ppo-{num_players}.safetensors")
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
