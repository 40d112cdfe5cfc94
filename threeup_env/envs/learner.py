"""The learner's side of many games: from one of its decisions to its next one.

The only place that plays the other seats and hands the learner its reward. `vector_env`
and `gym_env` dress it up for Gymnasium.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.agent import Agent
from threeup_env.engine.actions import NUM_ACTIONS, PICK_UP, check_actions
from threeup_env.engine.arguments import check_count, check_int64
from threeup_env.engine.batch import Batch
from threeup_env.engine.compiled import compiled
from threeup_env.engine.events import event_rows
from threeup_env.engine.lockstep import write_observations
from threeup_env.engine.rng import LEARNER, random_below, streams
from threeup_env.envs.spaces import check_cut_off

ILLEGAL_ACTION_MODES: Final = ("raise", "terminate")


Opponents = Agent | Sequence[Agent] | None
"""One for all other seats, or one a seat, clockwise from the learner; None: uniformly random."""


class LearnerGames:
    """Many games, each seen by one learner and played up to its decisions.

    Rows are out of step: while one learner's seat waits for two opponents, another's has a
    Clear +1 to pay. All seats that wait for the same opponent act in one call.

    The reward of a step is all that the learner has been given since its last decision,
    whoever ended the game. A game that ends before its learner has decided anything (a
    small `max_steps`, or `skip_forced` and nothing to choose) is an episode of one step
    all the same: its row shows the end of the game and allows `pick up` alone, which
    changes nothing and brings the reward.

    Args:
        num_games: games played at once, B.
        num_players: seats at each table.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off if it doesn't win it (R21).
        opponents: see `Opponents`. Agents passed in keep their own random streams; the
            default's start with the seed of `reset`, one a row.
        seat: the learner's; None draws it afresh for each game.
        skip_forced: play the learner's moves that are the only legal one.
        illegal_action: `"raise"` an IllegalActionError, with nothing changed, or
            `"terminate"` the learner's game with reward -1.
        cut_off: what a game that is cut off counts as, a `"truncation"` or a `"termination"`;
            its reward is the real outcome (R21) either way.
        history: how many of the latest events `last_events` gives, K; 0 keeps none.

    Attributes:
        seats: the learner's; int64 `[B]`.
        observations: what the learner knows; int8 `[B, F]`.
        action_masks: True where legal, all False once the game has ended; bool `[B, A]`.
        rewards: float32 `[B]`.
        terminations: the game has been won, or ended by an illegal action; bool `[B]`.
        truncations: the game has been cut off, if `cut_off` counts that so; bool `[B]`.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int,
        variant: str,
        max_steps: int,
        opponents: Opponents,
        seat: int | None,
        skip_forced: bool,
        illegal_action: str,
        cut_off: str = "truncation",
        history: int = 0,
    ) -> None:
        check_cut_off(cut_off)
        if illegal_action not in ILLEGAL_ACTION_MODES:
            modes = " or ".join(map(repr, ILLEGAL_ACTION_MODES))
            raise ValueError(f"illegal_action: expected {modes}; got {illegal_action!r}")
        self.batch = Batch(
            *(num_games, num_players, variant, max_steps), autoreset=False, history=bool(history)
        )
        check_count("history", history, max_steps, least=0)
        self.history = history
        if seat is not None and seat not in range(num_players):
            raise ValueError(f"seat: expected None or 0..{num_players - 1}; got {seat!r}")
        self.seat = seat
        self.skip_forced = skip_forced
        self.illegal_action = illegal_action
        self.cut_off = cut_off
        self.has_games = False
        self.seats = np.full(num_games, 0 if seat is None else seat, np.int64)
        self.observations = np.zeros_like(self.batch.observations)
        self.action_masks = np.zeros_like(self.batch.action_masks)
        self.rewards = np.zeros(num_games, np.float32)
        self.terminations = np.zeros(num_games, np.bool_)
        self.truncations = np.zeros(num_games, np.bool_)
        self._rows = np.arange(num_games)
        self._streams = np.zeros(num_games, np.uint64)
        self._undecided = np.zeros(num_games, np.bool_)  # ended before the learner's turn
        self._told = np.zeros(num_games, np.int64)  # events before the learner's last decision
        self._opponents, self._opponent_at = _seat_opponents(opponents, num_players)

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """The games that are over; bool `[B]`."""
        return self.terminations | self.truncations

    def reset(
        self,
        seed: int | None = None,
        decks: npt.ArrayLike | None = None,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Deal, as `Batch.reset` does, and play up to the learner's first decision."""
        self.batch.reset(seed=seed, decks=decks, rows=rows)
        self.has_games = True
        rows = self._rows if rows is None else rows
        if seed is not None:
            self._streams[rows] = streams(seed, len(self._rows), LEARNER)[rows]
        if self.seat is None:
            seats = np.ones((len(rows), self.batch.num_players), np.bool_)
            self.seats[rows] = self._draw(rows, seats)
        self._forget(rows)
        self._told[rows] = 0
        self._run(rows)
        self._undecided[rows] = self.ended[rows]
        self._show()

    def step(self, actions: npt.ArrayLike, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Take the learner's action in every game, or in some, and play up to its next decision.

        Args:
            actions: one legal action a row; int `[B]`.
            rows: the games to step, ascending; int64 `[K]`. The others stay as they are,
                their rewards and ends too, and their actions are ignored.

        Raises:
            IllegalActionError: an action that its mask forbids, if `illegal_action` is
                `"raise"`; nothing has changed.
            RuntimeError: no game has been dealt.
            ValueError: wrong shape or dtype.
        """
        if not self.has_games:
            raise RuntimeError("call reset() before step()")
        ids = check_int64("actions", actions, self._rows.shape)
        some = slice(None) if rows is None else rows  # a slice copies nothing
        stepped = np.zeros_like(self._undecided)
        stepped[some] = True
        if self.illegal_action == "raise":
            check_actions(ids[some], self._rows[some], self.seats[some], self.action_masks[some])
            illegal = np.zeros_like(self._undecided)
        else:
            known = (ids >= 0) & (ids < NUM_ACTIONS)
            illegal = ~(known & self.action_masks[self._rows, np.where(known, ids, 0)]) & stepped
        self._forget(np.flatnonzero(stepped & ~self._undecided | illegal))
        self.rewards[illegal] = -1
        self.terminations[illegal] = True
        playing = np.flatnonzero(stepped & ~(self._undecided | illegal))
        if self.batch.log is not None:
            self._told[playing] = self.batch.log.counts[playing]
        self._undecided[stepped] = False
        self._take(playing, ids[playing])
        self._run(playing)
        self._show()

    def last_events(self) -> npt.NDArray[np.int8]:
        """The last K events of each game, as its learner may know them; see `EventLog.last`."""
        log = self.batch.log
        if log is None:
            raise RuntimeError("last_events() needs history=K")
        return log.last(self.seats, self.history)

    def new_events(self, row: int) -> npt.NDArray[np.int8]:
        """A game's events since the learner's last decision, its own action first.

        Before its first decision: since the deal. Rows are as in `last_events`; int8 `[T, 6]`.
        """
        return event_rows(self.batch.events(row, int(self.seats[row]))[self._told[row] :])

    def _forget(self, rows: npt.NDArray[np.int64]) -> None:
        self.rewards[rows] = 0
        self.terminations[rows] = False
        self.truncations[rows] = False

    def _run(self, rows: npt.NDArray[np.int64]) -> None:
        """Play these rows, together, until each has ended or waits for its learner."""
        while True:
            others = self.batch.seats[rows] != self.seats[rows]
            if self.skip_forced:
                others |= self.batch.action_masks[rows].sum(axis=1) == 1
            rows = rows[others & ~self.ended[rows]]
            if not len(rows):
                return
            self._take(rows, self._choose(rows))

    def _take(self, rows: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]) -> None:
        self.batch.step(actions, rows=rows)
        # Rows that were not stepped show no rewards and no ends.
        self.rewards += self.batch.rewards[self._rows, self.seats]
        self.terminations |= self.batch.terminations
        ends = self.terminations if self.cut_off == "termination" else self.truncations
        ends |= self.batch.truncations

    def _choose(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Act for the seats to act: the opponents', and the learner's where it is forced."""
        masks = self.batch.action_masks[rows]
        if not self._opponents:
            return self._draw(rows, masks)
        actions = np.empty(len(rows), np.int64)
        positions = (self.batch.seats[rows] - self.seats[rows]) % self.batch.num_players
        numbers = self._opponent_at[positions]
        forced = np.flatnonzero(numbers < 0)
        actions[forced] = masks[forced].argmax(axis=1)
        for number, opponent in enumerate(self._opponents):
            waiting = np.flatnonzero(numbers == number)
            if len(waiting):
                chosen = opponent.act(self.batch.observations[rows[waiting]], masks[waiting])
                actions[waiting] = check_int64(f"opponent {opponent!r}", chosen, waiting.shape)
        return actions

    def _draw(
        self, rows: npt.NDArray[np.int64], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        drawn = np.empty(len(rows), np.int64)
        draw_uniformly(self._streams, rows, masks, drawn)
        return drawn

    def _show(self) -> None:
        """Write the learner's observations and masks."""
        self.observations[:] = self.batch.observations
        self.action_masks[:] = self.batch.action_masks
        ended = np.flatnonzero(self.ended)
        if len(ended):
            vectors = np.empty((len(ended), self.observations.shape[1]), np.int8)
            write_observations(self.batch.states[ended], self.seats[ended], vectors)
            self.observations[ended] = vectors
            self.action_masks[ended] = False
            self.action_masks[self._undecided, PICK_UP] = True


def _seat_opponents(
    opponents: Opponents, num_players: int
) -> tuple[list[Agent], npt.NDArray[np.int64]]:
    """List the different opponents, and by position from the learner's who sits there.

    Returns:
        The opponents, and int64 `[S]` of indices into them, -1 for the learner.
    """
    positions = np.full(num_players, -1)
    if opponents is None:
        return [], positions
    if isinstance(opponents, str) or not isinstance(opponents, Sequence):
        _check_opponent(opponents)
        opponents = [opponents] * (num_players - 1)
    if len(opponents) != num_players - 1:
        raise ValueError(
            f"opponents: expected {num_players - 1}, one for each other seat; got {len(opponents)}"
        )
    for opponent in opponents:
        _check_opponent(opponent)
    different: list[Agent] = []
    for position, opponent in enumerate(opponents, start=1):
        same = [i for i, known in enumerate(different) if known is opponent]
        if not same:
            different.append(opponent)
        positions[position] = same[0] if same else len(different) - 1
    return different, positions


def _check_opponent(opponent: object) -> None:
    if isinstance(opponent, type) or not callable(getattr(opponent, "act", None)):
        raise TypeError(
            "opponents: expected objects with a method act, e.g. threeup_agents.make('greedy'); "
            f"got {opponent!r}"
        )


@compiled
def draw_uniformly(
    streams: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
    masks: npt.NDArray[np.bool_],
    drawn: npt.NDArray[np.int64],
) -> None:
    """Draw one of the True columns a row, from the row's own stream.

    Args:
        streams: uint64 `[B]`; those of `rows` are advanced, unless there is no choice.
        rows: int64 `[K]`.
        masks: bool `[K, N]`, at least one True a row; read only.
        drawn: int64 `[K]`; overwritten.
    """
    stream = np.empty(1, np.uint64)
    for i in range(len(rows)):
        count = 0
        for column in range(masks.shape[1]):
            count += masks[i, column]
        left = 0
        if count > 1:
            stream[0] = streams[rows[i]]
            left = random_below(stream, count)
            streams[rows[i]] = stream[0]
        for column in range(masks.shape[1]):
            if masks[i, column]:
                if left == 0:
                    drawn[i] = column
                    break
                left -= 1
