"""Self-play on sb3-contrib's MaskablePPO: every seat's decisions train the policy."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO

from threeup_agents import specs
from threeup_agents.players.policy import TEMPERATURE, Policy, PolicyPlayer
from threeup_agents.training.games import Games
from threeup_agents.training.masked_softmax import choose, log_probs_and_entropies
from threeup_agents.training.networks import AsymmetricPolicy
from threeup_agents.training.rollout_buffer import NONE, ChainBuffer

TEACHER_ENTROPY = 0.1
"""Weight of the entropy bonus while a teacher is imitated. It keeps the probabilities of the
actions that the teacher doesn't take above zero, so that self-play can still try them."""

_LOSSES: Final = ("loss", "policy_gradient_loss", "value_loss", "entropy_loss")


class DivergedError(ValueError):
    """A loss, a parameter or an output of the networks has ceased to be a finite number."""


class SelfPlayPPO(MaskablePPO):
    """MaskablePPO whose rollouts are `Games`: schedules, update, logger, callbacks are theirs.

    SB3's own `save` and `load` keep networks, counters and `rng`, but no games: `load(path,
    env=games)` goes on with new ones. `checkpoint` keeps
    everything, without pickles.

    Args:
        env: the games to learn from.
        hidden: hidden layers of both networks.
        levels: thresholds of the actor's input, see `AsymmetricPolicy`.
        rng: draws actions and minibatches.
        opponents: specs for `threeup_agents.make`, who sit at the opponents' seats.
        teacher: spec of the agent that plays the policy's seats at first.
        teacher_decisions: how many; policy and critic learn to imitate and to judge it.
        policy: class of the networks.
        kwargs: MaskablePPO's; the device is the CPU.

    Raises:
        ValueError: no games, or another device.
    """

    env: Games
    policy: AsymmetricPolicy
    rollout_buffer: ChainBuffer

    def __init__(
        self,
        env: Games,
        hidden: tuple[int, ...] = (128, 128),
        levels: int = 0,
        rng: np.random.Generator | None = None,
        opponents: Sequence[str] = (),
        teacher: str | None = None,
        teacher_decisions: int = 0,
        policy: type[AsymmetricPolicy] = AsymmetricPolicy,
        **kwargs: Any,
    ) -> None:
        if env is None:  # SB3's `load` without one
            raise ValueError("env: expected the games to learn from; got None")
        if (device := str(kwargs.pop("device", "cpu"))) not in ("auto", "cpu"):
            raise ValueError(f"device: expected 'cpu', the one for small networks; got {device!r}")
        self.rng = np.random.default_rng() if rng is None else rng
        self.teacher = teacher
        self.teacher_decisions = teacher_decisions
        self.is_taught = False  # whether the teacher played the last rollout
        self.opponents = tuple(opponents)
        self.pool: list[Policy] = []
        self.num_snapshots = 0
        self.carried: dict[str, npt.NDArray[Any]] | None = None
        super().__init__(
            policy,
            env,
            policy_kwargs={
                "num_seen": env.batch.observations.shape[1],
                "bounds": env.bounds,
                "hidden": hidden,
                "levels": levels,
            },
            rollout_buffer_class=ChainBuffer,
            rollout_buffer_kwargs={"num_players": env.batch.num_players},
            device="cpu",
            **kwargs,
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        self.rollout_buffer.rng = self.rng
        self._seat_opponents()

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        reset_num_timesteps: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if reset_num_timesteps or self._last_obs is None:  # then SB3 deals anew
            self.carried = None
            self.rollout_buffer.last[:] = NONE
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args, **kwargs)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "carried"]  # it belongs to the games

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
        env.play_forced(buffer)

        teacher = None
        if self.teacher is not None and self.num_timesteps < self.teacher_decisions:
            teacher = specs.make(self.teacher, self._seeds(1)[0])
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
        named = [specs.make(spec, s) for spec, s in zip(self.opponents, seeds, strict=False)]
        snapshots = [
            PolicyPlayer(policy, "snapshot", s)
            for policy, s in zip(self.pool, seeds[len(named) :], strict=True)
        ]
        self.env.opponents = [*named, *snapshots]

    def _seeds(self, count: int) -> list[int]:
        """Seeds for the teacher, and for the opponents after it, at this time."""
        entropy = [self.seed or 0, self.num_timesteps]
        return [int(seed) for seed in np.random.SeedSequence(entropy).generate_state(count)]

    def train(self) -> None:
        """Update the networks: from the teacher if it played, else from how it went.

        A lone decision is left out: MaskablePPO divides by the deviation of its advantages.

        Raises:
            DivergedError: the networks have left the finite numbers.
        """
        if self.rollout_buffer.num_trained < 2:
            return
        if self.is_taught:
            self._imitate()
        else:
            with np.errstate(all="ignore"):  # what isn't finite is an error below, not a warning
                self._improve()
            for name in _LOSSES:
                self.check_finite(f"train/{name}", self.logger.name_to_value[f"train/{name}"])
        self.check_networks()

    def _improve(self) -> None:
        """Update the networks as MaskablePPO does."""
        super().train()

    def check_networks(self) -> None:
        """Check that all parameters and the optimizer's numbers are finite.

        Raises:
            DivergedError: one isn't; says which.
        """
        for name, parameter in self.policy.named_parameters():
            self.check_finite(name, parameter)
        for state in self.policy.optimizer.state.values():
            for name, value in state.items():
                self.check_finite(f"the optimizer's {name}", value)

    def check_finite(self, name: str, values: Any) -> None:
        """Check numbers of any shape.

        Raises:
            DivergedError: one isn't finite.
        """
        if not torch.isfinite(torch.as_tensor(values)).all():
            raise DivergedError(
                f"training diverged at {self.num_timesteps:,} decisions: expected finite numbers "
                f"in {name}"
            )

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
                self._descend(loss)
                agreement.append(log_probs.detach().exp().mean().item())
        self._n_updates += self.n_epochs
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/teacher_agreement", float(np.mean(agreement)))

    def _descend(self, loss: Any) -> None:
        """Take one step of the optimizer.

        Raises:
            DivergedError: the loss isn't finite.
        """
        self.check_finite("the loss", loss)
        self.policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()

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
        self.check_finite("the actor's logits", logits)
        self.check_finite("the critic's values", values)
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
        self, num_players: Sequence[int], temperature: float = TEMPERATURE, **facts: Any
    ) -> Policy:
        """The current policy as NumPy runs it.

        Args:
            num_players: table sizes that it plays.
            temperature: of its sampled play.
            facts: of its training, JSON.
        """
        layers, levels = self.policy.actor_weights(), self.policy.levels
        return Policy(layers, tuple(num_players), facts, temperature, levels)


def policy_of(spec: str) -> Policy:
    """The policy that an agent's spec names: a run's folder or a policy file.

    Raises:
        ValueError: an agent without a policy, or no such policy.
    """
    agent = specs.make(spec)
    if not isinstance(agent, PolicyPlayer):
        raise ValueError(f"agent {spec!r}: expected a policy, such as a run's folder")
    return agent.policy
