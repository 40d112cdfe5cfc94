"""Agents for 3UP 3DOWN, and what one does with them. Importing this loads none of them.

players and search hold the agents, arena plays them against each other, analysis says who
is better, replay shows a game again, play is for people, training fits policies.
"""

from threeup_agents.specs import SPECS, about, make, policy_file
from threeup_env.agent import Agent

__all__ = ["SPECS", "Agent", "about", "make", "policy_file"]
