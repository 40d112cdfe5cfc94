"""One game for one learner, as a Gymnasium environment."""

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt

from threeup_env.engine.arguments import as_array
from threeup_env.envs.learner import LearnerGames, Opponents
from threeup_env.envs.order import check_order
from threeup_env.envs.spaces import (
    LearnerObservation,
    check_options,
    check_render_mode,
    check_seed,
    learner_spaces,
)
from threeup_env.view.screen import FRAMES_PER_SECOND, RENDER_MODES, Window, pixels
from threeup_env.view.text import table_text

if TYPE_CHECKING:  # what draws is loaded on first use: most runs never draw
    from threeup_env.view.picture import Picture


class ThreeUpEnv(gymnasium.Env[LearnerObservation, np.int64]):
    """One game for one learner; `LearnerGames` says what a step and the arguments mean.

    The same game as row 0 of a `ThreeUpVectorEnv` or a `Batch` with the same seed. The mask
    stands in `info["action_mask"]` (int8 `[A]`) and in `action_masks()`, where sb3-contrib
    looks for it; it is in the observation only with `dict_observation`.

    Gymnasium asks that every action of the space can be stepped, so
    `gymnasium.make("threeup_env/ThreeUp-v1")` sets `illegal_action="terminate"`; made
    directly, the environment raises `IllegalActionError` and changes nothing.

    A game that is cut off is truncated, but its reward is the real outcome (R21): add no
    value of the last observation to it. For a library that always adds one to truncations
    there is `cut_off="termination"`.

    Args:
        num_players: seats at each table.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off if it doesn't win it (R21).
        opponents: an agent for all other seats, or one a seat, clockwise from the learner;
            None for uniformly random play, seeded by `reset`.
        seat: the learner's; None draws it afresh for each game.
        skip_forced: play the learner's moves that are the only legal one.
        illegal_action: `"raise"` an IllegalActionError, with nothing changed, or
            `"terminate"` the learner's game with reward -1.
        render_mode: how `render` shows what the learner sees: `"ansi"` as text,
            `"rgb_array"` as pixels, `"human"` in a window after each step; None for not at all.
        dict_observation: observe a dictionary, as PettingZoo's face does: `"observation"`
            and `"action_mask"`, both int8.
        cut_off: report a game that is cut off as a `"truncation"` or a `"termination"`.
        history: observe also the last K public events: the observation is a dictionary with
            mask and `"events"`, int8 `[K, 6]` in the order of `EVENT_DTYPE`, the oldest first, rows
            of -1 for none; `info["events"]` holds those since the learner's last decision,
            int8 `[T, 6]`. 0 keeps none.

    Raises:
        TypeError: opponents that are no agents.
        ValueError: another bad argument; says which values would have been right.

    Example:
        >>> env = ThreeUpEnv(num_players=3)
        >>> observation, info = env.reset(seed=7)
        >>> over = False
        >>> while not over:
        ...     action = info["action_mask"].argmax()
        ...     observation, reward, terminated, truncated, info = env.step(action)
        ...     over = terminated or truncated
        >>> reward, terminated
        (-0.5, True)
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - declared so by Gymnasium
        "render_modes": list(RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
    }

    def __init__(
        self,
        num_players: int = 2,
        variant: str = "standard",
        max_steps: int = 1000,
        opponents: Opponents = None,
        seat: int | None = None,
        skip_forced: bool = False,
        illegal_action: str = "raise",
        render_mode: str | None = None,
        dict_observation: bool = False,
        cut_off: str = "truncation",
        history: int = 0,
    ) -> None:
        check_render_mode(render_mode, self.metadata)
        how_to_play = (opponents, seat, skip_forced, illegal_action, cut_off, history)
        self.games = LearnerGames(1, num_players, variant, max_steps, *how_to_play)
        self.render_mode = render_mode
        self.dict_observation = dict_observation
        self.observation_space, self.action_space = learner_spaces(
            *(num_players, dict_observation, history)
        )
        self._is_over = True
        self._window = Window()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[LearnerObservation, dict[str, Any]]:
        """Deal a new game.

        Args:
            seed: restarts the deals, the seat draws and the default opponents; None goes
                on with them (or, the first time, takes a seed from the system).
            options: `{"deck": ranks}` deals that deck instead of a shuffle, its front
                first (R4).

        Raises:
            TypeError: a seed that is no integer.
            ValueError: a negative seed, another option, or a deck that isn't one.
        """
        seed = check_seed(seed)
        (deck,) = check_options(options, "deck")
        super().reset(seed=seed)
        if seed is None and not self.games.has_games:
            seed = int(self.np_random.integers(2**63))
        self.games.reset(seed=seed, decks=None if deck is None else [deck])
        self._is_over = False
        self._show()
        return self._observation(), self._info()

    def step(
        self, action: int | np.int64
    ) -> tuple[LearnerObservation, float, bool, bool, dict[str, Any]]:
        """Take one action and play up to the learner's next decision.

        Raises:
            IllegalActionError: an action that the mask forbids (see `illegal_action`).
            RuntimeError: there is no game, or it has ended.
        """
        if self._is_over:
            raise RuntimeError("call reset() before step()")
        games = self.games
        games.step(as_array("action", action)[None])
        terminated, truncated = bool(games.terminations[0]), bool(games.truncations[0])
        self._is_over = terminated or truncated
        self._show()
        return self._observation(), float(games.rewards[0]), terminated, truncated, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """True where legal, all False once the game has ended; bool `[A]`, a copy."""
        mask: npt.NDArray[np.bool_] = self.games.action_masks[0].copy()
        return mask

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Show the table as the learner sees it.

        Returns:
            In mode `"ansi"` the text; in mode `"rgb_array"` the pixels of a picture,
            uint8 `[height, width, 3]`.

        Raises:
            ImportError: the extra `[render]` is needed for pixels and windows.
            RuntimeError: no game has been dealt.
        """
        if self.render_mode is None:
            return None
        check_order("render", self.games.has_games)
        if self.render_mode == "ansi":
            return table_text(self.games.observations[0])
        if self.render_mode == "rgb_array":
            return pixels(self.picture().svg)
        self._show()
        return None

    def picture(self) -> "Picture":
        """Draw the table as the learner sees it.

        Raises:
            RuntimeError: no game has been dealt.
        """
        from threeup_env.view.picture import Picture, draw
        from threeup_env.view.table import seen_by_seat

        check_order("picture", self.games.has_games)
        return Picture(draw(seen_by_seat(self.games.observations[0])))

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()

    def _repr_html_(self) -> str | None:
        return self.picture()._repr_html_() if self.games.has_games else None

    def _show(self) -> None:
        if self.render_mode == "human":
            self._window.show(self.picture().svg)

    def _observation(self) -> LearnerObservation:
        observation = self.games.observations[0].copy()
        if not (self.dict_observation or self.games.history):
            return observation
        parts = {"observation": observation, "action_mask": self._mask()}
        if self.games.history:
            parts["events"] = self.games.last_events()[0]
        return parts

    def _info(self) -> dict[str, Any]:
        events = {"events": self.games.new_events(0)} if self.games.history else {}
        return {"action_mask": self._mask()} | events

    def _mask(self) -> npt.NDArray[np.int8]:
        mask: npt.NDArray[np.int8] = self.games.action_masks[0].astype(np.int8)
        return mask
