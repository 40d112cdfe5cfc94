"""PettingZoo's wrappers, as far as ours differ: calls out of order, illegal actions."""

from typing import Any

import numpy as np
import numpy.typing as npt
from pettingzoo.utils import wrappers


def check_order(call: str, has_reset: bool, has_agents: bool = True) -> None:
    """Raise unless a game has been dealt and, where that matters, somebody is still to act.

    Raises:
        RuntimeError: names the call, and what to call first.
    """
    if not has_reset:
        raise RuntimeError(f"call reset() before {call}()")
    if not has_agents:
        raise RuntimeError("call reset(): the game has ended and each agent has had its last step")


def check_agent(agent: str, seats: dict[str, int]) -> int:
    """Give the agent's seat.

    Raises:
        ValueError: no agent has that name.
    """
    if agent not in seats:
        raise ValueError(f"agent: expected one of {list(seats)}; got {agent!r}")
    return seats[agent]


class TerminateIllegalWrapper(wrappers.TerminateIllegalWrapper):  # type: ignore[misc]  # no types
    """PettingZoo's, but it asks for the mask itself: callers write into what they are given."""

    def step(self, action: int | None) -> None:
        """As `raw_env.step`; an illegal action ends the game."""
        self._prev_obs = {"action_mask": self.unwrapped._mask()}
        super().step(action)


class OrderEnforcingWrapper(wrappers.OrderEnforcingWrapper):  # type: ignore[misc]  # it has no types
    """PettingZoo's, with `raw_env`'s errors, and with its way to show itself in a notebook."""

    def step(self, action: int | None) -> None:
        """As `raw_env.step`."""
        check_order("step", self._has_reset, self._has_reset and bool(self.agents))
        super().step(action)

    def last(self, observe: bool = True) -> Any:
        """As `raw_env.last`."""
        check_order("last", self._has_reset, self._has_reset and bool(self.agents))
        return super().last(observe)

    def observe(self, agent: str) -> dict[str, npt.NDArray[np.int8]] | None:
        """As `raw_env.observe`."""
        check_order("observe", self._has_reset)
        seen: dict[str, npt.NDArray[np.int8]] | None = super().observe(agent)
        return seen

    def render(self) -> Any:
        """As `raw_env.render`."""
        check_order("render", self._has_reset)
        return super().render()

    def agent_iter(self, max_iter: int = 2**63) -> Any:
        """As `raw_env.agent_iter`."""
        check_order("agent_iter", self._has_reset)
        return super().agent_iter(max_iter)

    def __str__(self) -> str:
        return str(self.env)

    def _repr_html_(self) -> str | None:
        html: str | None = self.unwrapped._repr_html_()
        return html
