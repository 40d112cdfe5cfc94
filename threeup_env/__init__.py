"""3UP 3DOWN as a multi-agent reinforcement-learning environment.

Shape letters in every docstring: B games, S seats, R ranks, A actions,
F observation features.
"""

from typing import TYPE_CHECKING, Any

import pettingzoo
from gymnasium.envs.registration import register

from threeup_env.engine.actions import ACTION_NAMES, IllegalActionError, action_id
from threeup_env.engine.batch import Batch
from threeup_env.engine.cards import RANK_NAMES, VARIANTS
from threeup_env.engine.determinize import determinize
from threeup_env.engine.events import EVENT_DTYPE, event_columns
from threeup_env.engine.observation import OBSERVATION_DTYPE, decode, observation_fields
from threeup_env.engine.state import ENV_ID, STATE_DTYPE
from threeup_env.envs.aec import env, raw_env
from threeup_env.envs.gym_env import ThreeUpEnv
from threeup_env.envs.vector_env import ThreeUpVectorEnv
from threeup_env.view.words import describe

if TYPE_CHECKING:
    from threeup_env.view.picture import show

__all__ = [
    "ACTION_NAMES",
    "EVENT_DTYPE",
    "OBSERVATION_DTYPE",
    "RANK_NAMES",
    "STATE_DTYPE",
    "VARIANTS",
    "Batch",
    "IllegalActionError",
    "ThreeUpEnv",
    "ThreeUpVectorEnv",
    "action_id",
    "decode",
    "describe",
    "determinize",
    "env",
    "event_columns",
    "observation_fields",
    "raw_env",
    "show",
]
__version__ = "1.0.0"


def __getattr__(name: str) -> Any:
    """Load what draws on first use: most runs never draw."""
    if name == "show":
        from threeup_env.view.picture import show

        return show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if hasattr(pettingzoo, "register"):  # since 1.27
    pettingzoo.register("aec", ENV_ID, entry_point="threeup_env.envs.aec:env")
register(
    id="threeup_env/ThreeUp-v1",
    entry_point="threeup_env.envs.gym_env:ThreeUpEnv",
    vector_entry_point="threeup_env.envs.vector_env:ThreeUpVectorEnv",
    kwargs={"illegal_action": "terminate"},
)
