"""3UP 3DOWN as a PettingZoo AEC environment.

| Creation           | `make("aec", "threeup-v1")` or `threeup_env.env()`                |
|--------------------|-------------------------------------------------------------------|
| Actions            | Discrete                                                          |
| Parallel API       | No                                                                |
| Manual Control     | No                                                                |
| Agents             | `["player_0", ...]`, 2 to 6 of them: `num_players`                |
| Action Values      | an index into `threeup_env.ACTION_NAMES`                          |
| Observation Values | a dictionary: `"observation"` and `"action_mask"`, both int8      |

### Observation Space
`"observation"` is what the seat may know, laid out as `threeup_env.observation_fields(num_players)`
says and put into words by `threeup_env.describe`. `"action_mask"` is 1 where the action is legal;
it stands in the agent's info too. For a seat that isn't to act, and after the end, it is all zeros.
`observe` answers for any agent at any time and changes nothing.

### Rewards
Rewards come at the end: the winner gets +1, every other seat -1/(n-1), so they sum to zero. If
`max_steps` cuts the game off, nobody has won and every seat gets a loser's -1/(n-1). All agents end
together; each is told in a last, dead step of its own, in the order of the seats. An illegal
action ends the game of an `env` with -1 for the offender and 0 for the others; `raw_env` raises
`IllegalActionError` and changes nothing.

### Version History
* v1: A game that is cut off has no winner; observations hold the bounds that pick-ups tell
* v0: Initial version
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
import pettingzoo
from gymnasium import spaces
from pettingzoo.utils import wrappers

from threeup_env.engine.actions import NUM_ACTIONS, IllegalActionError
from threeup_env.engine.batch import Batch, events_of
from threeup_env.engine.state import Record
from threeup_env.envs import order
from threeup_env.envs.spaces import (
    check_action,
    check_cut_off,
    check_render_mode,
    check_seed,
    fresh_seed,
    known_options,
    masked_space,
    no_actions,
)
from threeup_env.view.screen import FRAMES_PER_SECOND, RENDER_MODES, Window, pixels
from threeup_env.view.text import table_text

if TYPE_CHECKING:  # what draws is loaded on first use: most runs never draw
    from threeup_env.view.picture import Picture
    from threeup_env.view.table import Table, Viewer

Observation: TypeAlias = dict[str, npt.NDArray[np.int8]]
"""What `observe` gives: `"observation"` int8 `[F]` and `"action_mask"` int8 `[A]`."""
Env: TypeAlias = pettingzoo.AECEnv[str, Observation, int | None]


def env(
    num_players: int = 2,
    variant: str = "standard",
    max_steps: int = 1000,
    render_mode: str | None = None,
    cut_off: str = "truncation",
) -> Env:
    """Make the game with PettingZoo's usual wrappers; `raw_env` says more of the arguments.

    Args:
        num_players: seats at the table.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts the game off if it doesn't win it (R21).
        render_mode: `"ansi"` for text, `"rgb_array"` for pixels, `"human"` for a window.
        cut_off: report a cut-off as a `"truncation"` or a `"termination"`.

    Example:
        >>> game = env(num_players=3)
        >>> game.reset(seed=1)
        >>> for agent in game.agent_iter():
        ...     observation, reward, termination, truncation, info = game.last()
        ...     over = termination or truncation
        ...     game.step(None if over else int(info["action_mask"].argmax()))
    """
    game: Env = raw_env(num_players, variant, max_steps, render_mode, cut_off)
    game = order.TerminateIllegalWrapper(game, illegal_reward=-1)
    game = wrappers.AssertOutOfBoundsWrapper(game)
    return order.OrderEnforcingWrapper(game)


# PettingZoo names the class so, and its package has no types.
class raw_env(pettingzoo.AECEnv[str, Observation, int | None]):  # type: ignore[misc]  # noqa: N801
    """The game without wrappers: an illegal action raises and changes nothing.

    Args:
        num_players: seats at the table.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts the game off if it doesn't win it (R21).
        render_mode: how `render` shows what the seat to act sees: `"ansi"` as text,
            `"rgb_array"` as pixels, `"human"` in a window after each step; None for not at all.
        cut_off: report it as a `"truncation"` or a `"termination"`; the rewards are real (R21).

    Attributes:
        history: the record after the deal and the actions since; None before the first
            deal. Not for agents.

    Raises:
        ValueError: a bad argument; says which values would have been right.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "threeup_v1",
        "render_modes": list(RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        num_players: int = 2,
        variant: str = "standard",
        max_steps: int = 1000,
        render_mode: str | None = None,
        cut_off: str = "truncation",
    ) -> None:
        super().__init__()
        check_render_mode(render_mode, self.metadata)
        check_cut_off(cut_off)
        self.render_mode = render_mode
        self.cut_off = cut_off
        self._batch = Batch(1, num_players, variant, max_steps, fresh_seed(), autoreset=False)
        self.possible_agents = [f"player_{seat}" for seat in range(num_players)]
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        # One object an agent, since users seed spaces agent by agent.
        self.observation_spaces = {
            agent: masked_space(num_players) for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(NUM_ACTIONS) for agent in self.possible_agents}
        self.agents: list[str] = []
        self._has_reset = False
        self._is_over = False
        self._last: tuple[Record, int] | None = None  # the record before an action, the action
        self._window = Window()
        self.history: tuple[Record, list[int]] | None = None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations, the same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's actions, the same object at each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a new game.

        Args:
            seed: starts the stream of shuffles; None goes on with it. At first it is
                started by the operating system.
            options: `{"deck": ranks}` deals this deck instead of a shuffled one (R4): rank ids,
                front first. Other keys are ignored with a warning, since PettingZoo's own
                tests pass some.

        Raises:
            TypeError: a seed that is no integer.
            ValueError: a negative seed, or not a permutation of the variant's deck.
        """
        seed = check_seed(seed)
        deck = known_options(options, "deck").get("deck")
        self._batch.reset(seed=seed, decks=None if deck is None else [deck])
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"action_mask": no_actions()} for agent in self.agents}
        self._skip_agent_selection = None
        self._has_reset = True
        self._is_over = False
        self._last = None
        self.history = (self._batch.states[0].copy(), [])
        self._pass_to_seat()
        self._show()

    def observe(self, agent: str) -> Observation:
        """What an agent may know now, whoever is to act; arrays of the caller's own.

        Raises:
            RuntimeError: no game has been dealt.
            ValueError: no agent has that name.
        """
        order.check_order("observe", self._has_reset)
        seat = order.check_agent(agent, self._seats)
        if seat == self._batch.seats[0] and not self._is_over:
            return {"observation": self._batch.observations[0].copy(), "action_mask": self._mask()}
        return {"observation": self._batch.observe([seat])[0], "action_mask": no_actions()}

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What `agent_selection` sees, its reward since its last turn, and whether it has ended.

        Raises:
            RuntimeError: no game has been dealt, or every agent has had its last step.
        """
        order.check_order("last", self._has_reset, bool(self.agents))
        told: tuple[Any, float, bool, bool, dict[str, Any]] = super().last(observe)
        return told

    def events(self, agent: str) -> npt.NDArray[Any]:
        """What everybody saw since the deal, as an agent may know it; see `Batch.events`.

        Raises:
            RuntimeError: no game has been dealt.
            ValueError: no agent has that name.
        """
        order.check_order("events", self.history is not None)
        first, actions = self.history or (None, [])
        return events_of(first, actions, order.check_agent(agent, self._seats))

    def agent_iter(self, max_iter: int = 2**63) -> Any:
        """The agents in turn, each until its last step.

        Raises:
            RuntimeError: no game has been dealt.
        """
        order.check_order("agent_iter", self._has_reset)
        return super().agent_iter(max_iter)

    def step(self, action: int | None) -> None:
        """Take one action of `agent_selection`; None, and only None, if its game has ended.

        Raises:
            IllegalActionError: the rules forbid the action; nothing has changed.
            RuntimeError: no game has been dealt, or every agent has had its last step.
            TypeError: the action is not an integer.
            ValueError: an action for an agent whose game has ended.
        """
        order.check_order("step", self._has_reset, bool(self.agents))
        if self._is_over:
            self._was_dead_step(action)
            return
        agent = self.agent_selection
        taken = check_action(agent, action)
        last = (self._batch.states[0].copy(), taken) if self.render_mode else None
        try:
            self._batch.step([taken])
        except IllegalActionError as error:
            # The batch names its row, which means nothing here.
            seat_and_rest = str(error).removeprefix("game 0, ")
            raise IllegalActionError(f"{agent}, {seat_and_rest}") from None
        self._last = last
        assert self.history is not None
        self.history[1].append(taken)
        if self._batch.terminations[0] or self._batch.truncations[0]:
            self._end()
        else:
            self.infos[agent] = {"action_mask": no_actions()}
            self._pass_to_seat()
        self._show()

    def _pass_to_seat(self) -> None:
        self.agent_selection = self.possible_agents[self._batch.seats[0]]
        self.infos[self.agent_selection] = {"action_mask": self._mask()}

    def _mask(self) -> npt.NDArray[np.int8]:
        mask: npt.NDArray[np.int8] = self._batch.action_masks[0].astype(np.int8)
        return mask

    def _end(self) -> None:
        self.rewards = dict(zip(self.agents, self._batch.rewards[0].tolist(), strict=True))
        truncated = bool(self._batch.truncations[0]) and self.cut_off == "truncation"
        self.terminations = dict.fromkeys(self.agents, not truncated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self._accumulate_rewards()
        self._deads_step_first()

    def _deads_step_first(self) -> str:
        """Start the dead steps; `TerminateIllegalWrapper` ends the game by this call too."""
        self._is_over = True
        self.infos = {agent: {"action_mask": no_actions()} for agent in self.agents}
        first: str = super()._deads_step_first()
        return first

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Show the table as the seat to act sees it; after the end as seat 0 does.

        Returns:
            In mode `"ansi"` the text, which ends without a newline; in mode `"rgb_array"` the
            pixels of a picture, uint8 `[height, width, 3]`.

        Raises:
            ImportError: the extra `[render]` is needed for pixels and windows.
            RuntimeError: no game has been dealt.
        """
        if self.render_mode is None:
            modes = ", ".join(f"render_mode={mode!r}" for mode in RENDER_MODES)
            gymnasium.logger.warn(f"render() shows nothing: make the env with {modes}")
            return None
        order.check_order("render", self._has_reset)
        viewer = self._seat_to_show()
        table = self._table(viewer)
        if self.render_mode == "ansi":
            return table_text(self._batch.observe([viewer])[0], table.last_action)
        from threeup_env.view.picture import draw

        svg = draw(table)
        if self.render_mode == "rgb_array":
            return pixels(svg)
        self._window.show(svg)
        return None

    def picture(self, viewer: "Viewer | None" = None) -> "Picture":
        """Draw the table as somebody sees it; None for the seat to act, after the end seat 0.

        The last action is told if the env has a `render_mode`.

        Raises:
            RuntimeError: no game has been dealt.
            ValueError: no such viewer.
        """
        from threeup_env.view.picture import Picture, draw

        order.check_order("picture", self._has_reset)
        return Picture(draw(self._table(self._seat_to_show() if viewer is None else viewer)))

    def _repr_html_(self) -> str | None:
        return self.picture()._repr_html_() if self._has_reset else None

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _seat_to_show(self) -> int:
        return 0 if self._is_over else int(self._batch.seats[0])

    def _table(self, viewer: "Viewer") -> "Table":
        from threeup_env.view.table import look

        table = look(self._batch, 0, viewer, self._last)
        if self._is_over and not (self._batch.terminations[0] or self._batch.truncations[0]):
            return replace(table, last_action="an illegal action has ended the game")
        return table

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()
