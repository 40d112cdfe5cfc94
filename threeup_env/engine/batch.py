"""Many games in lock-step. One game is a batch of one; every face goes through this."""

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import check_actions
from threeup_env.engine.arguments import (
    as_array,
    check_count,
    check_flag,
    check_index,
    check_int64,
    check_rows,
)
from threeup_env.engine.cards import VARIANT_NAMES, check_decks, check_variant
from threeup_env.engine.checks import check_states
from threeup_env.engine.events import EventLog
from threeup_env.engine.lockstep import (
    DEAL,
    KEEP,
    SHOWN,
    all_legal,
    deal_given,
    new_shown,
    run_games,
    write_observations,
)
from threeup_env.engine.rng import streams
from threeup_env.engine.state import EMPTY, STATE_DTYPE, Record

MAX_STEPS_LIMIT: Final = int(np.iinfo(np.int32).max)
ROWS_PER_THREAD: Final = 512
"""The fewest rows that are worth a thread of their own."""


class Batch:
    """Many games of 3UP 3DOWN, stepped together.

    Row i is game i. What happens in it depends on its stream and its actions alone:
    not on the number of games or on the other rows. All arrays are read only, and the next
    step overwrites them: copy what you keep.

    Args:
        num_games: games played at once, B.
        num_players: seats at each table, S.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off if it doesn't win it (R21).
        seed: starts one stream of shuffles a game.
        autoreset: deal a finished row anew at once. Then, for that step, `rewards`,
            `terminations`, `truncations`, `cards_left` and `lengths` are the finished game's;
            `seats`, `observations`, `action_masks` and `states` are the new one's. Without
            it a finished row keeps its last state, has an empty mask, and its action is
            ignored.
        num_threads: threads that large batches are stepped on; None means one. The games
            are the same on any number.
        history: keep what everybody saw for `events`.

    Attributes:
        seats: the seat to act; int64 `[B]`.
        observations: what that seat knows; int8 `[B, F]`.
        action_masks: True where legal; bool `[B, A]`.
        rewards: all zero until a game ends, then 1 for the winner and -1/(S-1) for all others
            (R20, R21); float32 `[B, S]`.
        terminations: the game was won by this step; bool `[B]`.
        truncations: the game was cut off by this step; bool `[B]`.
        cards_left: cards that each seat has still to shed; int8 `[B, S]`.
        lengths: actions taken in the game; int32 `[B]`.
        states: the records; `STATE_DTYPE` `[B]`. Not for agents.

    Raises:
        ValueError: a bad argument; says which values would have been right.

    Example:
        >>> batch = Batch(num_games=2, seed=1)
        >>> batch.reset()
        >>> batch.step(batch.action_masks.argmax(axis=1))
        >>> batch.seats
        array([0, 0])
    """

    def __init__(
        self,
        num_games: int,
        num_players: int = 2,
        variant: str = "standard",
        max_steps: int = 1000,
        seed: int = 0,
        autoreset: bool = True,
        num_threads: int | None = None,
        history: bool = False,
    ) -> None:
        check_variant(variant, num_players)
        check_count("num_games", num_games)
        check_count("max_steps", max_steps, MAX_STEPS_LIMIT)
        num_threads = 1 if num_threads is None else num_threads
        check_count("num_threads", num_threads)
        check_flag("autoreset", autoreset)
        check_flag("history", history)
        self.num_games = num_games
        self.num_players = num_players
        self.variant = variant
        self.max_steps = max_steps
        self.autoreset = autoreset
        self.num_threads = num_threads
        self._pool: ThreadPoolExecutor | None = None
        self._states: npt.NDArray[Any] = np.zeros(num_games, STATE_DTYPE)
        self._states["variant"] = VARIANT_NAMES.index(variant)
        self._states["num_seats"] = num_players
        self._states["max_steps"] = max_steps
        self._states["rng"] = streams(seed, num_games)
        self._shown = new_shown(num_games, num_players)
        self._rows = np.arange(num_games)
        self._has_games = False
        self.log = EventLog(num_games) if history else None
        """What `events` reads, of all games; None without `history`."""
        self._show()

    def _show(self) -> None:
        """Let callers see the arrays, not write to them: a step trusts what they say."""
        (
            self.seats,
            self.observations,
            self.action_masks,
            self.rewards,
            self.terminations,
            self.truncations,
            self.cards_left,
            self.lengths,
        ) = (_read_only(array) for array in self._shown)
        self.states = _read_only(self._states)
        _, _, self._masks, *_ = self._shown

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_pool": None}
        for name in (*SHOWN, "states"):  # a copied view would be an array apart
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._show()

    def reset(
        self,
        seed: int | None = None,
        decks: npt.ArrayLike | None = None,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Deal every row anew, or some.

        Args:
            seed: restarts the games' streams; None goes on with them.
            decks: deck orders to deal instead of a shuffle (R4), rank ids, front first;
                int `[B, deck size]`, or `[K, deck size]` with `rows`. Games dealt later by
                `autoreset` are shuffled.
            rows: the games to deal, ascending; int64 `[K]`. The others stay as they are
                and show no rewards and no ends.

        Raises:
            RuntimeError: `rows` before the first games have been dealt.
            ValueError: decks that are not permutations of the variant's deck, or rows out
                of order.
        """
        if rows is not None and not self._has_games:
            raise RuntimeError("call reset() of all games before reset(rows=...)")
        rows = self._rows if rows is None else check_rows(rows, self.num_games)
        given = None
        if decks is not None:
            given = check_decks(decks, self.variant)
            if len(given) != len(rows):
                raise ValueError(f"decks: expected {len(rows)} rows; got {len(given)}")
        if seed is not None:
            self._states["rng"][rows] = streams(seed, self.num_games)[rows]
        if given is not None:
            deal_given(self._states, rows, given)
        if self.log is not None:
            self.log.forget(rows)
        self._run(rows, np.full(len(rows), DEAL if given is None else KEEP))
        self._has_games = True

    def load(self, states: npt.NDArray[np.void]) -> None:
        """Go on from saved records, e.g. a copy of another batch's `states`.

        Args:
            states: `STATE_DTYPE` `[B]`, of this batch's variant and table size; copied.

        Raises:
            ValueError: another shape, dtype, variant or table size, or what no game can be.
        """
        given = as_array("states", states)
        if given.shape != self._states.shape or given.dtype != STATE_DTYPE:
            raise ValueError(
                f"states: expected STATE_DTYPE records of shape {self._states.shape}; "
                f"got {given.dtype.name} of shape {given.shape}"
            )
        for field in ("variant", "num_seats"):
            if (given[field] != self._states[field]).any():
                raise ValueError(
                    f"states: expected {field} {self._states[field][0]}; "
                    f"got {', '.join(map(str, np.unique(given[field])))}"
                )
        check_states(given)
        self._states[:] = given
        if self.log is not None:
            self.log.forget(self._rows)
        self._run(self._rows, np.full(self.num_games, KEEP))
        self._has_games = True

    def step(self, actions: npt.ArrayLike, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Take one action in every game, or in some.

        Args:
            actions: one legal action a row; int `[B]`, or `[K]` with `rows`.
            rows: the games to step, ascending; int64 `[K]`. The others stay as they are
                and show no rewards and no ends.

        Raises:
            IllegalActionError: an action that its game's mask forbids; nothing has changed.
            RuntimeError: no game has been dealt.
            ValueError: wrong shape or dtype, or rows out of order.
        """
        if not self._has_games:
            raise RuntimeError("call reset() before step()")
        rows = self._rows if rows is None else check_rows(rows, self.num_games)
        ids = check_int64("actions", actions, rows.shape)
        if not all_legal(rows, ids, self._masks):
            # Rows that have finished without autoreset are ignored.
            running = self._states["winner"][rows] == EMPTY
            rows, ids = rows[running], ids[running]
            check_actions(ids, rows, self.seats[rows], self._masks[rows])
        if self.log is not None:
            self.log.write(self._states, rows, ids)
        self._run(rows, ids)

    def _run(self, rows: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]) -> None:
        if rows is not self._rows:  # the kernel clears its own rows only
            _, _, _, rewards, terminations, truncations, *_ = self._shown
            rewards.fill(0)
            terminations.fill(False)
            truncations.fill(False)
        if self.num_threads == 1 or len(rows) < 2 * ROWS_PER_THREAD:
            run_games(self._states, rows, actions, self.autoreset, self._shown)
        else:
            self._run_on_threads(rows, actions)

    def _run_on_threads(self, rows: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]) -> None:
        parts = min(self.num_threads, len(rows) // ROWS_PER_THREAD)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.num_threads - 1)
        bounds = [len(rows) * i // parts for i in range(parts + 1)]
        pieces = [slice(*ends) for ends in pairwise(bounds)]

        def run(piece: slice) -> None:
            run_games(self._states, rows[piece], actions[piece], self.autoreset, self._shown)

        others = [self._pool.submit(run, piece) for piece in pieces[1:]]
        run(pieces[0])
        for other in others:
            other.result()

    def observe(self, seats: npt.ArrayLike) -> npt.NDArray[np.int8]:
        """What any seat of each game may know, whoever is to act.

        Args:
            seats: one seat a game; int `[B]`.

        Returns:
            int8 `[B, F]`, a new array.

        Raises:
            RuntimeError: no game has been dealt.
            ValueError: a seat that isn't at the table.
        """
        if not self._has_games:
            raise RuntimeError("call reset() before observe()")
        observers = check_int64("seats", seats, self._rows.shape)
        if ((observers < 0) | (observers >= self.num_players)).any():
            raise ValueError(
                f"seats: expected {self.num_games} seats in 0..{self.num_players - 1}; "
                f"got {seats!r}"
            )
        vectors = np.empty_like(self.observations)
        write_observations(self._states, observers.copy(), vectors)
        return vectors

    def events(self, row: int, seat: int) -> npt.NDArray[Any]:
        """What everybody saw of a game, action by action, as a seat may know it.

        It is the running game or, until the next step, the one that the last step has ended;
        after `load` what has happened since. Others' lays are hidden until all have laid (R5).

        Args:
            row: the game.
            seat: who asks.

        Returns:
            `EVENT_DTYPE` `[T]`, a new array; `event_columns` puts names to it.

        Raises:
            RuntimeError: the batch keeps no history.
            ValueError: no such game, or a seat that isn't at the table.
        """
        if self.log is None:
            raise RuntimeError("events() needs Batch(history=True)")
        check_index("row", row, self.num_games)
        check_index("seat", seat, self.num_players)
        return self.log.known_to(row, seat)

    def copy(self) -> "Batch":
        """An independent batch that goes on identically, streams included."""
        return copy.deepcopy(self)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory as an array that nobody can make writable."""
    memory = array.reshape(-1).view(np.uint8).data.toreadonly()
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


def events_of(game: Record, actions: Sequence[int], seat: int) -> npt.NDArray[Any]:
    """What a seat may know of the events of one game, see `Batch.events`.

    Args:
        game: just dealt.
        actions: all that have been taken since, legal ones.
        seat: who asks.
    """
    variant, max_steps = VARIANT_NAMES[game["variant"]], int(game["max_steps"])
    batch = Batch(1, int(game["num_seats"]), variant, max_steps, autoreset=False, history=True)
    batch.load(np.array([game], STATE_DTYPE))
    for action in actions:
        batch.step([action])
    return batch.events(0, seat)
