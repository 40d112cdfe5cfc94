"""The games of a training run: who sits at them, and what they pay."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from threeup_agents.training.privileged import (
    privileged_bounds,
    privileged_size,
    write_privileged_rows,
)
from threeup_agents.training.rollout_buffer import ChainBuffer, write_forced
from threeup_env import Batch
from threeup_env.agent import Agent
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.observation import observation_bounds

LEARNER = 0
"""In `seat_agents`: the seat is played by the current policy. Opponent i is i + 1."""

Choose = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""From the games that wait for the current policy, int64 `[K]`, to its actions, int64 `[K]`."""


class Games(VecEnv):
    """The games of a training run, and who sits at them.

    A share of the games has one learner's seat, drawn afresh each game, and one opponent
    at all others; in the rest the current policy plays every seat. SB3 asks
    for a `VecEnv` and reads its spaces; the games are stepped by `collect_rollouts`.

    Args:
        batch: the games; dealt here.
        privileged: whether the features hold hidden cards as well, for the critic alone.
        opponent_share: share of games with an opponent, 0 to 1.
        rng: draws opponents and seats.
    """

    def __init__(
        self, batch: Batch, privileged: bool, opponent_share: float, rng: np.random.Generator
    ) -> None:
        bounds = [observation_bounds(batch.num_players)]
        if privileged:
            bounds.append(privileged_bounds(batch.num_players))
        self.bounds = np.concatenate(bounds)
        self.batch = batch
        self.privileged = privileged
        self.opponent_share = opponent_share
        self.rng = rng
        self.opponents: list[Agent] = []
        self.seat_agents = np.zeros((batch.num_games, batch.num_players), np.int64)
        self.tally: dict[str, float] = {}
        self._rows = np.empty(batch.num_games, np.int64)
        self._actions = np.empty(batch.num_games, np.int64)
        self.render_mode = None
        super().__init__(
            batch.num_games,
            spaces.Box(np.zeros_like(self.bounds), self.bounds, dtype=np.int8),
            spaces.Discrete(NUM_ACTIONS),
        )

    def reset(self) -> npt.NDArray[np.int8]:
        """Deal every game anew and draw who sits where."""
        self.batch.reset()
        self.seat_players(np.arange(self.batch.num_games))
        return self.batch.observations

    def seat_players(self, games: npt.NDArray[np.int64]) -> None:
        """Draw who sits at games that have just been dealt; int64 `[K]`."""
        self.seat_agents[games] = LEARNER
        if not self.opponents or self.opponent_share == 0:
            return
        draws = self.rng.random(len(games)) < self.opponent_share
        opponents = 1 + self.rng.integers(len(self.opponents), size=len(games))
        seats = self.rng.integers(self.batch.num_players, size=len(games))
        self.seat_agents[games[draws]] = opponents[draws, None]
        self.seat_agents[games[draws], seats[draws]] = LEARNER

    def features(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """What the networks see in some games, critic's part last; int8 `[K, F + P]`."""
        seen = self.batch.observations[rows]
        if not self.privileged:
            return seen
        hidden = np.empty((len(rows), privileged_size(self.batch.num_players)), np.int8)
        write_privileged_rows(self.batch.states, rows, hidden)
        return np.concatenate([seen, hidden], axis=1)

    def play(self, decide: Choose, buffer: ChainBuffer) -> None:
        """Take one decision in every game, then all forced moves that follow.

        Args:
            decide: gives the learner's actions in some games, int64 `[K]` for `[K]`.
            buffer: is told of the games that end.
        """
        batch = self.batch
        sitting = self.seat_agents[np.arange(batch.num_games), batch.seats]
        actions = np.empty(batch.num_games, np.int64)
        rows = np.flatnonzero(sitting == LEARNER)
        if len(rows):
            actions[rows] = decide(rows)
        for i, opponent in enumerate(self.opponents if self.opponent_share else []):
            rows = np.flatnonzero(sitting == i + 1)
            if len(rows):
                actions[rows] = opponent.act(batch.observations[rows], batch.action_masks[rows])
        batch.step(actions)
        self._end_games(buffer)
        self.play_forced(buffer)

    def play_forced(self, buffer: ChainBuffer) -> None:
        """Play moves without a choice, until every game waits for a decision."""
        batch = self.batch
        while (count := write_forced(batch.action_masks, self._rows, self._actions)) > 0:
            batch.step(self._actions[:count], self._rows[:count])
            self._end_games(buffer)

    def _end_games(self, buffer: ChainBuffer) -> None:
        batch = self.batch
        games = np.flatnonzero(batch.terminations | batch.truncations)
        if not len(games):
            return
        buffer.end_games(games, batch.rewards[games])
        self._count("games", len(games))
        self._count("length", float(batch.lengths[games].sum()))
        self._count("cut off", float(batch.truncations[games].sum()))
        self.seat_players(games)

    def _count(self, name: str, value: float) -> None:
        self.tally[name] = self.tally.get(name, 0.0) + value

    # SB3 asks for these; nothing here is stepped through them.
    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Refuse: `play` steps the games."""
        raise NotImplementedError("games in training are stepped by collect_rollouts")

    def step_wait(self) -> Any:
        """Refuse: `play` steps the games."""
        raise NotImplementedError("games in training are stepped by collect_rollouts")

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same attribute for every game."""
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute for all games."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Refuse: there are no single envs."""
        raise NotImplementedError("games in training have no single envs")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Never."""
        return [False] * self.num_envs
