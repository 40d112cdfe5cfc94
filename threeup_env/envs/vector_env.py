"""Many games for one learner, as a Gymnasium vector environment."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.envs.learner import LearnerGames, Opponents
from threeup_env.envs.spaces import check_options, check_render_mode, learner_spaces
from threeup_env.view.screen import FRAMES_PER_SECOND, pixels
from threeup_env.view.text import table_text


class ThreeUpVectorEnv(
    VectorEnv[npt.NDArray[np.int8], npt.NDArray[np.int64], npt.NDArray[np.generic]]
):
    """Many games for one learner, as a Gymnasium vector environment.

    `LearnerGames` says what a step is and what the arguments mean. With the same seed the
    games are those of `Batch`. The mask isn't in the observation: it stands in
    `infos["action_mask"]` (int8 `[B, A]`) and in `action_masks()`.

    A row that ends is dealt anew in the same step (`AutoresetMode.SAME_STEP`), so that
    every action counts and a batch never holds dead rows. That step then returns the
    first observation of the new game; `infos["final_obs"]` and `infos["final_info"]`
    hold the last of the old one, in the rows marked by `infos["_final_obs"]`.

    A game that is cut off is truncated, but its reward is the real outcome (R21): add no
    value of the final observation to it.

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
    ) -> None:
        check_render_mode(render_mode, self.metadata)
        self.games = LearnerGames(
            num_envs, num_players, variant, max_steps, opponents, seat, skip_forced, illegal_action
        )
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = learner_spaces(num_players)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.int8], dict[str, Any]]:
        """Deal every game anew.

        Args:
            seed: restarts the deals, the seat draws and the default opponents; None goes
                on with them (or, the first time, takes a seed from the system).
            options: `{"decks": int [B, deck size]}` deals these instead of a shuffle (R4).
        """
        super().reset(seed=seed)
        decks = check_options(options, "decks")
        if seed is None and not self.games.has_games:
            seed = int(self.np_random.integers(2**63))
        self.games.reset(seed=seed, decks=decks)
        return self.games.observations.copy(), self._infos()

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[
        npt.NDArray[np.int8],
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Take one action a row, int `[B]`; see `LearnerGames.step`."""
        games = self.games
        games.step(actions)
        rewards = games.rewards.copy()
        terminations = games.terminations.copy()
        truncations = games.truncations.copy()
        ended = games.ended
        final: dict[str, Any] = {}
        if ended.any():
            final = self._final_infos(ended)
            games.reset(rows=np.flatnonzero(ended))
        observations = games.observations.copy()
        return observations, rewards, terminations, truncations, self._infos() | final

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """True where legal; bool `[B, A]`, a copy."""
        masks: npt.NDArray[np.bool_] = self.games.action_masks.copy()
        return masks

    def render(self) -> tuple[str, ...] | tuple[npt.NDArray[np.uint8], ...] | None:
        """Each table as its learner sees it, in text or in pixels; None without a `render_mode`.

        Raises:
            ImportError: the extra `[render]` is needed for pixels.
        """
        observations = self.games.observations
        if self.render_mode == "ansi":
            return tuple(map(table_text, observations))
        if self.render_mode == "rgb_array":
            # Loaded on first use: most runs never draw.
            from threeup_env.view.picture import draw
            from threeup_env.view.table import seen_by_seat

            return tuple(pixels(draw(seen_by_seat(observation))) for observation in observations)
        return None

    def _infos(self) -> dict[str, Any]:
        return {
            "action_mask": self.games.action_masks.astype(np.int8),
            "_action_mask": np.ones(self.num_envs, np.bool_),
        }

    def _final_infos(self, ended: npt.NDArray[np.bool_]) -> dict[str, Any]:
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row in np.flatnonzero(ended):
            final_obs[row] = self.games.observations[row].copy()
        masks = np.zeros((self.num_envs, NUM_ACTIONS), np.int8)
        return {
            "final_obs": final_obs,
            "_final_obs": ended,
            "final_info": {"action_mask": masks, "_action_mask": ended.copy()},
            "_final_info": ended.copy(),
        }
