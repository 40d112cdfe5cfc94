"""Learning by looking ahead: which action gains over `careful`, by the position that it leads to.

Where looking pays (`search.scoring.is_scored`) every legal action is played on for a few turns
in drawn worlds and in the true one, and then judged by `search.value`. A network learns these
gains from the position after the action. It is shown what a look in *other* worlds has found,
as it will be when it plays; in a part of the decisions it isn't, so that it can play without.
The luck of the few worlds evens out over the decisions that are alike. Elsewhere `careful`
plays.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from threeup_agents.players.careful import Careful
from threeup_agents.search.position import GAIN_SCALE, NUM_LOOKED, PositionNetwork, position_size
from threeup_agents.search.positional import PositionPolicy
from threeup_agents.search.scoring import write_inputs, write_scored
from threeup_agents.training.games import Games
from threeup_agents.training.lessons import Lessons, in_parts, learn_from
from threeup_agents.training.networks import perceptron
from threeup_agents.training.rollout_buffer import ChainBuffer
from threeup_agents.training.selfplay import SelfPlayPPO
from threeup_env.engine.cards import VARIANT_NAMES
from threeup_env.engine.observation import num_players_of
from threeup_env.engine.rng import AGENTS, streams

UNSEEN_SHARE: Final = 0.35
"""Share of the decisions in which the network isn't shown the look."""
MINIBATCHES: Final = 4
"""In a part of a rollout; one part is learnt from while the next is collected."""
LAST_GAIN: Final = 0.1
"""Scale of the output layer's first weights."""


class Sample(NamedTuple):
    """A minibatch: some decisions, with m actions in all."""

    features: torch.Tensor
    """`[m, P]`."""
    decisions: torch.Tensor
    """Whose action it is, from 0 on; int64 `[m]`."""
    gains: torch.Tensor
    """`[m]`."""
    shown: torch.Tensor
    """Whether the network is shown the look; bool `[m]`."""


