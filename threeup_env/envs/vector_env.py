"""Many games for one learner, as a Gymnasium vector environment."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.envs.learner import LearnerGames, Opponents
from threeup_env.envs.order import check_order
from threeup_env.envs.spaces import (
    LearnerObservation,
    check_options,
    check_render_mode,
    check_seed,
    learner_spaces,
)
from threeup_env.view.screen import FRAMES_PER_SECOND, pixels
from threeup_env.view.text import table_text


class ThreeUpVectorEnv(
    VectorEnv[LearnerObservation, npt.NDArray[np.int64], npt.NDArray[np.generic]]
):
    """Many games for one learner, as a Gymnasium vector environment.

    `LearnerGames` says what a step is and what the arguments mean. With the same seed the
    games are those of `Batch`. The mask stands in `infos["action_mask"]` (int8 `[B, A]`)
    and in `action_masks()`; it is in the observation only with `dict_observation`.

    A row that ends is dealt anew as Gymnasium's `AutoresetMode` says:

    - `SAME_STEP`: in the same step, so that every action counts and a batch never holds dead
      rows. That step returns the first observation of the new game; `infos["final_obs"]` and
      `infos["final_info"]` hold the last of the old one, in the rows marked by
      `infos["_final_obs"]`. Gymnasium's `RecordEpisodeStatistics` counts this right from
      1.4 on; before, it misses the first step of each game but the first.
    - `NEXT_STEP`: in the step after, which ignores the row's action and gives no reward.
      Until then the row shows its last observation and an empty mask.
    - `DISABLED`: by the caller, with `reset(options={"reset_mask": mask})`.

    A game that is cut off is truncated, but its reward is the real outcome (R21): add no
    value of the final observation to it. For a library that always adds one to truncations
    there is `cut_off="termination"`.

    Args:
        num_envs: games played at once, B.
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
            `"rgb_array"` as pixels; None for not at all.
        dict_observation: observe a dictionary, as PettingZoo's face does: `"observation"`
            and `"action_mask"`, both int8.
        autoreset_mode: a `gymnasium.vector.AutoresetMode` or its value, e.g. `"NextStep"`.
        cut_off: report a game that is cut off as a `"truncation"` or a `"termination"`.
        history: observe also the last K public events: the observation is a dictionary with
            mask and `"events"`, int8 `[K, 6]` in the order of `EVENT_DTYPE`, the oldest first, rows
            of -1 for none; `infos["events"]` holds those since the learner's last decision, int8
            `[T, 6]` a row.
            0 keeps none.

    Raises:
        TypeError: opponents that are no agents.
        ValueError: another bad argument; says which values would have been right.

    Example:
        >>> envs = ThreeUpVectorEnv(num_envs=3, num_players=4)
        >>> observations, infos = envs.reset(seed=7)
        >>> actions = infos["action_mask"].argmax(axis=1)
        >>> observations, rewards, terminations, truncations, infos = envs.step(actions)
        >>> observations.shape, rewards
        ((3, 200), array([0., 0., 0.], dtype=float32))
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - declared so by Gymnasium
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": FRAMES_PER_SECOND,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        num_players: int = 2,
        variant: str = "standard",
        max_steps: int = 1000,
        opponents: Opponents = None,
        seat: int | None = None,
        skip_forced: bool = False,
        illegal_action: str = "raise",
        render_mode: str | None = None,
        dict_observation: bool = False,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        cut_off: str = "truncation",
        history: int = 0,
    ) -> None:
        check_render_mode(render_mode, self.metadata)
        self.autoreset_mode = _as_autoreset_mode(autoreset_mode)
        # The class's stay as they are: each env has a mode of its own.
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        how_to_play = (opponents, seat, skip_forced, illegal_action, cut_off, history)
        self.games = LearnerGames(num_envs, num_players, variant, max_steps, *how_to_play)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.dict_observation = dict_observation
        self._over = np.zeros(num_envs, np.bool_)  # the rows that wait for a new game
        self.single_observation_space, self.single_action_space = learner_spaces(
            *(num_players, dict_observation, history)
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[LearnerObservation, dict[str, Any]]:
        """Deal every game anew, or some.

        Args:
            seed: restarts the deals, the seat draws and the default opponents; None goes
                on with them (or, the first time, takes a seed from the system).
            options: `{"reset_mask": bool [B]}` deals the games that it marks and leaves the
                others as they are; the answer shows all. `{"decks": int [B, deck size]}` deals
                these instead of a shuffle (R4), with a mask one a marked game.

        Raises:
            RuntimeError: a mask that leaves out games that have never been dealt.
            TypeError: a seed that is no integer, or a mask that is no bool array.
            ValueError: a negative seed, another option, a mask of another shape or without a
                mark, or decks that are none.
        """
        seed = check_seed(seed)
        decks, mask = check_options(options, "decks", "reset_mask")
        rows = None if mask is None else self._rows_to_reset(mask)
        super().reset(seed=seed)
        if seed is None and not self.games.has_games:
            seed = int(self.np_random.integers(2**63))
        self.games.reset(seed=seed, decks=decks, rows=rows)
        self._over[slice(None) if rows is None else rows] = False
        return self._observations(), self._infos()

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[
        LearnerObservation,
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Take one action a row, int `[B]`; see `LearnerGames.step`.

        Raises:
            IllegalActionError: an action that its mask forbids (see `illegal_action`); nothing
                has changed.
            RuntimeError: no game has been dealt; or, if autoreset is disabled, one has ended.
            ValueError: wrong shape or dtype.
        """
        games, over = self.games, self._over
        some_are_over = bool(over.any())
        if some_are_over and self.autoreset_mode is AutoresetMode.DISABLED:
            raise RuntimeError(
                'call reset(options={"reset_mask": mask}) before step(): '
                f"game {int(over.argmax())} has ended"
            )
        games.step(actions, np.flatnonzero(~over) if some_are_over else None)
        rewards = games.rewards.copy()
        terminations = games.terminations.copy()
        truncations = games.truncations.copy()
        if some_are_over:
            rewards[over], terminations[over], truncations[over] = 0, False, False
            games.reset(rows=np.flatnonzero(over))
        ended = terminations | truncations
        final: dict[str, Any] = {}
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._over = ended
        elif ended.any():
            final = self._final_infos(ended)
            games.reset(rows=np.flatnonzero(ended))
        return self._observations(), rewards, terminations, truncations, self._infos() | final

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """True where legal; bool `[B, A]`, a copy."""
        masks: npt.NDArray[np.bool_] = self.games.action_masks.copy()
        return masks

    def render(self) -> tuple[str, ...] | tuple[npt.NDArray[np.uint8], ...] | None:
        """Each table as its learner sees it, in text or in pixels; None without a `render_mode`.

        Raises:
            ImportError: the extra `[render]` is needed for pixels.
            RuntimeError: no game has been dealt.
        """
        if self.render_mode is None:
            return None
        check_order("render", self.games.has_games)
        observations = self.games.observations
        if self.render_mode == "ansi":
            return tuple(map(table_text, observations))
        # Loaded on first use: most runs never draw.
        from threeup_env.view.picture import draw
        from threeup_env.view.table import seen_by_seat

        return tuple(pixels(draw(seen_by_seat(observation))) for observation in observations)

    def _rows_to_reset(self, mask: object) -> npt.NDArray[np.int64] | None:
        """The rows that `reset` deals; None for all."""
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"reset_mask: expected a bool array; got {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"reset_mask: expected at least one True in shape {(self.num_envs,)}; got {mask!r}"
            )
        if mask.all():
            return None
        if not self.games.has_games:
            raise RuntimeError('call reset() before reset(options={"reset_mask": mask})')
        return np.flatnonzero(mask)

    def _observations(self) -> LearnerObservation:
        observations = self.games.observations.copy()
        if not (self.dict_observation or self.games.history):
            return observations
        parts = {
            "observation": observations,
            "action_mask": self.games.action_masks.astype(np.int8),
        }
        if self.games.history:
            parts["events"] = self.games.last_events()
        return parts

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {"action_mask": self.games.action_masks.astype(np.int8)}
        if self.games.history:
            infos["events"] = self._new_events(np.arange(self.num_envs))
        everywhere = {f"_{name}": np.ones(self.num_envs, np.bool_) for name in infos}
        return infos | everywhere

    def _new_events(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
        """The events of some rows since their learner's last decision, None in the others."""
        events = np.full(self.num_envs, None, dtype=object)
        for row in rows.tolist():
            events[row] = self.games.new_events(row)
        return events

    def _final_infos(self, ended: npt.NDArray[np.bool_]) -> dict[str, Any]:
        observations = self._observations()
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row in np.flatnonzero(ended).tolist():
            final_obs[row] = (
                {name: part[row].copy() for name, part in observations.items()}
                if isinstance(observations, dict)
                else observations[row].copy()
            )
        masks = np.zeros((self.num_envs, NUM_ACTIONS), np.int8)
        final: dict[str, Any] = {"action_mask": masks}
        if self.games.history:
            final["events"] = self._new_events(np.flatnonzero(ended))
        marks = {f"_{name}": ended.copy() for name in final}
        return {
            "final_obs": final_obs,
            "_final_obs": ended,
            "final_info": final | marks,
            "_final_info": ended.copy(),
        }


def _as_autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = " or ".join(repr(known.value) for known in AutoresetMode)
        raise ValueError(f"autoreset_mode: expected {modes}; got {mode!r}") from None
