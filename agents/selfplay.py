"""Self-play on sb3-contrib's MaskablePPO: every seat's decisions train the policy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv

import agents
from agents import ppo
from agents.masked import choose, log_probs_and_entropies
from agents.network import AsymmetricPolicy
from agents.rollout import ChainBuffer, write_forced
from threeup_env import Batch
from threeup_env.actions import NUM_ACTIONS
from threeup_env.observation import observation_bounds
from threeup_env.privileged import privileged_bounds, privileged_size, write_privileged_rows

LEARNER = 0
"""In `seat_agents`: the seat is played by the current policy. Opponent i is i + 1."""

TEACHER_ENTROPY = 0.1
"""Weight of the entropy bonus under a teacher: what is left of the others' chances is what
the policy can still find out about them."""

Choose = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]


class Games(VecEnv):
    """The games of a training run, and who sits at them.

    A share of the games has one learner's seat, drawn afresh each game, and one opponent
    at all others; in the rest the current policy plays every seat. It is a `VecEnv` for
    its spaces alone: `collect_rollouts` steps it.

    Args:
        batch: the games; dealt here.
        privileged: whether the critic sees what no seat may know.
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
        self.opponents: list[agents.Agent] = []
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


class SelfPlayPPO(MaskablePPO):
    """MaskablePPO whose rollouts are `Games`: schedules, update, logger, callbacks are theirs.

    Args:
        games: the games to learn from.
        hidden: hidden layers of both networks.
        levels: thresholds of the actor's input, see `AsymmetricPolicy`.
        rng: draws actions and minibatches.
        opponents: specs for `agents.make`, who sit at the opponents' seats.
        teacher: spec of the agent that plays the policy's seats at first.
        teacher_decisions: how many; policy and critic learn to imitate and to judge it.
        kwargs: MaskablePPO's.
    """

    env: Games
    policy: AsymmetricPolicy
    rollout_buffer: ChainBuffer

    def __init__(
        self,
        games: Games,
        hidden: tuple[int, ...],
        levels: int,
        rng: np.random.Generator,
        opponents: Sequence[str] = (),
        teacher: str | None = None,
        teacher_decisions: int = 0,
        **kwargs: Any,
    ) -> None:
        self.rng = rng
        self.teacher = teacher
        self.teacher_decisions = teacher_decisions
        self.is_taught = False  # whether the teacher played the last rollout
        self.opponents = tuple(opponents)
        self.pool: list[ppo.Policy] = []
        self.num_snapshots = 0
        self.carried: dict[str, npt.NDArray[Any]] | None = None
        super().__init__(
            AsymmetricPolicy,
            games,
            policy_kwargs={
                "num_seen": games.batch.observations.shape[1],
                "bounds": games.bounds,
                "hidden": hidden,
                "levels": levels,
            },
            rollout_buffer_class=ChainBuffer,
            rollout_buffer_kwargs={"num_players": games.batch.num_players, "rng": rng},
            device="cpu",
            **kwargs,
        )
        self._seat_opponents()

    def collect_rollouts(  # type: ignore[override]
        self,
        env: Games,
        callback: Any,
        rollout_buffer: ChainBuffer,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Fill the buffer with `n_rollout_steps` decisions of every game."""
        self.policy.set_training_mode(False)
        buffer = rollout_buffer
        buffer.reset()
        callback.on_rollout_start()
        self._seat_opponents()
        if self.carried is not None:
            self._append(buffer, **self.carried)

        teacher = None
        if self.teacher is not None and self.num_timesteps < self.teacher_decisions:
            teacher = agents.make(self.teacher, self._seeds(1)[0])
        self.is_taught = teacher is not None

        def decide(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            chains = rows * env.batch.num_players + env.batch.seats[rows]
            masks = env.batch.action_masks[rows]
            actions = None if teacher is None else teacher.act(env.batch.observations[rows], masks)
            return self._append(buffer, chains, env.features(rows), masks, actions)

        for _ in range(n_rollout_steps):
            before = buffer.pos
            env.play(decide, buffer)
            self.num_timesteps += buffer.pos - before
            callback.update_locals(locals())
            if not callback.on_step():
                return False
        buffer.finish()
        self.carried = buffer.carry()
        callback.on_rollout_end()
        return True

    def add_snapshot(self, pool_size: int) -> None:
        """Freeze the current policy as an opponent, in place of the oldest if the pool is full."""
        policy = self.export((self.env.batch.num_players,), temperature=1.0)
        if len(self.pool) < pool_size:
            self.pool.append(policy)
        else:
            self.pool[self.num_snapshots % pool_size] = policy
        self.num_snapshots += 1
        self._seat_opponents()

    def _seat_opponents(self) -> None:
        """Make the opponents anew, their streams a function of the seed and of the time.

        So a resumed run meets the same opponents, though an agent can't be saved.
        """
        seeds = self._seeds(1 + len(self.opponents) + len(self.pool))[1:]
        named = [agents.make(spec, s) for spec, s in zip(self.opponents, seeds, strict=False)]
        snapshots = [
            ppo.PPO(policy, "snapshot", s)
            for policy, s in zip(self.pool, seeds[len(named) :], strict=True)
        ]
        self.env.opponents = [*named, *snapshots]

    def _seeds(self, count: int) -> list[int]:
        """Seeds for the teacher, and for the opponents after it, at this time."""
        entropy = [self.seed or 0, self.num_timesteps]
        return [int(seed) for seed in np.random.SeedSequence(entropy).generate_state(count)]

    def train(self) -> None:
        """Update the networks: from the teacher if it played, else as MaskablePPO does."""
        if self.is_taught:
            self._imitate()
        else:
            super().train()

    def _imitate(self) -> None:
        """Raise the probability of what the teacher did; fit the critic to how it ended."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        agreement = []
        for _ in range(self.n_epochs):
            for sample in self.rollout_buffer.get(self.batch_size):
                values, log_probs, entropies = self.policy.evaluate_actions(
                    sample.observations, sample.actions, sample.action_masks
                )
                assert entropies is not None
                loss: Any = -log_probs.mean() - TEACHER_ENTROPY * entropies.mean()
                loss += self.vf_coef * torch.nn.functional.mse_loss(values, sample.returns)
                self.policy.optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()
                agreement.append(log_probs.detach().exp().mean().item())
        self._n_updates += self.n_epochs
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/teacher_agreement", float(np.mean(agreement)))

    def _append(
        self,
        buffer: ChainBuffer,
        chains: npt.NDArray[Any],
        observations: npt.NDArray[np.int8],
        action_masks: npt.NDArray[np.bool_],
        actions: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add decisions under the current policy: drawn from it, or, if carried, as they are."""
        with torch.no_grad():
            logits, values = self.policy.both(torch.from_numpy(observations))
        rows = buffer.append(chains, observations, action_masks)
        buffer.all_values[rows] = values.numpy()
        if actions is None:
            choose(
                logits.numpy(),
                action_masks,
                self.rng.random(len(chains)),
                buffer.actions[rows],
                buffer.log_probs[rows],
            )
        else:
            buffer.actions[rows] = actions
            buffer.log_probs[rows], _ = log_probs_and_entropies(
                logits, torch.from_numpy(action_masks), torch.from_numpy(actions)
            )
        return buffer.actions[rows]

    def export(
        self, num_players: Sequence[int], temperature: float = ppo.TEMPERATURE, **facts: Any
    ) -> ppo.Policy:
        """The current policy as NumPy runs it.

        Args:
            num_players: table sizes that it plays.
            temperature: of its sampled play.
            facts: of its training, JSON.
        """
        layers, levels = self.policy.actor_weights(), self.policy.levels
        return ppo.Policy(layers, tuple(num_players), facts, temperature, levels)
