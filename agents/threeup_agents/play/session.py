"""A person's game against agents: what the faces for people share, without a screen.

`table`, `log` and `summary` hold what the person's seat may know, and are all that a face
shows. `recording` holds the whole game, hidden cards too: it is for a file.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from threeup_agents import specs
from threeup_agents.arena.referee import Referee
from threeup_agents.replay.recording import PERSON, Last, Recording, deck_of
from threeup_env.engine.actions import ACTION_COPIES, ACTION_RANK, DRAW
from threeup_env.engine.batch import Batch
from threeup_env.engine.cards import MAX_SEATS
from threeup_env.engine.state import Record
from threeup_env.view.table import Table, look
from threeup_env.view.words import action_text, card_names


class Session:
    """One game after the other between a person and agents.

    An agent sits in every seat: in the person's it only gives hints. Each is asked once at the
    start, so that one that can't play at this table is found before the game begins.

    Args:
        opponents: specs of `threeup_agents.make` for the other seats, in their order; fewer than
            seats are taken in turn.
        num_players: seats at the table.
        variant: a key of `VARIANTS`.
        seat: the person's.
        seed: of the deals and the agents.
        hint: spec of the agent that gives hints.
        max_steps: the action that cuts a game off (R21).
        trust: see `threeup_agents.make`.

    Attributes:
        seat: the person's.
        hint: spec of the agent that gives hints.
        names: who sits where, `PERSON` included.
        log: what has happened in this game, a line an action, in words that the person may
            read.

    Raises:
        ValueError: a bad argument; says which values would have been right.
        AgentError: an agent that can't play at this table.
    """

    def __init__(
        self,
        opponents: Sequence[str] = ("careful",),
        num_players: int = 2,
        variant: str = "standard",
        seat: int = 0,
        seed: int = 0,
        hint: str = "search:200",
        max_steps: int = 1000,
        trust: bool = False,
    ) -> None:
        self._batch = Batch(1, num_players, variant, max_steps, seed, autoreset=False)
        if not 1 <= len(opponents) < num_players:
            most = f"1 to {num_players - 1}" if num_players > 2 else "1"
            raise ValueError(
                f"opponents: expected {most} for {num_players} players; got {len(opponents)}"
            )
        if seat not in range(num_players):
            raise ValueError(f"seat: expected one in 0..{num_players - 1}; got {seat!r}")
        self.seat = seat
        self.hint = hint
        line_up = [opponents[i % len(opponents)] for i in range(num_players - 1)]
        line_up.insert(seat, hint)
        self.names = tuple(PERSON if i == seat else spec for i, spec in enumerate(line_up))
        made = [
            specs.make(spec, seed * MAX_SEATS + i, trust=trust) for i, spec in enumerate(line_up)
        ]
        self._referee = Referee(line_up, made, limit=math.inf)
        self.deal()
        for i in range(num_players):
            self._ask(i)

    @classmethod
    def resume(
        cls, recording: Recording, seed: int = 0, hint: str = "search:200", trust: bool = False
    ) -> "Session":
        """Go on with a game that was left; `seed` is for the deals after it.

        Raises:
            ValueError: an agent runs code of others and isn't trusted, nobody played as
                `PERSON`, or the game breaks the rules.
        """
        if recording.agents.count(PERSON) != 1:
            names = ", ".join(recording.agents)
            raise ValueError(f"recording: expected one {PERSON!r} among its players; got {names}")
        seat = recording.agents.index(PERSON)
        others = [name for name in recording.agents if name != PERSON]
        size, variant, max_steps = recording.num_players, recording.variant, recording.max_steps
        specs.check_trusted(others, "recording", trust)
        session = cls(others, size, variant, seat, seed, hint, max_steps, trust)
        session.deal(recording.deck)
        for action in recording.actions:
            session.play(action)
        return session

    def deal(self, deck: Sequence[int] | None = None) -> None:
        """Begin the next game, shuffled, or from this deck: rank ids, its front first (R4)."""
        self._batch.reset(decks=None if deck is None else [deck])
        self._deck = deck_of(self._batch.states[0])
        self._before: list[npt.NDArray[Any]] = []  # the records before each action, `[1]`
        self._actions: list[int] = []
        self.log: list[str] = []

    @property
    def choices(self) -> tuple[int, ...]:
        """The person's legal actions; none while another seat is to act, and after the end."""
        is_mine = self._batch.seats[0] == self.seat
        return tuple(np.flatnonzero(self._batch.action_masks[0]).tolist()) if is_mine else ()

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return not self._batch.action_masks[0].any()

    @property
    def has_won(self) -> bool:
        """Whether the person has won the game (R20)."""
        return bool(self._batch.states["winner"][0] == self.seat)

    @property
    def to_act(self) -> int:
        """The seat to act; of no meaning once the game has ended."""
        return int(self._batch.seats[0])

    @property
    def num_actions(self) -> int:
        """Actions taken."""
        return len(self._actions)

    @property
    def table(self) -> Table:
        """What the person's seat sees."""
        last: Last = (self._before[-1][0], self._actions[-1]) if self._actions else None
        return look(self._batch, 0, self.seat, last)

    @property
    def recording(self) -> Recording:
        """The game as far as it has come."""
        batch = self._batch
        actions = tuple(self._actions)
        return Recording(self._deck, self.names, actions, batch.variant, batch.max_steps)

    def ask(self) -> int:
        """What the agent of the seat to act would do: a hint in the person's turn.

        Changes nothing of the game, and may run in another thread.

        Raises:
            AgentError: it raised, or gave no legal action.
        """
        return self._ask(self.to_act)

    def _ask(self, index: int) -> int:
        batch = self._batch
        seen = batch.observations.copy()
        return int(self._referee.ask(index, seen, batch.action_masks, np.zeros(1, int))[0])

    def play(self, action: int) -> None:
        """Take an action of the seat to act.

        Raises:
            IllegalActionError: the rules forbid it; nothing has changed.
            RuntimeError: the game has ended.
        """
        if self.is_over:
            raise RuntimeError("the game has ended: call deal()")
        before = self._batch.states.copy()
        self._batch.step([action])
        self._before.append(before)
        self._actions.append(action)
        self.log.append(self._words(before[0], self._batch.states[0], action))

    @property
    def undo_refusal(self) -> str:
        """Why the last action can't be taken back; empty if it can.

        It can as long as nobody else has acted since and it has shown the person no card.
        """
        if not self._actions:
            return "nothing has been played yet"
        before, after = self._before[-1][0], self._batch.states[0]
        if before["seat"] != self.seat:
            return "another seat has acted since your last action"
        if self.is_over:
            return "the game has ended"
        if before["draw_pile_size"] != after["draw_pile_size"]:
            return "it has shown you what you drew"
        if before["face_down_size"][self.seat] != after["face_down_size"][self.seat]:
            return "it has turned a card over"
        if before["laying"] and not after["laying"]:
            return "it has shown you what the others laid"
        return ""

    def undo(self) -> None:
        """Take back the person's last action.

        Raises:
            RuntimeError: it can't be taken back any more; says why.
        """
        if refusal := self.undo_refusal:
            raise RuntimeError(f"undo: {refusal}")
        self._batch.load(self._before.pop())
        self._actions.pop()
        self.log.pop()

    @property
    def summary(self) -> str:
        """How the game stands or has ended, and how many cards each seat has left."""
        left = ", ".join(
            f"{self.name(place.seat)} {place.cards_left}" for place in self.table.places
        )
        count = f"{self.num_actions} action{'' if self.num_actions == 1 else 's'}"
        stands = self.table.turn if self.is_over else "unfinished"
        stands = "you have won" if self.has_won else stands
        return f"{stands} after {count}; cards left: {left}"

    def name(self, seat: int) -> str:
        """A seat and who sits there, in words."""
        return f"seat {seat} (you)" if seat == self.seat else f"seat {seat} {self.names[seat]}"

    def _words(self, before: Record, after: Record, action: int) -> str:
        """An action for the log; the person's own tells what it has drawn."""
        words = action_text(before, after, action, self.seat)
        drawn = before["draw_pile_size"] - after["draw_pile_size"]
        if before["seat"] != self.seat or not drawn:
            return words
        cards = after["hand"][self.seat] - before["hand"][self.seat]
        if action != DRAW:  # who draws at the end of a turn has played from the hand (R16)
            cards[ACTION_RANK[action]] += ACTION_COPIES[action]
        return f"{words}: {card_names(cards)}"
