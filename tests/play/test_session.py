import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import legal, ranks
from threeup_agents.play.session import Session
from threeup_agents.replay import __main__ as page
from threeup_agents.replay.recording import PERSON, Recording
from threeup_env import ACTION_NAMES, IllegalActionError, action_id
from threeup_env.engine.determinize import determinize


def at_my_turn(session: Session) -> Session:
    """Let the others act until the person is to."""
    while not (session.choices or session.is_over):
        session.play(session.ask())
    return session


def state_of(session: Session) -> Any:
    return session._batch.states[0].copy()


@pytest.mark.parametrize(("num_players", "seat"), [(2, 0), (2, 1), (4, 2)])
def test_a_game_against_agents_is_recorded_exactly(num_players: int, seat: int) -> None:
    session = Session(["greedy"], num_players, seat=seat, seed=5, hint="careful")
    while not at_my_turn(session).is_over:
        session.play(session.ask())
    recording = session.recording
    assert recording.agents[seat] == PERSON
    assert [name for name in recording.agents if name != PERSON] == ["greedy"] * (num_players - 1)
    *_, (batch, _) = recording.play()
    states = batch.states.copy()
    states["rng"] = session._batch.states["rng"]
    assert states[0] == state_of(session)
    assert len(session.log) == len(recording.actions) == session.num_actions
    assert re.search(r"won after \d+ actions; cards left: ", session.summary)


@pytest.mark.parametrize("opponent", ["search:20", "policy"])
def test_a_page_of_the_game_explains_what_the_agents_chose(tmp_path: Path, opponent: str) -> None:
    session = at_my_turn(Session([opponent], 2, seat=1, seed=5, hint="careful"))
    session.play(session.ask())
    session.recording.save(tmp_path / "game.json")
    out = tmp_path / "game.html"
    assert page.main([str(tmp_path / "game.json"), "--explain", "--out", str(out)]) == 0
    (data,) = re.findall(r'type="application/json">(.*)</script>', out.read_text())
    views = {view["name"]: view["bars"] for view in json.loads(data)["views"]}
    assert any(bars and len(bars) > 1 for bars in views["seat 0"])


def test_few_opponents_take_turns() -> None:
    session = Session(["greedy", "random"], 4, seat=1, hint="careful")
    assert session.names == ("greedy", PERSON, "random", "greedy")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"opponents": ()}, "opponents: expected 1 for 2 players; got 0"),
        ({"opponents": ("greedy", "random")}, "opponents: expected 1 for 2 players; got 2"),
        ({"opponents": ("greedy",) * 4, "num_players": 4}, "expected 1 to 3 for 4 players; got 4"),
        ({"seat": 2}, r"seat: expected one in 0\.\.1; got 2"),
        ({"num_players": 7}, "num_players: expected 2 to 6"),
        ({"variant": "big"}, "variant: expected one of"),
        ({"hint": "chess"}, "agent: expected one of"),
        ({"seed": -1}, "seed: expected an integer of at least 0"),
    ],
)
def test_a_table_that_can_not_be_is_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Session(**options)


def test_the_same_seed_gives_the_same_games() -> None:
    def games() -> list[tuple[int, ...]]:
        session = Session(["random"], hint="random", seed=9)
        actions: list[tuple[int, ...]] = []
        for _ in range(2):
            while not session.is_over:
                session.play(session.ask())
            actions.append(session.recording.actions)
            session.deal()
        return actions

    first, second = games()
    assert first != second
    assert games() == [first, second]


def test_only_legal_actions_are_taken() -> None:
    session = Session(hint="greedy", seed=1)
    before = state_of(session)
    with pytest.raises(IllegalActionError):
        session.play(action_id("pick up"))
    assert state_of(session) == before
    assert session.log == []
    while not session.is_over:
        session.play(session.ask())
    with pytest.raises(RuntimeError, match="the game has ended"):
        session.play(0)


