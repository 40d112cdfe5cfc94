"""Agents for 3UP 3DOWN, and what one does with them. Importing this loads none of them.

players and search hold the agents, outside takes those of others, arena plays them against each
other, analysis says who is better, replay shows a game again, play is for people, training fits
policies.
"""

from typing import TYPE_CHECKING, Any

from threeup_agents.specs import SPECS, about, make, policy_file
from threeup_env.agent import Agent

if TYPE_CHECKING:
    from threeup_agents.contest import round_robin

__all__ = ["SPECS", "Agent", "about", "make", "policy_file", "round_robin"]


def __getattr__(name: str) -> Any:
    if name != "round_robin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from threeup_agents.contest import round_robin

    return round_robin
