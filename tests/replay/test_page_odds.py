from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.replay.test_replay import data_of, random_game, twin_game
from threeup_agents.replay import __main__ as command
from threeup_agents.replay.judge import Judgement, judge
from threeup_agents.replay.page import page
from threeup_agents.replay.recording import Recording
from threeup_env.view.table import OPEN, SPECTATOR


def odds_of(recording: Recording, judgement: Judgement) -> dict[str, Any]:
    views = data_of(page(recording, judgement=judgement).html)["views"]
    return {view["name"]: view["odds"] for view in views}


def test_the_curve_is_the_judgement() -> None:
    recording = random_game(2, seed=5, steps=30)
    judgement = judge(recording, 20)
    odds = odds_of(recording, judgement)
    assert len(odds["open"]) == len(judgement.step) > 5
    for i, (step, seat, best, value, taken, played) in enumerate(odds["open"]):
        assert (step, seat) == (judgement.step[i], judgement.seat[i])
        assert (best, taken) == (judgement.best[i], judgement.taken[i])
        assert value == pytest.approx(judgement.value[i], abs=6e-4)
        assert value - played == pytest.approx(judgement.cost[i], abs=2e-3)


def test_odds_are_for_those_who_know_the_choices() -> None:
    recording = random_game(3, seed=5, steps=30)
    odds = odds_of(recording, judge(recording, 5))
    assert odds["spectator"] == []
    for seat in range(3):
        own = [row for row in odds["open"] if row[1] == seat]
        assert odds[f"seat {seat}"] == own != []


@pytest.mark.parametrize(("num_players", "steps"), [(2, 14), (3, 25)])
def test_the_odds_of_a_seat_are_the_same_for_all_that_it_may_not_know(
    num_players: int, steps: int
) -> None:
    recording = random_game(num_players, seed=num_players, steps=steps)
    rng = np.random.default_rng(1)
    for viewer in (0, num_players - 1):
        other = twin_game(recording, viewer, rng)
        here, there = judge(recording, 20), judge(other, 20)
        assert page(other, [viewer], there) == page(recording, [viewer], here)
        assert page(other, [SPECTATOR], there) == page(recording, [SPECTATOR], here)
        assert page(other, [OPEN], there) != page(recording, [OPEN], here)


def test_a_judgement_adds_little_to_a_page() -> None:
    recording = random_game(2, seed=5)
    plain, judged = page(recording).html, page(recording, judgement=judge(recording, 5)).html
    assert len(plain) < len(judged) < 1.05 * len(plain)


def test_the_command_judges_unless_told_not_to(tmp_path: Path) -> None:
    recording = random_game(2, seed=5, steps=12)
    recording.save(tmp_path / "game.json")
    given = [str(tmp_path / "game.json"), "--out", str(tmp_path / "page.html")]
    for options, judgement in (
        ([], judge(recording, 1000)),
        (["--worlds", "30"], judge(recording, 30)),
        (["--worlds", "0"], None),
    ):
        assert command.main([*given, *options]) == 0
        assert (tmp_path / "page.html").read_text() == page(recording, (), judgement).html


def test_every_choice_is_counted() -> None:
    recording = random_game(2, seed=5, steps=12)
    seen: list[int] = []
    judgement = judge(recording, 5, watch=lambda: seen.append(1))
    assert len(seen) == len(judgement.step)


def test_a_wrong_number_of_worlds_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random_game(2, seed=1, steps=5).save(tmp_path / "game.json")
    assert command.main([str(tmp_path / "game.json"), "--worlds", "-1"]) == 2
    assert capsys.readouterr().err == "threeup page: worlds: expected at least 0; got -1\n"
