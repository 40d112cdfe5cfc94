from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_agents import make
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.play import Entrant, play, play_block
from threeup_agents.arena.referee import AgentError
from threeup_agents.arena.terms import Terms
from threeup_agents.play.session import Session
from threeup_agents.replay.recording import record
from threeup_env import Batch, env
from threeup_env.engine.events import EVENT_DTYPE, HIDDEN, event_rows
from threeup_env.engine.observation import observation_fields
from threeup_env.envs.gym_env import ThreeUpEnv

Rows = npt.NDArray[Any]
Events = Sequence[npt.NDArray[np.int8]]
SEAT, ACTION, DRAWN = 0, 1, 3


class Diarist:
    """Plays at random by slot, and checks what it is told against what it has done itself."""

    name = "diarist"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def begin(self, slots: Rows, seats: Rows, num_players: int) -> None:
        """As `MemoryAgent.begin`."""
        assert slots.tolist() == list(range(len(seats)))
        self.seats = seats
        self.taken: list[int | None] = [None] * len(slots)
        self.counts = [0] * len(slots)
        self.fields = observation_fields(num_players)
        self.streams = [np.random.default_rng((self._seed, slot)) for slot in slots.tolist()]

    def act(self, observations: Rows, action_masks: Rows, slots: Rows, events: Events) -> Rows:
        """As `MemoryAgent.act`."""
        actions = np.zeros(len(slots), np.int64)
        for row, slot in enumerate(slots.tolist()):
            seat = self.seats[slot]
            assert observations[row, self.fields["seat"]] == seat
            if self.taken[slot] is not None:
                assert events[row][0, [SEAT, ACTION]].tolist() == [seat, self.taken[slot]]
            own = events[row][:, SEAT] == seat
            assert own.sum() == (self.taken[slot] is not None)
            actions[row] = self.streams[slot].choice(np.flatnonzero(action_masks[row]))
            self.taken[slot] = int(actions[row])
            self.counts[slot] += 1
        return actions


class Secretary:
    """The first legal action; keeps all that it was told."""

    name = "secretary"

    def __init__(self) -> None:
        self.begun: list[tuple[Rows, Rows, int]] = []
        self.told: dict[int, list[npt.NDArray[np.int8]]] = {}

    def begin(self, slots: Rows, seats: Rows, num_players: int) -> None:
        """As `MemoryAgent.begin`."""
        self.begun.append((slots, seats, num_players))
        self.told = {slot: [] for slot in slots.tolist()}

    def act(self, observations: Rows, action_masks: Rows, slots: Rows, events: Events) -> Rows:
        """As `MemoryAgent.act`."""
        for slot, seen in zip(slots.tolist(), events, strict=True):
            self.told[slot].append(seen.copy())
        return np.asarray(action_masks.argmax(axis=1))


class FirstLegal:
    """The same without memory."""

    name = "first legal"

    def act(self, observations: Rows, action_masks: Rows) -> Rows:
        """As `Agent.act`."""
        return np.asarray(action_masks.argmax(axis=1))