class PositionScorer(MaskableActorCriticPolicy):
    """The network in training; SB3 keeps it and its optimizer, and asks it for nothing.

    Args:
        observation_space: SB3's.
        action_space: SB3's.
        lr_schedule: learning rate by progress remaining.
        num_seen: features of the observation, F.
        bounds: not used: the features are scaled.
        hidden: sizes of the two hidden layers.
        levels: not used: the features are thermometers.
        kwargs: SB3's own.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        num_seen: int,
        bounds: npt.NDArray[np.int8],
        hidden: tuple[int, ...] = (256, 64),
        levels: int = 0,
        **kwargs: Any,
    ) -> None:
        self.num_players = num_players_of(np.empty(num_seen, np.int8))
        self.hidden = hidden
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        self.scorer = perceptron([position_size(self.num_players), *self.hidden, 1], LAST_GAIN)
        self.optimizer = self.optimizer_class(
            self.parameters(),
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )

    def network(self) -> PositionNetwork:
        """A copy that compiled code runs."""
        layers = [layer for layer in self.scorer if isinstance(layer, nn.Linear)]
        weights = [layer.weight.detach().numpy() for layer in layers]
        biases = [layer.bias.detach().numpy() for layer in layers]
        # The last bias is the same for all actions: it decides nothing.
        arrays = (weights[0].T, biases[0], weights[1].T, biases[1], weights[2][0])
        return PositionNetwork(*(np.array(array, np.float32, order="C") for array in arrays))


class LookAhead(SelfPlayPPO):
    """Games and bookkeeping of `SelfPlayPPO`, with another network and another way to learn.

    A decision here is one that the network decides, and learns from.
    """

    policy: PositionScorer  # type: ignore[assignment]

    def __init__(self, env: Games, *args: Any, **kwargs: Any) -> None:
        super().__init__(env, *args, **(kwargs | {"policy": PositionScorer}))
        self._shuffler = self.rng
        self._squares = torch.zeros(2, 2)

    def collect_rollouts(  # type: ignore[override]
        self,
        env: Games,
        callback: Any,
        rollout_buffer: ChainBuffer,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play until `n_rollout_steps` decisions a game have been kept as lessons.

        One part of them is learnt from while the next is collected, by the network as it was
        before; `train` learns from the last. So the number of threads decides nothing here.

        Raises:
            DivergedError: the network has left the finite numbers.
        """
        rollout_buffer.reset()
        callback.on_rollout_start()
        self._seat_opponents()
        env.play_forced(rollout_buffer)
        self._begin_update()
        network, stream = self.policy.network(), streams(self._seeds(1)[0], 1, AGENTS)
        end = self.num_timesteps + n_rollout_steps * env.num_envs
        part = MINIBATCHES * (self.batch_size or end)
        learning: Future[None] | None = None
        num_threads = torch.get_num_threads()
        with threads_of_torch(max(1, num_threads // 2)), ThreadPoolExecutor(1) as pool:
            while (left := end - self.num_timesteps) > 0:
                stop = end if left < 1.5 * part else self.num_timesteps + part
                lessons = self._collect(
                    env, callback, rollout_buffer, stop, network, stream, num_threads
                )
                if learning is not None:
                    learning.result()
                if lessons is None:
                    return False
                self._lessons = lessons
                if self.num_timesteps < end:
                    learning = pool.submit(self._learn)
                    if num_threads == 1:
                        wait([learning])
        callback.on_rollout_end()
        return True

    def _collect(
        self,
        env: Games,
        callback: Any,
        rollout_buffer: ChainBuffer,
        stop: int,
        network: PositionNetwork,
        stream: npt.NDArray[np.uint64],
        num_threads: int,
    ) -> Lessons | None:
        """Play until there have been so many decisions; None if the callback stops the run."""
        variant = VARIANT_NAMES.index(env.batch.variant)
        careful = Careful()
        kept: list[Lessons] = []

        def decide(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            seen, masks = env.batch.observations[rows], env.batch.action_masks[rows]
            scored = np.empty(len(rows), np.bool_)
            write_scored(seen, variant, scored)
            actions = np.empty(len(rows), np.int64)
            if not scored.all():
                actions[~scored] = careful.act(seen[~scored], masks[~scored])
            if scored.any():
                stream[0] += np.uint64(1)
                states = env.batch.states[rows[scored]]
                lessons, actions[scored] = learn_from(
                    seen[scored], masks[scored], states, stream[0], network, num_threads
                )
                kept.append(lessons)
                self.num_timesteps += len(states)
            return actions

        while self.num_timesteps < stop:
            env.play(decide, rollout_buffer)
            callback.update_locals(locals())
            if not callback.on_step():
                return None
        return Lessons(*(np.concatenate(arrays) for arrays in zip(*kept, strict=True)))

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_lessons", "_shuffler", "_squares"]

    def _begin_update(self) -> None:
        """Make ready to learn from a rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        # A stream of its own, since games are played meanwhile; it need not be kept.
        self._shuffler = np.random.default_rng([self.seed or 0, self.num_timesteps])
        self._squares = torch.zeros(2, 2)  # what is left of the gains, and they; looking, not

    def train(self) -> None:
        """Learn from the last part of the rollout.

        Raises:
            DivergedError: the network has left the finite numbers.
        """
        self._learn()
        self.check_networks()
        self._n_updates += self.n_epochs
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, (rest, total) in zip(("looking", "net"), self._squares.tolist(), strict=True):
            if total > 0:
                self.logger.record(f"train/gains_explained_{name}", 1 - rest / total)

    def _learn(self) -> None:
        """Fit the network to the lessons.

        Raises:
            DivergedError: the loss isn't finite.
        """
        for sample in self._minibatches():
            scores = self.policy.scorer(sample.features).flatten() / GAIN_SCALE
            left = within_decision(scores - sample.gains, sample.decisions)
            loss: Any = GAIN_SCALE**2 * (left**2).sum() / (sample.decisions[-1] + 1)
            self._descend(loss)
            whole = within_decision(sample.gains, sample.decisions)
            for row, chosen in enumerate((sample.shown, ~sample.shown)):
                self._squares[row, 0] += (left.detach()[chosen] ** 2).sum()
                self._squares[row, 1] += (whole[chosen] ** 2).sum()

    def _minibatches(self) -> Iterator[Sample]:
        """The lessons, shuffled, once an epoch."""
        size = len(self._lessons.counts)
        starts = self._lessons.counts.cumsum() - self._lessons.counts
        for _ in range(self.n_epochs):
            order = self._shuffler.permutation(size)
            for part in np.array_split(order, max(1, round(size / (self.batch_size or size)))):
                yield self._sample(part, starts[part])

    def _sample(self, part: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> Sample:
        """Some lessons as the network takes them.

        Args:
            part: which; int64 `[n]`.
            starts: where the actions of each begin; int64 `[n]`.
        """
        lessons = self._lessons
        counts = lessons.counts[part]
        decisions = np.repeat(np.arange(len(part)), counts)
        within = np.arange(len(decisions)) - np.repeat(counts.cumsum() - counts, counts)
        at = np.repeat(starts, counts) + within
        shown = (self._shuffler.random(len(part)) >= UNSEEN_SHARE)[decisions]
        features = np.empty((len(at), position_size(self.policy.num_players)), np.float32)
        seen, actions = lessons.observations[part], lessons.actions[at]

        def work(some: slice) -> None:
            write_inputs(seen, decisions[some], actions[some], features[some])

        in_parts(len(at), work, torch.get_num_threads())
        features[:, -NUM_LOOKED:] = lessons.looked[at]
        features[~shown, -NUM_LOOKED:-1] = 0.0  # the last one says which is the habit
        arrays = (features, decisions, lessons.gains[at], shown)
        return Sample(*map(torch.from_numpy, arrays))

    def export(  # type: ignore[override]
        self, num_players: Sequence[int], temperature: float = 1.0, **facts: Any
    ) -> PositionPolicy:
        """The current policy as compiled code runs it.

        Args:
            num_players: the table size that it plays, one.
            temperature: not used: it takes the best action.
            facts: of its training, JSON.
        """
        variant = self.env.batch.variant
        return PositionPolicy(self.policy.network(), num_players[0], variant, facts)


@contextmanager
def threads_of_torch(count: int) -> Iterator[None]:
    """For a while torch has so many threads, also in threads that begin meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def within_decision(values: torch.Tensor, decisions: torch.Tensor) -> torch.Tensor:
    """Values of actions, `[m]`, less the mean of their decision's; `decisions` int64 `[m]`."""
    counts = torch.bincount(decisions)
    sums = torch.zeros(len(counts), dtype=values.dtype).index_add(0, decisions, values)
    return values - (sums / counts)[decisions]
