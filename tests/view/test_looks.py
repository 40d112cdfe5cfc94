import re
from dataclasses import replace

import numpy as np
import pytest

from tests.builders import position
from tests.engine.test_observation import random_play
from threeup_env import env, show
from threeup_env.engine.cards import CLEAR
from threeup_env.view.card_art import HEIGHT, WIDTH, card, definitions
from threeup_env.view.picture import draw
from threeup_env.view.screen import pixels
from threeup_env.view.table import OPEN, look


def words_of(svg: str) -> list[tuple[float, str]]:
    """The words of a drawing with how far down they stand."""
    found = re.findall(r'<text x="\S+" y="(\S+)" [^>]*>([^<]*)<', svg)
    return [(float(y), words) for y, words in found]


@pytest.mark.parametrize("rank", range(CLEAR))
def test_a_number_lies_inside_its_card(rank: int) -> None:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    font = "font-family=\"'DejaVu Sans', sans-serif\""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>'
    svg += definitions() + card(rank, 0, 0, 1) + "</svg>"
    scale = 10
    ink = pixels(svg, scale * WIDTH).min(axis=2)[5 * scale : -5 * scale] < 128
    inside = np.flatnonzero(ink.any(axis=0)) / scale
    inside = inside[(inside > 1.5) & (inside < WIDTH - 1.5)]  # what lies outside is the border
    assert inside.min() > 3
    assert inside.max() < WIDTH - 3


@pytest.mark.parametrize("num_players", range(2, 7))
@pytest.mark.parametrize("tall", [False, True])
def test_whoever_looks_sits_at_the_bottom(num_players: int, tall: bool) -> None:
    batch = next(random_play(num_players, "standard", seed=1))
    for seat in range(num_players):
        svg = draw(look(batch, 0, seat), tall=tall)
        is_name = re.compile(r"seat \d( \(you\))?").fullmatch
        seats = [(y, words) for y, words in words_of(svg) if is_name(words)]
        assert len(seats) == num_players
        assert max(seats)[1] == f"seat {seat} (you)"


def test_frames_of_a_game_show_who_is_to_act_at_the_bottom() -> None:
    game = env(3, render_mode="rgb_array")
    game.reset(seed=2)
    while game.agent_selection == "player_0":
        game.step(int(game.last()[4]["action_mask"].argmax()))
    assert np.array_equal(game.render(), pixels(game.unwrapped.picture(1).svg))


@pytest.mark.parametrize(
    ("pile", "expected"),
    [
        ("5", ["pile: 1 card, 5 on top", "2 more 5s would clear it"]),
        ("2 10 10", ["pile: 3 cards, 10 x2 on top", "1 more 10 would clear it"]),
        ("", ["pile: empty, anything may be played"]),
    ],
)
def test_the_pile_in_words(pile: str, expected: list[str]) -> None:
    words = [words for _, words in words_of(show(position("5 9", pile=pile)).svg)]
    start = words.index(expected[0])
    assert words[start : start + len(expected)] == expected


@pytest.mark.parametrize("num_players", range(2, 7))
@pytest.mark.parametrize("tall", [False, True])
def test_what_all_can_infer_of_a_hand_cuts_no_name(num_players: int, tall: bool) -> None:
    batch = next(random_play(num_players, "standard", seed=1))
    table = look(batch, 0, OPEN)
    places = tuple(replace(place, below=(4, 9, 9)) for place in table.places)
    svg = draw(replace(table, places=places), ["careful"] * num_players, tall=tall)
    words = " ".join(words for _, words in words_of(svg))
    assert words.count("hand: 1 below 5, 2 below 10") == num_players
    assert all(f"seat {seat} careful" in words for seat in range(num_players))
