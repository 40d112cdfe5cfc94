"""The public log: what the table saw, and that it is no more than a seat may know."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.builders import Cards, play, position
from tests.engine.test_observation import every_table, twin, twins
from threeup_env import (
    ACTION_NAMES,
    EVENT_DTYPE,
    RANK_NAMES,
    STATE_DTYPE,
    VARIANTS,
    Batch,
    action_id,
    decode,
    env,
    event_columns,
    raw_env,
)
from threeup_env.engine.actions import ACTION_COPIES, ACTION_RANK, FIRST_PLAY, FLIP
from threeup_env.engine.events import HIDDEN

NUM_RANKS = len(RANK_NAMES)


def logged(batch: Batch) -> Batch:
    """The same games, from here on with a history."""
    found = Batch(
        *(batch.num_games, batch.num_players, batch.variant, batch.max_steps),
        autoreset=False,
        history=True,
    )
    found.load(batch.states)
    return found


def random_actions(batch: Batch, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    masks = batch.action_masks
    chosen: npt.NDArray[np.int64] = (masks * rng.random(masks.shape)).argmax(axis=1)
    return chosen


class Spectator:
    """Keeps the public places from the events alone, by the rules' words."""

    def __init__(self, num_players: int, variant: str) -> None:
        sizes = VARIANTS[variant]
        self.hand_size = [sizes.hand_size + sizes.num_face_up] * num_players
        self.face_down_size = [sizes.num_face_down] * num_players
        self.face_up = np.zeros((num_players, NUM_RANKS), int)
        self.known = np.zeros((num_players, NUM_RANKS), int)
        self.pile = np.zeros(NUM_RANKS, int)
        self.out_of_play = np.zeros(NUM_RANKS, int)
        dealt = sum(self.hand_size) + sum(self.face_down_size)
        self.draw_pile_size = sum(sizes.copies) - dealt

    def see(self, event: Any) -> None:
        """Take one open event in."""
        seat, action = int(event["seat"]), int(event["action"])
        self.hand_size[seat] += event["drawn"]
        self.draw_pile_size -= event["drawn"]
        if action == FLIP:
            self.face_down_size[seat] -= 1
            self.pile[event["turned"]] += 1
        elif action < FIRST_PLAY:
            self.hand_size[seat] -= 1
            self.face_up[seat, action] += 1
        elif ACTION_NAMES[action].startswith("play"):
            self._play(seat, ACTION_RANK[action], ACTION_COPIES[action], event["drawn"])
        if event["picked_up"]:
            assert event["picked_up"] == self.pile.sum()
            self.hand_size[seat] += event["picked_up"]
            self.known[seat] += self.pile
            self.pile[:] = 0
        if event["cleared"]:
            self.out_of_play += self.pile
            self.pile[:] = 0

    def _play(self, seat: int, rank: int, copies: int, drawn: int) -> None:
        if self.hand_size[seat] - drawn > 0:
            self.hand_size[seat] -= copies
            self.known[seat, rank] = max(self.known[seat, rank] - copies, 0)
        else:
            self.face_up[seat, rank] -= copies
        self.pile[rank] += copies

    def check(self, batch: Batch) -> None:
        """Compare with what a seat is shown."""
        view = decode(batch.observe([0])[0])
        assert view["draw_pile_size"] == self.draw_pile_size
        assert view["pile"].tolist() == self.pile.tolist()
        assert view["out_of_play"].tolist() == self.out_of_play.tolist()
        assert view["exposed"].tolist() == self.known[0].tolist()
        for seat, block in enumerate(view["seats"]):
            assert block["hand_size"] == self.hand_size[seat]
            assert block["face_down_size"] == self.face_down_size[seat]
            assert block["face_up"].tolist() == self.face_up[seat].tolist()
            if seat > 0:
                assert block["hand"].tolist() == self.known[seat].tolist()


@every_table
def test_events_tell_all_that_is_public(num_players: int, variant: str) -> None:
    batch = Batch(1, num_players, variant, seed=2, autoreset=False, history=True)
    rng = np.random.default_rng(num_players)
    for _ in range(5):
        batch.reset()
        spectator, seen = Spectator(num_players, variant), 0
        while batch.action_masks[0].any():
            batch.step(random_actions(batch, rng))
            if batch.states[0].laying:
                continue
            events = batch.events(0, seat=0)
            for event in events[seen:]:
                spectator.see(event)
            spectator.check(batch)
            seen = len(events)
        assert seen == batch.lengths[0]


