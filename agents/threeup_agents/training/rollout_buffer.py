"""The decisions of one rollout: chains from my turn to my next turn, and their advantages.

A chain is one seat's decisions in one game. Its last decision stays open until the seat
decides again or the game ends; what is still open when a rollout is full is carried into
the next one, so no decision is lost and every outcome is paid.
"""

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.buffers import (
    MaskableRolloutBuffer,
    MaskableRolloutBufferSamples,
)

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.compiled import compiled

NONE = -1


class ChainBuffer(MaskableRolloutBuffer):
    """A flat rollout buffer in order of time, for any number of seats.

    Args:
        buffer_size: lock-steps of a rollout.
        observation_space: of what the networks see, critic's input included; int8.
        action_space: the actions.
        device: of the minibatches.
        gae_lambda: lambda of GAE (Schulman et al. 2016).
        gamma: discount from my turn to my next turn.
        n_envs: games, B.
        num_players: seats at each table, S.
        rng: draws the minibatches.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        gae_lambda: float = 1.0,
        gamma: float = 1.0,
        n_envs: int = 1,
        num_players: int = 2,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.num_players = num_players
        self.rng = np.random.default_rng() if rng is None else rng
        super().__init__(
            buffer_size, observation_space, action_space, device, gae_lambda, gamma, n_envs
        )

    def reset(self) -> None:
        """Empty the buffer; allocate it at the first call."""
        self.pos = 0
        self.num_trained = 0
        self.full = False
        self.generator_ready = False
        if hasattr(self, "chains"):
            return
        # Every step adds at most one decision a game; before it come the carried ones.
        size = (self.buffer_size + self.num_players) * self.n_envs
        shape = self.observation_space.shape or ()
        self.observations = np.zeros((size, *shape), np.int8)
        self.action_masks = np.zeros((size, NUM_ACTIONS), np.bool_)
        self.actions = np.zeros(size, np.int64)
        self.log_probs = np.zeros(size, np.float32)
        self.all_values = np.zeros(size, np.float32)
        self.rewards = np.zeros(size, np.float32)
        self.ends = np.zeros(size, np.bool_)  # the game ended before this seat's next turn
        self.chains = np.zeros(size, np.int32)  # game * S + seat
        self.last = np.full(self.n_envs * self.num_players, NONE, np.int64)  # open decision

    def append(
        self,
        chains: npt.NDArray[np.int32],
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
    ) -> slice:
        """Add decisions, each the next of its chain; the caller fills in what was decided.

        Args:
            chains: int32 `[K]`, all different.
            observations: int8 `[K, F + P]`.
            action_masks: bool `[K, A]`.

        Returns:
            Where they stand in the buffer.
        """
        rows = slice(self.pos, self.pos + len(chains))
        self.observations[rows] = observations
        self.action_masks[rows] = action_masks
        self.chains[rows] = chains
        self.rewards[rows] = 0
        self.ends[rows] = False
        self.last[chains] = np.arange(rows.start, rows.stop)
        self.pos = rows.stop
        return rows

    def end_games(self, games: npt.NDArray[np.int64], rewards: npt.NDArray[np.float32]) -> None:
        """Pay each seat of finished games its own outcome and end its chain.

        Args:
            games: int64 `[K]`.
            rewards: float32 `[K, S]`.
        """
        chains = games[:, None] * self.num_players + np.arange(self.num_players)
        rows = self.last[chains]
        has_decided = rows != NONE
        self.rewards[rows[has_decided]] = rewards[has_decided]
        self.ends[rows[has_decided]] = True
        self.last[chains] = NONE

    def finish(self) -> None:
        """Compute advantages and returns; the open decisions are not trained on yet."""
        advantages = np.empty(self.pos, np.float32)
        trained = np.empty(self.pos, np.bool_)
        write_advantages(
            self.chains[: self.pos],
            self.rewards[: self.pos],
            self.ends[: self.pos],
            self.all_values[: self.pos],
            self.gamma,
            self.gae_lambda,
            np.empty((len(self.last), 2), np.float32),
            np.zeros(len(self.last), np.bool_),
            advantages,
            trained,
        )
        self.trained = np.flatnonzero(trained)
        self.num_trained = len(self.trained)
        self.advantages = advantages[self.trained]
        self.values = self.all_values[self.trained]
        self.returns = self.advantages + self.values
        self.full = True

    def carry(self) -> dict[str, npt.NDArray[Any]]:
        """The open decisions: `chains`, `observations`, `action_masks`, `actions`; copies."""
        rows = np.sort(self.last[self.last != NONE])
        names = ("chains", "observations", "action_masks", "actions")
        return {name: getattr(self, name)[rows] for name in names}

    def get(  # type: ignore[override]  # as in MaskableRolloutBuffer, which says so too
        self, batch_size: int | None = None
    ) -> Generator[MaskableRolloutBufferSamples, None, None]:
        """Give all trained decisions once, shuffled, in minibatches of nearly equal size."""
        number = 1 if batch_size is None else max(1, round(self.num_trained / batch_size))
        number = min(number, max(1, self.num_trained // 2))  # MaskablePPO takes their deviation
        tensors = [
            torch.from_numpy(array)
            for array in (
                self.observations,
                self.actions,
                self.log_probs,
                self.action_masks,
                self.values,
                self.advantages,
                self.returns,
            )
        ]
        for part in np.array_split(self.rng.permutation(self.num_trained), number):
            rows = torch.from_numpy(self.trained[part])
            at = torch.from_numpy(part)
            observations, actions, log_probs, masks = (t.index_select(0, rows) for t in tensors[:4])
            values, advantages, returns = (t.index_select(0, at) for t in tensors[4:])
            sample = (observations, actions, values, log_probs, advantages, returns, masks)
            yield MaskableRolloutBufferSamples(*(tensor.to(self.device) for tensor in sample))


@compiled
def write_advantages(
    chains: npt.NDArray[np.int32],
    rewards: npt.NDArray[np.float32],
    ends: npt.NDArray[np.bool_],
    values: npt.NDArray[np.float32],
    gamma: float,
    gae_lambda: float,
    following: npt.NDArray[np.float32],
    has_following: npt.NDArray[np.bool_],
    advantages: npt.NDArray[np.float32],
    trained: npt.NDArray[np.bool_],
) -> None:
    """GAE along each chain, from the last decision back.

    Args:
        chains: int32 `[N]`, decisions in order of time.
        rewards: paid between this decision and the chain's next; float32 `[N]`.
        ends: True if the game ended in between; bool `[N]`.
        values: the critic's; float32 `[N]`.
        gamma: discount.
        gae_lambda: lambda.
        following: scratch; float32 `[B * S, 2]`.
        has_following: scratch, all False; bool `[B * S]`.
        advantages: float32 `[N]`; overwritten.
        trained: False for a chain's open decision, whose outcome is unknown and whose
            value stands in for the rest of the chain; bool `[N]`; overwritten.
    """
    for row in range(len(chains) - 1, -1, -1):
        chain = chains[row]
        advantage = 0.0
        trained[row] = True
        if ends[row]:
            advantage = rewards[row] - values[row]
        elif has_following[chain]:
            delta = rewards[row] + gamma * following[chain, 0] - values[row]
            advantage = delta + gamma * gae_lambda * following[chain, 1]
        else:
            trained[row] = False
        has_following[chain] = True
        following[chain, 0] = values[row]
        following[chain, 1] = advantage
        advantages[row] = advantage


@compiled
def write_forced(
    action_masks: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
) -> int:
    """List the games whose seat to act has one legal action.

    Args:
        action_masks: bool `[B, A]`, read only.
        rows: int64 `[B]`; its first entries are overwritten by the games, ascending.
        actions: int64 `[B]`; likewise by the actions.

    Returns:
        The number of such games.
    """
    count = 0
    for row in range(len(action_masks)):
        number = 0
        for action in range(action_masks.shape[1]):
            if action_masks[row, action]:
                number += 1
                actions[count] = action
                if number > 1:
                    break
        if number == 1:
            rows[count] = row
            count += 1
    return count
