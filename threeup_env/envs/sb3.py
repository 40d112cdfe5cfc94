"""`ThreeUpVectorEnv` as a Stable-Baselines3 `VecEnv`, masks included."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from threeup_env.envs.spaces import LearnerObservation, check_options, check_seed
from threeup_env.envs.vector_env import ThreeUpVectorEnv

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "threeup_env.envs.sb3 needs stable-baselines3: pip install 'threeup[train]'"
    ) from error


class ThreeUpVecEnv(VecEnv):
    """Many games for one learner of Stable-Baselines3 or sb3-contrib.

    `env_method("action_masks")` answers from the masks that the last step has left behind,
    so sb3-contrib's maskable algorithms pay no second round trip.

    At the end of a game its info holds SB3's `"terminal_observation"`, and `"episode"` with
    the return `"r"`, the learner's decisions `"l"` and the seconds `"t"` since this was made,
    as `Monitor` would write them. `"TimeLimit.truncated"` is always False: a game that is cut
    off has a real outcome (R21), so SB3 must not add its own guess of what would have come.
    (`DummyVecEnv` and `SubprocVecEnv` over `ThreeUpEnv` let it guess, unless they are made
    with `cut_off="termination"`.)

    SB3 seeds the games with the model's seed, when a model is made and again when it is
    loaded: a loaded model would learn from the same deals once more. New ones come with
    `load(path, env=env, seed=another)`, or, as often as a run goes on, with
    `model.set_random_seed(model.num_timesteps)` after the load.

    Args:
        env: the games, dealt anew in the same step (`AutoresetMode.SAME_STEP`); this adapter
            resets and steps them from now on.

    Raises:
        ValueError: an env with another autoreset mode.

    Example:
        >>> vec_env = ThreeUpVecEnv(ThreeUpVectorEnv(num_envs=8, num_players=3))
        >>> observations = vec_env.reset()
        >>> len(vec_env.env_method("action_masks"))
        8
    """

    def __init__(self, env: ThreeUpVectorEnv) -> None:
        if env.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                f"env: expected autoreset_mode {AutoresetMode.SAME_STEP}; got {env.autoreset_mode}"
            )
        self.env = env
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._actions: npt.NDArray[np.int64] | None = None
        self._lengths = np.zeros(env.num_envs, np.int64)
        self._start = time.time()

    def reset(self) -> LearnerObservation:
        """Deal every game anew.

        `seed(n)` before it sets the seed of all games, `set_options({"deck": ranks})`
        the deck of each.

        Raises:
            ValueError: another option, or a deck that isn't one.
        """
        given = (check_options(options, "deck")[0] for options in self._options)
        decks = [deck for deck in given if deck is not None]
        observations, _ = self.env.reset(
            seed=self._seeds[0], options={"decks": decks} if decks else None
        )
        self._reset_seeds()
        self._reset_options()
        self._lengths[:] = 0
        self._check_masks()
        return observations

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next `reset`: the deals, the seats, the default opponents.

        Raises:
            TypeError: neither an integer nor None, which draws a seed from NumPy's old functions.
            ValueError: a negative integer.
        """
        return super().seed(check_seed(seed))

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Play every game up to the learner's next decision."""
        if self._actions is None:
            raise RuntimeError("call step_async() before step_wait()")
        actions, self._actions = self._actions, None
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._check_masks()
        self._lengths += 1
        ended = terminations | truncations
        listed: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(ended).tolist():
            listed[row] = {
                "terminal_observation": infos["final_obs"][row],
                "TimeLimit.truncated": False,
                "episode": {
                    # All of a game's reward comes with its last step.
                    "r": float(rewards[row]),
                    "l": int(self._lengths[row]),
                    "t": round(time.time() - self._start, 6),
                },
            }
        self._lengths[ended] = 0
        return observations, rewards, ended, listed

    def close(self) -> None:
        """Close the games."""
        self.env.close()

    def has_attr(self, attr_name: str) -> bool:
        """Whether the games have this attribute."""
        return hasattr(self.env, attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Read an attribute, once for each of the games."""
        rows = self._get_indices(indices)
        if attr_name == "action_masks":
            return [partial(self._action_mask, row) for row in rows]
        value = getattr(self.env, attr_name)
        return [value for _ in rows]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all games; they share it, so `indices` must be None."""
        if indices is not None:
            raise ValueError(f"indices: expected None, as the games share all; got {indices!r}")
        setattr(self.env, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of the games, once; `action_masks` gives one bool `[A]` a game."""
        if method_name == "action_masks":
            masks = list(self.env.action_masks())
            return masks if indices is None else [masks[i] for i in self._get_indices(indices)]
        result = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [result for _ in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        """No game is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """Each table in pixels, uint8 `[height, width, 3]`; None without `rgb_array`."""
        if self.env.render_mode != "rgb_array":
            return [None] * self.num_envs
        return cast("Sequence[npt.NDArray[np.uint8]]", self.env.render())

    def _action_mask(self, row: int) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = self.env.action_masks()[row]
        return mask

    def _check_masks(self) -> None:
        """Refuse an empty mask: sb3-contrib would silently play any illegal action."""
        empty = np.flatnonzero(~self.env.action_masks().any(axis=1))
        if len(empty):
            raise RuntimeError(f"game {empty[0]}: expected a legal action; got an empty mask")
