import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ipywidgets", reason="pip install 'threeup[notebooks]'")

from tests.play.test_session import state_of
from threeup_agents.play import widget
from threeup_agents.play.widget import Play
from threeup_agents.replay.recording import Recording
from threeup_env import ACTION_NAMES
from threeup_env.engine.cards import RANK_NAMES
from threeup_env.engine.determinize import determinize
from threeup_env.view.picture import as_html, draw


def game(*args: Any, **options: Any) -> Play:
    settings: dict[str, Any] = {"hint": "greedy", "seed": 3, "pause": 0} | options
    return Play(*args, **settings)


def shown(play: Play) -> list[str]:
    return [button.description for button in play._actions.children]


def press(play: Play, name: str) -> None:
    buttons = [*play._actions.children, *play._controls.values()]
    next(button for button in buttons if button.description == name).click()


def mine(play: Play) -> list[str]:
    """What the log says that my seat did."""
    return [line for line in play.session.log if line.startswith(f"seat {play.session.seat} ")]


@pytest.mark.parametrize(("num_players", "seat"), [(2, 0), (4, 2)])
def test_games_are_played_with_buttons(num_players: int, seat: int, tmp_path: Path) -> None:
    play = game(["greedy"], num_players, seat=seat)
    for _ in range(2):
        while not play.session.is_over:
            assert shown(play) == [ACTION_NAMES[action] for action in play.session.choices]
            press(play, shown(play)[0])
        assert play.session.summary in play._notice.value
        assert shown(play) == []
        play.recording.save(tmp_path / "game.json")
        assert Recording.load(tmp_path / "game.json") == play.recording
        press(play, "new game")
        assert not play.session.is_over


def test_the_picture_is_what_the_seat_sees() -> None:
    play = game(["greedy", "careful"], 3, seat=1)
    assert play._picture.value == as_html(draw(play.session.table, ["greedy", "", "careful"]))
    press(play, shown(play)[0])
    before, batch = play._picture.value, play.session._batch
    worlds = determinize(batch.observe([1]), seed=1)
    assert (worlds["hand"] != batch.states["hand"]).any()
    batch.load(worlds[0])
    play._show()
    assert play._picture.value == before


def test_a_hint_marks_a_legal_action() -> None:
    play = game(hint="search:20")
    press(play, "hint")
    marked = [b.description for b in play._actions.children if b.button_style == "warning"]
    assert len(marked) == 1
    assert f"search:20 would {marked[0]}" in play._notice.value


def test_undo_takes_back_what_has_shown_nothing() -> None:
    play = game()
    before, picture = state_of(play.session), play._picture.value
    assert play._controls["undo"].disabled
    press(play, shown(play)[1])
    assert not play._controls["undo"].disabled
    press(play, "undo")
    assert state_of(play.session) == before
    assert play._picture.value == picture
    press(play, "undo")
    assert "can&#x27;t undo: nothing has been played yet" in play._notice.value


def test_others_wait_for_the_pause_and_undo_ends_it() -> None:
    async def run() -> None:
        play = game(pause=3600)
        for _ in range(2):
            press(play, shown(play)[0])
        before = state_of(play.session)
        press(play, shown(play)[0])
        assert shown(play) == []
        assert play.session.to_act == 1
        press(play, "undo")
        assert state_of(play.session) == before
        assert len(shown(play)) > 0
        press(play, shown(play)[0])
        assert play._timer is not None
        play._timer.cancel()
        while not shown(play):  # as the timer does
            play._answer()
            if play._timer is not None:
                play._timer.cancel()
        assert play.session.to_act == 0

    asyncio.run(run())


def test_a_late_second_click_does_nothing() -> None:
    play = game()
    late = play._actions.children[0]
    while late.description in shown(play):
        press(play, late.description)
    before = state_of(play.session)
    late.click()
    assert state_of(play.session) == before


@pytest.mark.parametrize("num_players", [2, 4])
def test_a_double_click_is_one_action(num_players: int) -> None:
    play = game(["greedy"], num_players)
    while not play.session.is_over:
        button, before = play._actions.children[0], len(mine(play))
        button.click()
        button.click()
        assert len(mine(play)) == before + 1


def test_a_click_on_an_action_shown_before_a_hint_or_undo_is_too_late() -> None:
    play = game()
    press(play, shown(play)[1])
    late = play._actions.children[0]
    press(play, "undo")
    before = state_of(play.session)
    late.click()
    assert state_of(play.session) == before
    press(play, shown(play)[0])
    assert len(mine(play)) == 1


def cards(play: Play) -> list[Any]:
    """The cards that can be clicked."""
    return [card for card in play._cards.children if not card.disabled]


@pytest.mark.parametrize(
    ("num_players", "variant"), [(2, "mini"), (2, "standard"), (4, "standard")]
)
def test_a_game_is_played_by_clicks_on_cards(
    num_players: int, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(widget, "DOUBLE_CLICK", 0)
    play = game(["greedy"], num_players, variant)
    while not play.session.is_over:
        assert {card.tooltip for card in cards(play)} == {
            name for name in shown(play) if " x" not in name and name not in ("draw", "pick up")
        }
        before = len(mine(play))
        if cards(play):
            cards(play)[0].click()
        else:
            press(play, shown(play)[0])
        assert len(mine(play)) == before + 1
    assert cards(play) == []


def test_each_card_of_the_hand_has_a_button_of_its_own() -> None:
    play = game()
    (place,) = [place for place in play.session.table.places if place.seat == 0]
    expected = [RANK_NAMES[rank] for rank, count in enumerate(place.hand) for _ in range(count)]
    assert [card.description for card in play._cards.children] == expected


def test_a_double_click_on_a_card_plays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("threeup_agents.play.widget.time.monotonic", lambda: now[0])
    play = game()
    first = cards(play)[0]
    first.click()
    assert len(mine(play)) == 1
    now[0] += 0.2
    cards(play)[0].click()  # what lies there by now
    first.click()
    assert len(mine(play)) == 1
    now[0] += 0.5
    cards(play)[0].click()
    assert len(mine(play)) == 2


def test_an_agent_that_fails_is_named() -> None:
    class Wrong:
        name = "wrong"

        def act(self, observations: Any, action_masks: Any) -> Any:
            """Give no action at all."""
            return np.full(len(observations), -1)

    play = game()
    play.session._referee.agents = [Wrong(), Wrong()]
    press(play, "hint")
    assert re.search("agent &#x27;greedy&#x27;: expected one of .*; got -1", play._notice.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.delitem(sys.modules, "threeup_agents.play.widget")
    with pytest.raises(ModuleNotFoundError, match=r"needs ipywidgets: pip install 'threeup\[not"):
        import threeup_agents.play.widget  # noqa: F401 (the import is what fails)
