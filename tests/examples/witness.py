"""What really happens at the tables while a recipe collects: the yardstick of every recipe's test.

Reads the engine below all faces. Rewards aren't looked at: who has no cards left has won (R20),
and everybody else has lost. What a test notes stands in the table of `examples/README.md`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pytest

import threeup_agents
from threeup_env import Batch

TABLES: Final = ((2, 1000), (3, 1000), (2, 60))
"""Players and `max_steps` that every recipe is tried at; the last cuts off some games."""
Note = Callable[[str, object], None]
"""The fixture `record_property`."""


@dataclass(frozen=True)
class Game:
    """One game that has ended."""

    row: int
    """Of its batch."""
    outcomes: tuple[float, ...]
    """By seat."""
    decisions: tuple[int, ...]
    """By seat, those without a choice too."""
    choices: tuple[int, ...]
    """By seat, decisions between two or more actions."""
    was_cut_off: bool


class Witness:
    """Looks on at every `Batch` from now on; an illegal action fails the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.games: list[Game] = []
        """In the order of their ends."""
        self.taken: npt.NDArray[np.int64] = np.zeros((2, 6), np.int64)
        """Decisions and choices by seat, those of running games too; int64 `[2, 6]`."""
        self._counts: WeakKeyDictionary[Batch, npt.NDArray[np.int64]] = WeakKeyDictionary()
        step, reset, witness = Batch.step, Batch.reset, self

        def watched_step(batch: Batch, actions: Any, rows: Any = None) -> None:
            every = np.arange(batch.num_games) if rows is None else rows
            masks, seats = batch.action_masks[every].copy(), batch.seats[every].copy()
            running = masks.any(axis=1)
            assert masks[running, np.asarray(actions)[running]].all()
            step(batch, actions, rows)
            witness._note(batch, every[running], seats[running], masks[running].sum(axis=1))

        def watched_reset(batch: Batch, *args: Any, **options: Any) -> None:
            reset(batch, *args, **options)
            rows = options.get("rows")
            witness._of(batch)[slice(None) if rows is None else rows] = 0

        monkeypatch.setattr(Batch, "step", watched_step)
        monkeypatch.setattr(Batch, "reset", watched_reset)

    def _of(self, batch: Batch) -> npt.NDArray[np.int64]:
        """Decisions and choices in the running games; int64 `[B, 2, S]`."""
        return self._counts.setdefault(
            batch, np.zeros((batch.num_games, 2, batch.num_players), np.int64)
        )

    def _note(self, batch: Batch, rows: Any, seats: Any, num_legal: Any) -> None:
        counts = self._of(batch)
        for kind, counted in enumerate((num_legal > 0, num_legal > 1)):
            counts[rows[counted], kind, seats[counted]] += 1
            np.add.at(self.taken[kind], seats[counted], 1)
        ends = batch.terminations | batch.truncations
        for row in rows[ends[rows]].tolist():
            won = batch.cards_left[row] == 0
            lost = -1 / (batch.num_players - 1)
            decisions, choices = counts[row].tolist()
            outcomes = tuple(np.where(won, 1.0, lost).tolist())
            end = (outcomes, tuple(decisions), tuple(choices), bool(batch.truncations[row]))
            self.games.append(Game(row, *end))
            counts[row] = 0

    def outcomes(self, seat: int) -> dict[int, list[float]]:
        """A seat's outcomes, by row in the order of the games' ends."""
        found: dict[int, list[float]] = {}
        for game in self.games:
            found.setdefault(game.row, []).append(game.outcomes[seat])
        return found


@contextmanager
def learning_from(what: str, note: Note) -> Iterator[None]:
    """Note what the block learns from, and for how many seconds of the processor."""
    start = time.process_time()
    yield
    note("learnt from", f"{what}, {time.process_time() - start:.0f} s")


def share_against(
    opponent: str, agent: Any, note: Note, deals: int = 200, **options: Any
) -> tuple[float, float]:
    """The agent's win share against an opponent and the lower end of its interval."""
    players = [("learnt", agent), opponent]
    run = threeup_agents.round_robin(players, deals=deals, mixed=False, **options)
    row = next(row for row in run.results["standings"] if row["agent"] == "learnt")
    note(f"against `{opponent}`", "{win_share:.3f}, {low:.3f} to {high:.3f}".format(**row))
    return row["win_share"], row["low"]