@every_table
def test_what_others_lay_is_hidden_until_all_have_laid(num_players: int, variant: str) -> None:
    batch = Batch(1, num_players, variant, seed=3, history=True)
    batch.reset()
    laid: list[tuple[int, int]] = []
    rng = np.random.default_rng(1)
    while batch.states[0].laying:
        for seat in range(num_players):
            events = batch.events(0, seat)
            known = [(who, action if who == seat else HIDDEN) for who, action in laid]
            assert list(zip(events["seat"], events["action"], strict=True)) == known
        actions = random_actions(batch, rng)
        laid.append((int(batch.seats[0]), int(actions[0])))
        batch.step(actions)
    assert len(laid) == num_players * VARIANTS[variant].num_face_up
    for seat in range(num_players):
        events = batch.events(0, seat)
        assert list(zip(events["seat"], events["action"], strict=True)) == laid


@every_table
def test_what_a_seat_may_not_know_changes_no_event(num_players: int, variant: str) -> None:
    """Each action is taken in twins too; a turned card is the same, a hidden lay any."""
    rng = np.random.default_rng(num_players)
    batch = Batch(1, num_players, variant, seed=5, autoreset=False, history=True)
    batch.reset()
    compared = 0
    while batch.action_masks[0].any():
        others = logged(twins(batch, rng))
        alone = logged(batch)
        taken = random_actions(batch, rng)
        actions = np.repeat(taken, num_players)
        hidden = (batch.states[0].laying > 0) & (np.arange(num_players) != batch.seats[0])
        actions[hidden] = random_actions(others, rng)[hidden]
        legal = others.action_masks[np.arange(num_players), actions]
        alone.step(taken)
        others.step(actions[legal], np.flatnonzero(legal))
        for seat in np.flatnonzero(legal).tolist():
            mine, theirs = alone.events(0, seat), others.events(seat, seat)
            if alone.states[0].laying == 0 and hidden[seat]:
                continue  # the last lay opens them all
            if mine["turned"] == theirs["turned"]:
                assert mine.tolist() == theirs.tolist()
                compared += 1
        batch.step(taken)
    assert compared > batch.lengths[0]


def test_twins_of_a_deal_give_equal_events_all_through_the_laying() -> None:
    rng = np.random.default_rng(4)
    for observer in range(3):
        batch = Batch(1, 3, seed=observer, autoreset=False)
        batch.reset()
        one = logged(batch)
        states = np.array([twin(batch.states[0], observer, rng)], STATE_DTYPE)
        other = Batch(1, 3, autoreset=False, history=True)
        other.load(states)
        while one.states[0].laying:
            assert (one.events(0, observer) == other.events(0, observer)).all()
            action = random_actions(one, rng)
            is_own = one.seats[0] == observer
            one.step(action)
            other.step(action if is_own else random_actions(other, rng))


@pytest.mark.parametrize(
    ("before", "action", "expected"),
    [
        pytest.param(
            {"hand": "7 7 9", "pile": "4 7", "draw_pile": "1 2 3"},
            "play 7 x2",
            {"turned": None, "drawn": 2, "picked_up": 0, "cleared": 1},
            id="case 1: three 7s clear, then two are drawn",
        ),
        pytest.param(
            {"hand": "3 9", "pile": "10 10", "draw_pile": "1"},
            "pick up",
            {"turned": None, "drawn": 0, "picked_up": 2, "cleared": 0},
            id="R14 the whole pile, and nothing is drawn",
        ),
        pytest.param(
            {"face_down": "4 9 9", "pile": "6 6"},
            "flip",
            {"turned": "4", "drawn": 0, "picked_up": 3, "cleared": 0},
            id="case 9: the pile and the 4 that was turned",
        ),
        pytest.param(
            {"face_down": "C 9 9", "pile": "6 6"},
            "flip",
            {"turned": "C", "drawn": 0, "picked_up": 0, "cleared": 1},
            id="R18 a turned Clear clears",
        ),
        pytest.param(
            {"face_down": "8", "pile": "6 6"},
            "flip",
            {"turned": "8", "drawn": 0, "picked_up": 0, "cleared": 0},
            id="R20 the last card wins",
        ),
    ],
)
def test_an_event_says_what_the_table_saw(
    before: Cards, action: str, expected: dict[str, Any]
) -> None:
    batch = play(logged(position(**before)), action)
    columns = event_columns(batch.events(0, seat=1))
    assert columns == {
        name: [entry] for name, entry in ({"seat": 0, "action": action} | expected).items()
    }


