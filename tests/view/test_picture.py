import copy
import pickle
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo
from pettingzoo.test import render_test

from tests.engine.test_observation import random_play, twins
from tests.envs.test_aec import every_table, raw_and_wrapped
from threeup_env import Batch, ThreeUpEnv, ThreeUpVectorEnv, action_id, env, raw_env, show
from threeup_env.engine.state import STATE_DTYPE
from threeup_env.view.picture import draw
from threeup_env.view.screen import FRAME_WIDTH, WINDOW_WIDTH, Window, pixels
from threeup_env.view.table import OPEN, SPECTATOR, Table, look, seen_by_seat, seen_by_spectator

FRAME = (600, FRAME_WIDTH, 3)
SIZES = range(2, 7)


def faces(svg: str) -> list[int]:
    """The ranks of all cards drawn with their faces."""
    return sorted(int(rank) for rank in re.findall(r'href="#c(\d+)"', svg))


def backs(svg: str) -> int:
    return svg.count('href="#back"')


def last_moves(num_players: int, seed: int, games: int = 1) -> Iterator[tuple[Batch, Any]]:
    """Positions of random games, each with the record before and the action that led there."""
    batch = Batch(1, num_players, seed=seed, autoreset=False)
    rng = np.random.default_rng(seed)
    for _ in range(games):
        batch.reset()
        while batch.action_masks[0].any():
            action = int(rng.choice(np.flatnonzero(batch.action_masks[0])))
            before = batch.states[0].copy()
            batch.step([action])
            yield batch, (before, action)


@pytest.mark.parametrize("num_players", SIZES)
@pytest.mark.parametrize("tall", [False, True])
def test_a_picture_is_well_formed_and_nothing_lies_outside(num_players: int, tall: bool) -> None:
    for i, batch in enumerate(random_play(num_players, "standard", seed=1)):
        if i % 7:
            continue
        for viewer in (0, SPECTATOR, OPEN):
            svg = draw(look(batch, 0, viewer), ["an <agent> & co"] * num_players, tall=tall)
            root = ET.fromstring(svg)
            _, _, width, height = map(float, root.attrib["viewBox"].split())
            for x, y, scale in re.findall(r"translate\((\S+) (\S+)\) scale\((\S+)\)", svg):
                assert 0 <= float(x) <= width - 44 * float(scale)
                assert 0 <= float(y) <= height - 62 * float(scale)


@pytest.mark.parametrize("num_players", SIZES)
def test_the_open_picture_shows_each_card_outside_the_draw_pile_once(num_players: int) -> None:
    for batch, last in last_moves(num_players, seed=2):
        game = batch.states[0]
        expected = (game["pile"] + game["hand"].sum(axis=0) + game["face_up"].sum(axis=0)).sum()
        svg = draw(look(batch, 0, OPEN, last))
        assert len(faces(svg)) == expected
        deep = min(3, int(game["draw_pile_size"]))
        assert backs(svg) == int(game["face_down_size"].sum()) + deep


@pytest.mark.parametrize(
    "num_players", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4, 5)), 6]
)
def test_what_a_seat_may_not_know_changes_no_byte_of_its_picture(num_players: int) -> None:
    rng = np.random.default_rng(num_players)
    opened = 0
    for i, batch in enumerate(random_play(num_players, "standard", seed=num_players)):
        other = twins(batch, rng)
        for seat in range(num_players):
            assert draw(look(other, seat, seat)) == draw(look(batch, 0, seat))
        seat = i % num_players
        assert draw(look(other, seat, SPECTATOR)) == draw(look(batch, 0, SPECTATOR))
        opened += draw(look(other, seat, OPEN)) != draw(look(batch, 0, OPEN))
    assert opened


@pytest.mark.parametrize("num_players", SIZES)
def test_a_spectator_sees_the_same_from_any_seats_observation(num_players: int) -> None:
    for batch in random_play(num_players, "standard", seed=3):
        tables = [seen_by_spectator(batch.observe([seat])[0]) for seat in range(num_players)]
        assert all(table == tables[0] for table in tables)
        assert sum(tables[0].unseen) + sum(tables[0].out_of_play) + known(tables[0]) == 84


def known(table: Table) -> int:
    """Cards on the pile, and those of the seats that are shown."""
    return sum(table.pile) + sum(sum(p.hand) + sum(p.face_up) for p in table.places)


def test_what_others_lay_is_a_back_and_a_card_without_a_name() -> None:
    batch = Batch(1, 2, autoreset=False)
    batch.reset(seed=1)
    action = int(np.flatnonzero(batch.action_masks[0])[0])
    before = batch.states[0].copy()
    batch.step([action])
    own, others = look(batch, 0, 0, (before, action)), look(batch, 0, 1, (before, action))
    assert own.places[0].laid == 0
    assert sum(own.places[0].face_up) == 1
    assert others.places[0].laid == 1
    assert sum(others.places[0].face_up) == 0
    assert others.last_action == look(batch, 0, SPECTATOR, (before, action)).last_action
    assert others.last_action == "seat 0 lays a card"
    assert own.last_action == look(batch, 0, OPEN, (before, action)).last_action
    assert own.last_action != others.last_action