class Forgetful(Diarist):
    """Says that its seats are one: what an object does that mixes the seats of a game."""

    name = "forgetful"

    def act(self, observations: Rows, action_masks: Rows, slots: Rows, events: Events) -> Rows:
        """As `MemoryAgent.act`."""
        return super().act(observations, action_masks, slots // 2, events)


@pytest.mark.parametrize(
    "line_up",
    [
        pytest.param([Diarist, "greedy"], id="one of two"),
        pytest.param(["greedy", Diarist, Diarist], id="two of three"),
        pytest.param([Diarist, Diarist, "random", Diarist], id="three of four"),
    ],
)
def test_every_seat_of_an_agent_remembers_its_own_actions_and_no_others(
    line_up: list[Entrant],
) -> None:
    assert play(line_up, deals=40, progress=False).num_deals == 40
    with pytest.raises(AgentError, match="AssertionError"):
        play([Forgetful if entrant is Diarist else entrant for entrant in line_up], 40)


def test_an_agent_is_told_what_the_aec_face_tells_its_player() -> None:
    decks = draw_deals(3, 3)
    secretary = Secretary()
    actions: dict[int, list[int]] = {row: [] for row in range(9)}

    def watch(batch: Batch, rows: Rows, chosen: Rows) -> None:
        for row, action in zip(rows.tolist(), chosen.tolist(), strict=True):
            actions[row].append(action)

    play_block(["careful", secretary, secretary], decks, watch=watch)
    ((slots, seats, num_players),) = secretary.begun
    assert num_players == 3
    assert slots.tolist() == list(range(18))
    # Under rotation r place 1 sits at seat (1 + r) % 3 and place 2 at (2 + r) % 3.
    assert seats.tolist() == [1, 2, 0, 2, 0, 1] * 3
    for slot, seat in enumerate(seats.tolist()):
        row = slot // 2
        game = env(num_players=3)
        game.reset(options={"deck": decks[row // 3].tolist()})
        expected: list[Rows] = []
        told = 0
        for action in actions[row]:
            if game.agent_selection == f"player_{seat}":
                seen = game.unwrapped.events(f"player_{seat}")
                expected.append(event_rows(seen[told:]))
                told = len(seen)
            game.step(action)
        assert len(expected) == len(secretary.told[slot]) > 0
        for got, want in zip(secretary.told[slot], expected, strict=True):
            assert got.tolist() == want.tolist()


def test_the_draw_pile_follows_from_the_events() -> None:
    class Accountant(Secretary):
        """Counts cards drawn."""

        name = "accountant"

        def act(self, observations: Rows, action_masks: Rows, slots: Rows, events: Events) -> Rows:
            actions = super().act(observations, action_masks, slots, events)
            size = observations[:, fields["draw_pile_size"]][:, 0]
            for row, slot in enumerate(slots.tolist()):
                drawn = sum(int(seen[:, DRAWN].sum()) for seen in self.told[slot])
                left.setdefault(slot, int(size[row]) + drawn)
                assert size[row] == left[slot] - drawn
            return actions

    fields = observation_fields(3)
    left: dict[int, int] = {}
    play_block([Accountant(), "greedy", "random"], draw_deals(20, 3))
    # 84 cards, of which each of three seats is dealt 3 face down and 6 into its hand (R3, R4).
    assert len(left) == 60
    assert set(left.values()) == {84 - 3 * 9}


def test_a_lay_is_told_only_when_all_have_laid() -> None:
    secretary = Secretary()
    play_block(["greedy", "random", secretary], draw_deals(10, 3))
    firsts = [told[0] for told in secretary.told.values()]
    others = [seen for seen in firsts if len(seen)]
    assert others
    assert all((seen[:, ACTION] == HIDDEN).all() for seen in others)


def test_an_agent_with_memory_that_ignores_it_plays_as_one_without() -> None:
    decks = draw_deals(30, 3)
    games = [
        play_block([agent, "careful", "random"], decks, seed=1)
        for agent in (Secretary(), FirstLegal())
    ]
    assert (games[0].course == games[1].course).all()


def test_memory_begins_anew_with_each_block_so_that_blocks_are_the_same_alone() -> None:
    whole = play([Diarist, "greedy", "greedy"], deals=400, progress=False)  # 341 deals a block
    last = play_block([Diarist, "greedy", "greedy"], draw_deals(400, 3)[341:], 341)
    assert (whole.course[-len(last.course) :] == last.course).all()


def test_an_isolated_agent_is_told_the_same(tmp_path: Path) -> None:
    decks = draw_deals(10, 3)
    line_up: list[Entrant] = [Diarist, Diarist, "greedy"]
    games = [play_block(line_up, decks, terms=Terms(isolate)) for isolate in (False, True)]
    assert (games[0].course == games[1].course).all()
    assert (games[0].decisions == games[1].decisions).all()


def test_the_log_is_kept_only_if_somebody_reads_it() -> None:
    logs = []

    def watch(batch: Batch, rows: Rows, chosen: Rows) -> None:
        logs.append(batch.log)

    play_block(["greedy", "random"], draw_deals(2), watch=watch)
    assert set(logs) == {None}
    logs.clear()
    play_block(["greedy", Secretary()], draw_deals(2), watch=watch)
    assert None not in logs


def test_what_an_agent_raises_when_its_games_begin_is_its_failure() -> None:
    class Late(Secretary):
        """Can't begin."""

        name = "late"

        def begin(self, slots: Rows, seats: Rows, num_players: int) -> None:
            raise RuntimeError("no weights for this table")

    with pytest.raises(AgentError, match="raised RuntimeError: no weights for this table") as error:
        play_block([Late(), "greedy"], draw_deals(2))
    assert error.value.where == {
        "line_up": ("late", "greedy"),
        "deal": 0,
        "rotation": 0,
        "step": 0,
    }


def test_where_nobody_tells_slots_an_agent_with_memory_is_refused() -> None:
    reason = "expected agents that choose from the observation alone; got 'secretary'"
    agents: Any = [Secretary(), FirstLegal()]
    with pytest.raises(ValueError, match=reason):
        record(agents)
    with pytest.raises(ValueError, match=reason):
        ThreeUpEnv(opponents=[agents[0]])
    with pytest.raises(ValueError, match="has memory"):
        make("program:python bot.py")
    with pytest.raises(ValueError, match="has memory"):
        Session(("program:python bot.py",))


def test_events_have_the_fields_of_the_log() -> None:
    names = EVENT_DTYPE.names or ()
    assert [names[field] for field in (SEAT, ACTION, DRAWN)] == ["seat", "action", "drawn"]