def test_the_person_can_not_act_for_another_seat() -> None:
    session = Session(hint="greedy", seat=1)
    assert not session.choices
    assert at_my_turn(session).to_act == 1
    assert [ACTION_NAMES[action] for action in session.choices] == legal(session._batch)


def test_own_draws_stand_in_the_log_and_those_of_others_do_not() -> None:
    session = Session(hint="greedy", seed=3)
    told = 0
    while session.table.draw_pile_size > 20:
        seat, before = session.to_act, state_of(session)
        session.play(session.ask())
        size, left = int(before["draw_pile_size"]), session.table.draw_pile_size
        drawn = sorted(before["draw_pile"][left:size].tolist()) if seat == session.seat else []
        assert ranks(session.log[-1].partition(": ")[2]) == drawn
        told += len(drawn)
    assert told > 5


@pytest.mark.parametrize("num_players", [2, 3])
def test_an_undone_action_leaves_the_exact_position_and_has_shown_nothing(
    num_players: int,
) -> None:
    rng = np.random.default_rng(num_players)
    undone: set[str] = set()
    for seed in range(6):
        session = Session(["random"], num_players, seat=num_players - 1, seed=seed, hint="random")
        while not at_my_turn(session).is_over:
            action = int(rng.choice(session.choices))
            before, log = state_of(session), list(session.log)
            observation = session._batch.observe([session.seat])
            session.play(action)
            if session.undo_refusal:
                continue
            worlds = determinize(observation, seed=seed, num_worlds=3)[0]
            assert all(seen_after(session, world, action) for world in np.split(worlds, 3))
            session.undo()
            assert state_of(session) == before
            assert session.log == log
            assert len(session.recording.actions) == len(log)
            undone.add(ACTION_NAMES[action].split()[0])
            session.play(action)
    assert undone == {"lay", "play", "pick"}


def seen_after(session: Session, world: Any, action: int) -> bool:
    """Whether the person sees the same after this action in another world."""
    other = session._batch.copy()
    world["max_steps"] = session._batch.states["max_steps"]
    world["steps"] = session._before[-1]["steps"]
    other.load(world)
    other.step([action])
    seat = [session.seat]
    return bool((other.observe(seat) == session._batch.observe(seat)).all())


def test_an_action_that_has_shown_cards_stands() -> None:
    rng = np.random.default_rng(1)
    refusals: set[str] = set()
    for seed in range(12):
        session = Session(["random"], seat=1, seed=seed, hint="random")
        while not at_my_turn(session).is_over:
            session.play(int(rng.choice(session.choices)))
            refusals.add(session.undo_refusal)
            if session.undo_refusal:
                before = state_of(session)
                with pytest.raises(RuntimeError, match=f"undo: {session.undo_refusal}"):
                    session.undo()
                assert state_of(session) == before
    assert refusals == {
        "",
        "it has shown you what you drew",
        "it has turned a card over",
        "it has shown you what the others laid",
        "the game has ended",
    }


def test_nothing_is_taken_back_once_another_seat_has_acted() -> None:
    session = Session(hint="greedy", seat=1)
    assert session.undo_refusal == "nothing has been played yet"
    at_my_turn(session)
    assert session.undo_refusal == "another seat has acted since your last action"


def test_a_game_that_was_left_goes_on() -> None:
    session = Session(["greedy", "careful"], 3, seat=1, seed=4, hint="greedy")
    for _ in range(25):
        session.play(session.ask())
    again = Session.resume(session.recording, hint="greedy")
    assert again.recording == session.recording
    assert again.log == session.log
    while not again.is_over:
        again.play(again.ask())
    assert again.recording.actions[:25] == session.recording.actions


def test_a_game_among_agents_is_not_resumed() -> None:
    recording = Session(hint="greedy").recording
    foreign = Recording(recording.deck, ("greedy", "careful"), ())
    with pytest.raises(ValueError, match="expected one 'person' among its players"):
        Session.resume(foreign)