def test_a_hand_of_forty_shows_every_rank_and_its_number() -> None:
    batch = Batch(1, 2, autoreset=False)
    batch.reset(seed=4)
    while batch.states[0]["laying"]:
        batch.step(batch.action_masks.argmax(axis=1))
    states = batch.states.copy()
    game = states[0]
    size = int(game["draw_pile_size"])
    np.add.at(game["hand"][0], game["draw_pile"][size - 37 : size], 1)
    game["draw_pile"][size - 37 :] = 0
    game["draw_pile_size"] -= 37
    game["hand_size"][0] += 37
    game["known"][0] = game["hand"][0]  # picked up, all of them
    batch.load(states)
    for tall in (False, True):
        svg = draw(look(batch, 0, 0), tall=tall)
        assert ">40 of 46 in hand<" in svg
        counts = [int(count) for count in game["hand"][0] if count > 1]
        assert [int(count) for count in re.findall(r">x(\d+)<", svg)] == counts


def test_who_looks_must_be_somebody() -> None:
    batch = Batch(3, 2)
    batch.reset()
    for viewer in (2, -1, np.int64(-1), "all", True, np.True_, 1.0, np.float64(1)):
        with pytest.raises(ValueError, match=r"viewer: expected a seat in 0\.\.1, 'spectator'"):
            show(batch, 1, viewer)  # type: ignore[arg-type]  # refusing it is the point


@pytest.mark.parametrize("integer", [np.int8, np.int64, np.uint8])
def test_a_seat_of_any_integer_type_sees_its_own_hand(integer: Any) -> None:
    batch = Batch(1, 3)
    batch.reset(seed=4)
    before = batch.states[0].copy()
    action = int(batch.action_masks[0].argmax())
    batch.step([action])
    game = raw_env(3, render_mode="ansi")
    game.reset(seed=4)
    game.step(action)
    for seat in range(3):
        last = (before, action)
        seen = look(batch, 0, integer(seat), last)
        assert seen == look(batch, 0, seat, last) and seen.viewer == seat
        assert seen.places[seat].hidden == 0
        assert show(batch, viewer=integer(seat)).svg == show(batch, viewer=seat).svg
        assert game.picture(integer(seat)).svg == game.picture(seat).svg


def test_a_row_of_a_batch_is_drawn(tmp_path: Path) -> None:
    batch = Batch(3, 2)
    batch.reset(seed=5)
    drawn = show(batch, 2, viewer=1)
    assert drawn.svg == draw(seen_by_seat(batch.observe([1, 1, 1])[2]))
    drawn.save(tmp_path / "table.svg")
    assert (tmp_path / "table.svg").read_text(encoding="utf-8") == drawn.svg
    assert repr(drawn) == "Picture()"
    assert drawn._repr_html_().startswith('<img src="data:image/svg+xml;base64,')


def check_render(make: Any, num_players: int, variant: str) -> None:
    render_test(
        lambda render_mode: make(num_players, variant, render_mode=render_mode),
        {
            "ansi": lambda text: max(map(len, text.splitlines())) <= 80,
            "rgb_array": lambda frame: frame.shape == FRAME,
        },
    )


@pytest.mark.parametrize(
    ("make", "num_players", "variant"),
    [
        (env, 2, "mini"),
        pytest.param(raw_env, 2, "standard", marks=pytest.mark.slow),
        pytest.param(env, 6, "standard", marks=pytest.mark.slow),
        pytest.param(raw_env, 6, "listed", marks=pytest.mark.slow),
    ],
)
def test_pettingzoos_render_test_passes_in_every_mode(
    make: Any, num_players: int, variant: str
) -> None:
    check_render(make, num_players, variant)