def test_a_draw_in_mid_turn_is_told() -> None:
    batch = play(logged(position(hand="C+2 4 6", draw_pile="1 2 3 5")), "play C+2", "draw")
    assert batch.events(0, seat=0)["drawn"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "clone", [lambda b: b, Batch.copy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_the_log_of_a_row_is_that_of_its_game(clone: Callable[[Batch], Batch]) -> None:
    batch = Batch(6, 3, max_steps=200, seed=7, history=True)
    bare = Batch(6, 3, max_steps=200, seed=7)
    rng = np.random.default_rng(1)
    taken: list[list[int]] = [[] for _ in range(6)]
    for each in (batch, bare):
        each.reset()
    for step in range(450):
        actions = random_actions(batch, rng)
        rows = np.arange(6) if step % 3 else np.array([0, 2, 3])
        for row in rows:
            if batch.states[row].steps == 0:
                taken[row] = []
            taken[row].append(int(actions[row]))
        for each in (batch, bare):
            each.step(actions[rows], rows)
        if step == 300:
            batch = clone(batch)
    assert (batch.states == bare.states).all()
    for row in range(6):
        log = batch.events(row, seat=0)
        if len(log) > 9:
            assert log["action"].tolist() == taken[row]
        assert len(log) == len(taken[row])


def test_an_ended_game_is_told_until_the_next_step() -> None:
    batch = Batch(1, variant="mini", max_steps=20, seed=1, history=True)
    batch.reset()
    rng = np.random.default_rng(1)
    while not (batch.terminations[0] or batch.truncations[0]):
        batch.step(random_actions(batch, rng))
    assert len(batch.events(0, 0)) == batch.lengths[0]
    assert (batch.events(0, 0)["action"] != HIDDEN).all()
    batch.step(random_actions(batch, rng))
    assert batch.events(0, 1)["action"].tolist() == [HIDDEN]
    batch.reset()
    assert len(batch.events(0, 0)) == 0


def test_a_game_cut_off_while_laying_keeps_the_lays_hidden() -> None:
    batch = Batch(1, max_steps=2, seed=1, history=True)
    batch.reset()
    for _ in range(2):
        batch.step(batch.action_masks.argmax(axis=1))
    assert batch.truncations[0]
    assert batch.events(0, 1)["action"].tolist() == [HIDDEN, HIDDEN]
    assert (batch.events(0, 0)["action"] != HIDDEN).all()


def test_a_batch_without_history_and_wrong_seats_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"events\(\) needs Batch\(history=True\)"):
        Batch(1).events(0, 0)
    batch = Batch(2, history=True)
    assert batch.events(1, 1).tolist() == []
    assert batch.events(1, 1).dtype == EVENT_DTYPE
    with pytest.raises(ValueError, match=r"row: expected an integer in 0\.\.1; got 2"):
        batch.events(2, 0)
    with pytest.raises(ValueError, match=r"seat: expected an integer in 0\.\.1; got -1"):
        batch.events(0, -1)


@pytest.mark.parametrize("make", [raw_env, env])
def test_the_environment_tells_the_same_events(make: Callable[..., Any]) -> None:
    game, batch = make(num_players=3), Batch(1, 3, autoreset=False, history=True)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before events\(\)"):
        game.unwrapped.events("player_0")
    game.reset(seed=4)
    batch.reset(seed=4)
    rng = np.random.default_rng(1)
    while batch.action_masks[0].any():
        for seat, agent in enumerate(game.possible_agents):
            assert (game.unwrapped.events(agent) == batch.events(0, seat)).all()
        actions = random_actions(batch, rng)
        batch.step(actions)
        game.step(int(actions[0]))
    assert len(game.unwrapped.events("player_2")) == batch.lengths[0]
    with pytest.raises(ValueError, match="agent: expected one of"):
        game.unwrapped.events("player_3")


def test_columns_make_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    batch = Batch(1, seed=1, history=True)
    batch.reset()
    batch.step([int(batch.action_masks[0].argmax())])
    frame = pandas.DataFrame(event_columns(batch.events(0, seat=1)))
    assert list(frame.columns) == ["seat", "action", "turned", "drawn", "picked_up", "cleared"]
    assert frame["action"].tolist() == ["lay ?"]
    assert action_id(event_columns(batch.events(0, seat=0))["action"][0]) < FIRST_PLAY
