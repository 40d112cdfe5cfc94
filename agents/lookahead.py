"""Learning by looking ahead: what a teacher does, bettered where the cards are nearly known.

While there is a draw pile, a page of rules (`agents.careful`) is hard to beat: the policy imitates
it, or another teacher. Once it is empty, many decisions are worth a tenth of a game. There the
policy plays, and learns what each legal action is worth when it is played on for a few turns with
the true cards and then judged by `agents.value`: hidden cards even out over many games, as in a
search over many drawn worlds. Only this training sees the true cards; the policy never does.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

import agents
from agents.masked import choose, log_probs_and_entropies
from agents.rollout import ChainBuffer
from agents.selfplay import SelfPlayPPO
from agents.training_games import Games
from agents.value import ValueNetwork, horizon, play_on, shipped, worth
from threeup_env.actions import NUM_ACTIONS
from threeup_env.compiled import compiled
from threeup_env.rules import apply_action, write_legal_actions
from threeup_env.state import STATE_DTYPE

LOGITS_PER_WIN: Final = 30.0
"""Logits are values times this: an action worth 0.1 of a game more is 20 times as likely."""
VALUE_WEIGHT: Final = 10.0
"""Weight of the squared error of values in the loss."""
TEACHER_WEIGHT: Final = 0.2
"""Weight of the cross-entropy with the teacher's actions."""
TEACHER_SHARE: Final = 0.07
"""Share of the teacher's decisions that are kept to learn from; they are far more."""


class Lessons(NamedTuple):
    """Decisions to learn from, N of them."""

    observations: npt.NDArray[np.int8]
    """`[N, F]`."""
    action_masks: npt.NDArray[np.bool_]
    """`[N, A]`."""
    taught: npt.NDArray[np.int64]
    """What the teacher does; `[N]`."""
    values: npt.NDArray[np.float32]
    """Win shares of the legal actions, less their mean; 0 elsewhere and where not looked ahead;
    `[N, A]`."""
    ahead: npt.NDArray[np.bool_]
    """Where `values` were looked up; elsewhere the teacher is imitated; `[N]`."""


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
        teacher = agents.make(self.teacher, self._seeds(1)[0])
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
            values = np.zeros((np.count_nonzero(keep), NUM_ACTIONS), np.float32)
            write_action_values(states[keep], ahead[keep], network, values)
            kept.append(Lessons(seen[keep], masks[keep], taught[keep], values, ahead[keep]))
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
        log_probs = np.empty(len(actions), np.float32)
        choose(logits, action_masks, self.rng.random(len(actions)), actions, log_probs)
        return actions

    def train(self) -> None:
        """Fit the actor to the lessons."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        gains: list[float] = []  # in win shares, where it looked ahead
        agreements: list[float] = []  # probabilities of the teacher's actions elsewhere
        for observations, action_masks, taught, values, ahead in self._minibatches():
            logits = self.policy.logits(observations)
            errors = (relative(logits[ahead], action_masks[ahead]) - values[ahead]).square()
            other = ~ahead
            log_probs, _ = log_probs_and_entropies(
                logits[other], action_masks[other], taught[other]
            )
            loss: Any = VALUE_WEIGHT * errors.sum() / max(int(ahead.sum()), 1)
            loss -= TEACHER_WEIGHT * log_probs.sum() / max(int(other.sum()), 1)
            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()

            best = logits.masked_fill(~action_masks, -torch.inf).argmax(dim=1)
            by_action = torch.stack([taught, best], dim=1)
            gains += values.gather(1, by_action).diff(dim=1)[ahead].flatten().tolist()
            agreements += log_probs.detach().exp().tolist()
        self._n_updates += self.n_epochs
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if gains:
            self.logger.record("train/gain_over_teacher", float(np.mean(gains)))
        if agreements:
            self.logger.record("train/teacher_agreement", float(np.mean(agreements)))

    def _minibatches(self) -> Iterator[tuple[torch.Tensor, ...]]:
        """All lessons, shuffled, once an epoch."""
        size = len(self._lessons.taught)
        for _ in range(self.n_epochs):
            order = self.rng.permutation(size)
            for part in np.array_split(order, max(1, round(size / (self.batch_size or size)))):
                yield tuple(torch.from_numpy(array[part]) for array in self._lessons)


def relative(logits: torch.Tensor, action_masks: torch.Tensor) -> torch.Tensor:
    """Win shares that logits stand for, less the legal actions' mean; 0 where illegal; `[N, A]`."""
    legal = logits.masked_fill(~action_masks, 0.0) / LOGITS_PER_WIN
    mean = legal.sum(dim=1, keepdim=True) / action_masks.sum(dim=1, keepdim=True)
    return (legal - mean).masked_fill(~action_masks, 0.0)


@compiled
def write_action_values(
    states: npt.NDArray[np.void],
    ahead: npt.NDArray[np.bool_],
    network: ValueNetwork,
    values: npt.NDArray[np.float32],
) -> None:
    """Value every legal action by what follows it with the true cards.

    Args:
        states: `STATE_DTYPE` `[K]`; read only.
        ahead: which of them; bool `[K]`.
        network: judges how it goes on; of this table size.
        values: win shares of the seat to act, less their mean; float32 `[K, A]`, all 0 before;
            overwritten where `ahead` and legal.
    """
    game = np.zeros(1, STATE_DTYPE)
    legal = np.empty(NUM_ACTIONS, np.int64)
    scratch = np.empty(NUM_ACTIONS, np.int64)
    for row in range(len(states)):
        if not ahead[row]:
            continue
        seat = int(states[row].seat)
        count = write_legal_actions(states[row], legal)
        mean = 0.0
        for i in range(count):
            game[0] = states[row]
            choices = horizon(game[0])
            apply_action(game[0], legal[i])
            play_on(game[0], seat, choices, scratch)
            value = worth(game[0], seat, network)
            values[row, legal[i]] = value
            mean += value / count
        for i in range(count):
            values[row, legal[i]] -= mean