@every_table
@raw_and_wrapped
def test_pettingzoos_render_test_passes_in_text_at_every_table(
    make: Any, num_players: int, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PettingZoo tries every mode that is declared, and makes one game with a window it never opens.
    monkeypatch.setitem(raw_env.metadata, "render_modes", ["ansi"])
    check_render(lambda *table, render_mode: make(*table, render_mode="ansi"), num_players, variant)


@pytest.mark.parametrize("num_players", [2, 4])
def test_every_move_changes_the_frame(num_players: int) -> None:
    game = env(num_players, max_steps=12, render_mode="rgb_array")
    game.reset(seed=6)
    frames = [game.render()]
    while not any(game.terminations.values()) and not any(game.truncations.values()):
        game.step(int(game.last()[4]["action_mask"].argmax()))
        frames.append(game.render())
    assert all(frame.shape == FRAME and frame.dtype == np.uint8 for frame in frames)
    assert all((before != after).any() for before, after in pairwise(frames))


@pytest.mark.parametrize("num_players", SIZES)
def test_every_move_changes_the_drawing(num_players: int) -> None:
    for viewer in (0, SPECTATOR, OPEN):
        drawings = [draw(look(b, 0, viewer, last)) for b, last in last_moves(num_players, seed=7)]
        assert all(before != after for before, after in pairwise(drawings))


@pytest.mark.parametrize("make", [raw_env, env])
def test_a_notebook_shows_an_environment(make: Any) -> None:
    game = make(3)
    assert game.unwrapped._repr_html_() is None
    game.reset(seed=1)
    assert game._repr_html_() == game.picture()._repr_html_()
    assert game.picture("open").svg != game.picture("spectator").svg
    assert "seat 2 (you)" in game.picture(2).svg


def test_a_notebook_shows_a_learners_game() -> None:
    game = ThreeUpEnv(seat=1)
    assert game._repr_html_() is None
    game.reset(seed=1)
    assert game._repr_html_() == game.picture()._repr_html_()
    assert "seat 1 (you)" in game.picture().svg


def test_the_end_by_an_illegal_action_is_told() -> None:
    game = env(2, render_mode="ansi")
    game.reset(seed=0)
    game.step(action_id("pick up"))
    assert "an illegal action has ended the game" in game.picture().svg


@pytest.mark.parametrize("make", [raw_env, env])
def test_a_copy_of_a_game_with_a_window_goes_on_without_it(make: Any) -> None:
    game = make(2, render_mode="human")
    game.reset(seed=1)
    copies = [copy.deepcopy(game), pickle.loads(pickle.dumps(game))]
    game.close()
    for other in copies:
        assert other.unwrapped._window._surface is None
        other.step(int(other.last()[4]["action_mask"].argmax()))
        other.close()


def test_the_window_shows_the_frame() -> None:
    pygame = pytest.importorskip("pygame")
    game = raw_env(2, render_mode="human")
    game.reset(seed=1)
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    assert np.array_equal(shown, pixels(game.picture().svg, WINDOW_WIDTH))
    game.close()
    assert pygame.display.get_surface() is None


@pytest.mark.parametrize("num_players", [2, 6])
def test_gymnasium_shows_the_learners_game_in_every_mode(num_players: int) -> None:
    for mode in gymnasium.spec("threeup_env/ThreeUp-v1").make().metadata["render_modes"]:
        game = gymnasium.make("threeup_env/ThreeUp-v1", num_players=num_players, render_mode=mode)
        _, info = game.reset(seed=1)
        game.step(np.int64(info["action_mask"].argmax()))
        shown: Any = game.render()
        if mode == "rgb_array":
            assert shown.shape == FRAME
        else:
            assert isinstance(shown, str if mode == "ansi" else type(None))
        game.close()


def test_gymnasium_records_a_video(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    game = RecordVideo(
        gymnasium.make("threeup_env/ThreeUp-v1", render_mode="rgb_array", max_steps=12),
        str(tmp_path / "videos"),
        disable_logger=True,
    )
    _, info = game.reset(seed=1)
    over = False
    while not over:
        _, _, terminated, truncated, info = game.step(np.int64(info["action_mask"].argmax()))
        over = terminated or truncated
    game.close()  # type: ignore[no-untyped-call]
    assert (tmp_path / "videos" / "rl-video-episode-0.mp4").stat().st_size > 1000


def test_a_vector_of_games_gives_a_frame_each() -> None:
    games = ThreeUpVectorEnv(2, num_players=3, render_mode="rgb_array")
    games.reset(seed=1)
    frames = games.render()
    assert frames is not None
    assert [np.asarray(frame).shape for frame in frames] == [FRAME] * 2


def test_twins_look_the_same_through_the_environment_in_pixels_too() -> None:
    game = raw_env(2, render_mode="rgb_array")
    game.reset(seed=1)
    for _ in range(8):
        game.step(int(game.last()[4]["action_mask"].argmax()))
    other = copy.deepcopy(game)
    observer = int(game._batch.seats[0])
    states = twins(game._batch, np.random.default_rng(1)).states[[observer]].astype(STATE_DTYPE)
    other._batch.load(states)
    assert (other._batch.states != game._batch.states).any()
    assert np.array_equal(np.asarray(other.render()), np.asarray(game.render()))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("threeup_env.view.screen.importlib.import_module", fail)
    with pytest.raises(ImportError, match=r"pip install 'threeup\[render\]'"):
        pixels("<svg/>")
    with pytest.raises(ImportError, match=r"needs pygame: pip install 'threeup\[render\]'"):
        Window().show("<svg/>")
