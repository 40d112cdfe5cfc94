"""Learning by looking ahead: which action gains over `careful`, by the position that it leads to.

Where looking pays (`search.scoring.is_scored`) every legal action is played on for a few turns
in drawn worlds and in the true one, and then judged by `search.value`. A network learns these
gains from the position after the action. It is shown what a look in *other* worlds has found,
as it will be when it plays; in a part of the decisions it isn't, so that it can play without.
The luck of the few worlds evens out over the decisions that are alike. Elsewhere `careful`
plays.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from threeup_agents.players.careful import Careful
from threeup_agents.search.position import GAIN_SCALE, NUM_LOOKED, PositionNetwork, position_size
from threeup_agents.search.positional import MARGIN, PositionPolicy
from threeup_agents.search.scoring import write_inputs, write_lessons, write_scored
from threeup_agents.search.value import ValueNetwork, shipped
from threeup_agents.training.games import Games
from threeup_agents.training.networks import perceptron
from threeup_agents.training.rollout_buffer import ChainBuffer
from threeup_agents.training.selfplay import SelfPlayPPO
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import VARIANT_NAMES
from threeup_env.engine.observation import num_players_of
from threeup_env.engine.rng import AGENTS, streams

NUM_WORLDS: Final = 8
"""Worlds drawn for a decision, for each of its two looks."""
TRUE_SHARE: Final = 0.3
"""Weight of the true world among those that are learnt from."""
UNSEEN_SHARE: Final = 0.35
"""Share of the decisions in which the network isn't shown the look."""
LAST_GAIN: Final = 0.1
"""Scale of the output layer's first weights."""


class Lessons(NamedTuple):
    """Decisions to learn from, N of them, with M actions in all."""

    observations: npt.NDArray[np.int8]
    """`[N, F]`."""
    counts: npt.NDArray[np.int64]
    """Legal actions of each; `[N]`."""
    actions: npt.NDArray[np.int64]
    """One decision's after the other's; `[M]`."""
    looked: npt.NDArray[np.float32]
    """What looking has found about them, see `write_looked`; `[M, NUM_LOOKED]`."""
    gains: npt.NDArray[np.float32]
    """Win share over what `careful` does, in other worlds; `[M]`."""


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

    def collect_rollouts(  # type: ignore[override]
        self,
        env: Games,
        callback: Any,
        rollout_buffer: ChainBuffer,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play until `n_rollout_steps` decisions a game have been kept as lessons."""
        rollout_buffer.reset()
        callback.on_rollout_start()
        self._seat_opponents()
        env.play_forced(rollout_buffer)
        stream = streams(self._seeds(1)[0], 1, AGENTS)
        network = self.policy.network()
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
                    seen[scored], masks[scored], states, stream[0], network
                )
                kept.append(lessons)
                self.num_timesteps += len(states)
            return actions

        wanted = self.num_timesteps + n_rollout_steps * env.num_envs
        while self.num_timesteps < wanted:
            env.play(decide, rollout_buffer)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
        self._lessons = Lessons(*(np.concatenate(arrays) for arrays in zip(*kept, strict=True)))
        callback.on_rollout_end()
        return True

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_lessons"]

    def train(self) -> None:
        """Fit the network to the lessons.

        Raises:
            DivergedError: the network has left the finite numbers.
        """
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        sums = torch.zeros(2, 2)  # squares of what is left and of the gains; looking, not
        for sample in self._minibatches():
            scores = self.policy.scorer(sample.features).flatten() / GAIN_SCALE
            left = within_decision(scores - sample.gains, sample.decisions)
            loss: Any = GAIN_SCALE**2 * (left**2).sum() / (sample.decisions[-1] + 1)
            self._descend(loss)
            whole = within_decision(sample.gains, sample.decisions)
            for row, chosen in enumerate((sample.shown, ~sample.shown)):
                sums[row, 0] += (left.detach()[chosen] ** 2).sum()
                sums[row, 1] += (whole[chosen] ** 2).sum()
        self.check_networks()
        self._n_updates += self.n_epochs
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, (rest, total) in zip(("looking", "net"), sums.tolist(), strict=True):
            if total > 0:
                self.logger.record(f"train/gains_explained_{name}", 1 - rest / total)

    def _minibatches(self) -> Iterator[Sample]:
        """All lessons, shuffled, once an epoch."""
        size = len(self._lessons.counts)
        starts = self._lessons.counts.cumsum() - self._lessons.counts
        for _ in range(self.n_epochs):
            order = self.rng.permutation(size)
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
        shown = (self.rng.random(len(part)) >= UNSEEN_SHARE)[decisions]
        features = np.empty((len(at), position_size(self.policy.num_players)), np.float32)
        seen, actions = lessons.observations[part], lessons.actions[at]

        def work(some: slice) -> None:
            write_inputs(seen, decisions[some], actions[some], features[some])

        in_parts(len(at), work)
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


def in_parts(size: int, work: Callable[[slice], None]) -> None:
    """Do work on rows in as many threads as torch uses; each part begins with an even row.

    Args:
        size: rows.
        work: does those of a slice.
    """
    num_threads = torch.get_num_threads()
    edges = np.linspace(0, size, min(num_threads, max(size, 1)) + 1, dtype=int)
    edges[1:-1] += edges[1:-1] % 2  # so that each row is as even as in one part
    parts = [slice(*pair) for pair in pairwise(edges.tolist())]
    if len(parts) == 1:
        work(parts[0])
    else:
        with ThreadPoolExecutor(num_threads) as pool:
            list(pool.map(work, parts))


def within_decision(values: torch.Tensor, decisions: torch.Tensor) -> torch.Tensor:
    """Values of actions, `[m]`, less the mean of their decision's; `decisions` int64 `[m]`."""
    counts = torch.bincount(decisions)
    sums = torch.zeros(len(counts), dtype=values.dtype).index_add(0, decisions, values)
    return values - (sums / counts)[decisions]


def learn_from(
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
    states: npt.NDArray[np.void],
    seed: np.uint64,
    network: PositionNetwork,
) -> tuple[Lessons, npt.NDArray[np.int64]]:
    """Lessons of some decisions, and what the network does there; on as many threads as torch.

    Args:
        observations: of the seats to act; int8 `[K, F]`.
        action_masks: bool `[K, A]`.
        states: the true games, to learn from alone; `STATE_DTYPE` `[K]`.
        seed: starts the streams of the worlds, each row's on its own.
        network: chooses.

    Returns:
        The lessons, and actions, int64 `[K]`.
    """
    size = len(observations)
    looked = np.zeros((size, NUM_ACTIONS, NUM_LOOKED), np.float32)
    gains = np.zeros((size, NUM_ACTIONS), np.float32)
    actions = np.empty(size, np.int64)
    values: ValueNetwork = shipped(num_players_of(observations))

    def work(part: slice) -> None:
        write_lessons(
            observations[part],
            action_masks[part],
            states[part],
            seed,
            NUM_WORLDS,
            MARGIN,
            TRUE_SHARE,
            looked[part],
            gains[part],
            actions[part],
            values,
            network,
        )

    in_parts(size, work)
    rows, legal = np.nonzero(action_masks)
    counts = action_masks.sum(axis=1)
    lessons = Lessons(observations, counts, legal, looked[rows, legal], gains[rows, legal])
    return lessons, actions
