"""Learning by looking ahead: what a teacher does, bettered once the draw pile is empty.

While there is a draw pile, a page of rules (`players.careful`) is hard to beat: the policy
imitates it, or another teacher. Once it is empty, some decisions are worth a tenth of a game
and more. There the policy plays, and learns what each legal action gains over the teacher's:
all are played on for a few turns in the same few worlds, drawn from what the seat knows, and
then judged by `search.value`. It is what a search does, without its time at play: the luck of
so few worlds evens out over the decisions that are alike.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from threeup_agents import specs
from threeup_agents.search.value import ValueNetwork, horizon, play_on, shipped, worth
from threeup_agents.training.games import Games
from threeup_agents.training.masked_softmax import choose, log_probs_and_entropies
from threeup_agents.training.rollout_buffer import ChainBuffer
from threeup_agents.training.selfplay import SelfPlayPPO
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_DECK_SIZE
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import deal_unseen, write_seen, write_unseen
from threeup_env.engine.rng import AGENTS, streams
from threeup_env.engine.rules import apply_action, write_legal_actions
from threeup_env.engine.state import STATE_DTYPE

NUM_WORLDS: Final = 8
"""Worlds drawn for a decision."""
MARGIN: Final = 0.02
"""Win share that an action must gain over the teacher's to be preferred to it: what looks a
little better is often only how few worlds fell out."""
LOGITS_PER_WIN: Final = 100.0
"""What logits tend to: an action that gains 0.02 more is 7 times as likely."""
GAIN_WEIGHT: Final = 30.0
"""Weight of an expected gain in the loss; a decision of the teacher's, its cross-entropy, has 1."""
TEACHER_SHARE: Final = 0.1
"""Share of the teacher's decisions that are kept to learn from; they are far more."""


class Lessons(NamedTuple):
    """Decisions to learn from, N of them."""

    observations: npt.NDArray[np.int8]
    """`[N, F]`."""
    action_masks: npt.NDArray[np.bool_]
    """`[N, A]`."""
    taught: npt.NDArray[np.int64]
    """What the teacher does; `[N]`."""
    gains: npt.NDArray[np.float32]
    """How much more win share than the teacher's each legal action has; 0 elsewhere and where
    not looked ahead; `[N, A]`."""
    ahead: npt.NDArray[np.bool_]
    """Where `gains` were looked up; elsewhere the teacher is imitated; `[N]`."""


class LookAhead(SelfPlayPPO):
    """Games and bookkeeping of `SelfPlayPPO`, with another way to learn; `teacher` is needed.

    The critic isn't trained.
    """

    def collect_rollouts(  # type: ignore[override]
        self,
        env: Games,
        callback: Any,
        rollout_buffer: ChainBuffer,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play `n_rollout_steps` decisions of every game and keep lessons of them."""
        rollout_buffer.reset()
        callback.on_rollout_start()
        self._seat_opponents()
        env.play_forced(rollout_buffer)
        assert self.teacher is not None
        seeds = self._seeds(2)
        teacher = specs.make(self.teacher, seeds[0])
        stream = streams(seeds[1], 1, AGENTS)
        network = shipped(env.batch.num_players)
        kept: list[Lessons] = []

        def decide(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            states = env.batch.states[rows]
            seen, masks = env.batch.observations[rows], env.batch.action_masks[rows]
            taught = teacher.act(seen, masks)
            ahead = (states["laying"] == 0) & (states["draw_pile_size"] == 0)
            actions: npt.NDArray[np.int64] = taught.copy()
            actions[ahead] = self._draw(seen[ahead], masks[ahead])
            keep = ahead | (self.rng.random(len(rows)) < TEACHER_SHARE)
            gains = np.zeros((len(rows), NUM_ACTIONS), np.float32)
            write_gains(seen, taught, ahead, NUM_WORLDS, network, stream, gains)
            lessons = (seen, masks, taught, gains, ahead)
            kept.append(Lessons(*(array[keep] for array in lessons)))
            self.num_timesteps += len(rows)
            return actions

        for _ in range(n_rollout_steps):
            env.play(decide, rollout_buffer)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
        self._lessons = Lessons(*(np.concatenate(arrays) for arrays in zip(*kept, strict=True)))
        callback.on_rollout_end()
        return True

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_lessons"]

    def _draw(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Draw actions from the policy; int64 `[K]`."""
        actions = np.empty(len(observations), np.int64)
        with torch.no_grad():
            logits = self.policy.logits(torch.from_numpy(observations)).numpy()
        self.check_finite("the actor's logits", logits)
        log_probs = np.empty(len(actions), np.float32)
        choose(logits, action_masks, self.rng.random(len(actions)), actions, log_probs)
        return actions

    def train(self) -> None:
        """Fit the actor to the lessons.

        Raises:
            DivergedError: the networks have left the finite numbers.
        """
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        improvements: list[float] = []  # in win shares, where it looked ahead
        agreements: list[float] = []  # probabilities of the teacher's actions elsewhere
        for observations, action_masks, taught, gains, ahead in self._minibatches():
            logits = self.policy.logits(observations)
            log_probs, entropies = log_probs_and_entropies(logits, action_masks, taught)
            logits = logits.masked_fill(~action_masks, -torch.inf)
            expected = (torch.softmax(logits, dim=1) * beyond_margin(gains, taught)).sum(dim=1)
            worth_it = GAIN_WEIGHT * (expected + entropies / LOGITS_PER_WIN)
            loss: Any = -torch.where(ahead, worth_it, log_probs).mean()
            self.check_finite("the loss", loss)
            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()

            best = logits.argmax(dim=1, keepdim=True)
            improvements += gains.gather(1, best)[ahead].flatten().tolist()
            agreements += log_probs.detach().exp()[~ahead].tolist()
        self.check_networks()
        self._n_updates += self.n_epochs
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if improvements:
            self.logger.record("train/gain_over_teacher", float(np.mean(improvements)))
        if agreements:
            self.logger.record("train/teacher_agreement", float(np.mean(agreements)))

    def _minibatches(self) -> Iterator[tuple[torch.Tensor, ...]]:
        """All lessons, shuffled, once an epoch."""
        size = len(self._lessons.taught)
        for _ in range(self.n_epochs):
            order = self.rng.permutation(size)
            for part in np.array_split(order, max(1, round(size / (self.batch_size or size)))):
                yield tuple(torch.from_numpy(array[part]) for array in self._lessons)


def beyond_margin(gains: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
    """Gains `[N, A]` less `MARGIN`, but for the teacher's own action, int64 `[N]`."""
    return (gains - MARGIN).scatter(1, taught[:, None], 0.0)


@compiled
def write_gains(
    observations: npt.NDArray[np.int8],
    taught: npt.NDArray[np.int64],
    ahead: npt.NDArray[np.bool_],
    num_worlds: int,
    network: ValueNetwork,
    stream: npt.NDArray[np.uint64],
    gains: npt.NDArray[np.float32],
) -> None:
    """Find out what each legal action gains over the teacher's, in worlds drawn for a decision.

    Args:
        observations: of the seats to act; int8 `[K, F]`.
        taught: what the teacher does, legal; int64 `[K]`.
        ahead: which decisions to look ahead in; bool `[K]`.
        num_worlds: worlds drawn for each; all actions are played on in the same ones.
        network: judges how they go on; of this table size.
        stream: draws the worlds; uint64 `[1]`, advanced.
        gains: mean win shares of the seat to act, less those of the teacher's action;
            float32 `[K, A]`, all 0 before; overwritten where `ahead` and legal.
    """
    games = np.zeros(3, STATE_DTYPE)
    cards = np.empty(MAX_DECK_SIZE, np.int8)
    legal = np.empty(NUM_ACTIONS, np.int64)
    scratch = np.empty(NUM_ACTIONS, np.int64)
    for row in range(len(observations)):
        if not ahead[row]:
            continue
        # games: what the seat sees, one world, and the copy that is played on
        write_seen(observations[row], games[0])
        size = write_unseen(observations[row], cards)
        seat = int(games[0].seat)
        count = write_legal_actions(games[0], legal)
        for _ in range(num_worlds):
            games[1] = games[0]
            deal_unseen(games[1], cards, size, stream)
            for i in range(count):
                games[2] = games[1]
                game = games[2]
                choices = horizon(game)
                apply_action(game, legal[i])
                play_on(game, seat, choices, scratch)
                gains[row, legal[i]] += worth(game, seat, network) / num_worlds
        share = gains[row, taught[row]]
        for i in range(count):
            gains[row, legal[i]] -= share
