"""Names from outside, such as those of folders, are shown as they are and never obeyed."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from threeup_agents import evaluation
from threeup_agents.analysis import console
from threeup_agents.analysis.console import write_games
from threeup_agents.arena.play import play
from threeup_agents.players.policy import Policy
from threeup_agents.plots import as_svg, style
from threeup_agents.replay.judge import judge, odds
from threeup_agents.replay.page import page
from threeup_agents.replay.recording import Recording, record
from threeup_agents.training import __main__ as train
from threeup_agents.training.curves import draw_curves, training
from threeup_agents.training.ladder import Measurement
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.observation import observation_size

NAMES = ["[/bad]", "$a_{$", "=cmd", "[bold]", ":skull:", "</b>&", "/*DATA*/", "{{ run }}", "{% x"]


class Named:
    """Takes the first legal action, under any name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def act(self, observations: np.ndarray, action_masks: np.ndarray) -> np.ndarray:
        """As `Agent.act`."""
        actions: np.ndarray = action_masks.argmax(axis=1)
        return actions


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Policies for two players in folders of such names, below the current one."""
    monkeypatch.chdir(tmp_path)
    names = [name for name in NAMES if not name.startswith("/")]
    layer = np.zeros((NUM_ACTIONS, observation_size(2)), np.float32)
    for name in names:
        Path(name).mkdir(parents=True)
        policy = Policy([(layer, np.zeros(NUM_ACTIONS, np.float32))], (2,))
        policy.save(Path(name) / "policy.safetensors")
    return names


def test_an_evaluation_shows_names_as_they_are(
    folders: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "Console", lambda: Console(width=150))
    evaluation.run(evaluation.Config(tuple(folders), deals=2, out=Path("out")))
    shown = capsys.readouterr().out
    report = Path("out/report.html").read_text()
    for name in folders:
        assert shown.count(name) >= len(folders)  # its rating, and its pairings
        assert report.count(html.escape(name)) >= len(folders)
    assert "</b>&" not in report


def test_no_name_in_a_table_of_games_is_a_formula(tmp_path: Path) -> None:
    names = ["=cmd", "+1", "-1", "@SUM", "'=cmd", "\tx", "plain", "a=b"]
    path = tmp_path / "games.csv"
    matches = [play([Named(name), "greedy"], 1, progress=False) for name in names]
    write_games(path, matches)
    table = pd.read_csv(path)
    found = pd.unique(table[["agent_0", "agent_1"]].to_numpy().ravel()).tolist()
    shown = ["'=cmd", "'+1", "'-1", "'@SUM", "''=cmd", "'\tx", "plain", "a=b"]
    assert sorted(found) == sorted([*shown, "greedy"])
    numbers = table.drop(columns=["agent_0", "agent_1"])
    assert not any(pd.api.types.is_string_dtype(column) for _, column in numbers.items())


def measurements() -> list[Measurement]:
    return [
        Measurement(1000 * i, 1.0 * i, name, "best", 0.5, 0.4, 0.6, 0.0)
        for name in NAMES
        for i in range(2)
    ]


def test_curves_show_names_as_they_are(tmp_path: Path) -> None:
    draw_curves(measurements(), 2, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[1:4] == b"PNG"
    drawn = training(measurements()[:12], [(0, 50.0), (1000, 60.0)], 2)
    for name in NAMES[:6]:
        assert f"against {html.escape(name, quote=False)}" in drawn


def test_a_chart_shows_names_as_they_are() -> None:
    with style():
        figure = Figure()
        axes = figure.add_subplot()
        axes.set_xticks(range(len(NAMES)), NAMES)
        drawn = as_svg(figure)
    for name in NAMES:
        assert f">{html.escape(name, quote=False)}</text>" in drawn


@pytest.mark.parametrize("draw", [lambda game: page(game).html, lambda game: odds(judge(game, 5))])
def test_a_recorded_game_shows_names_as_they_are(draw: Callable[[Recording], str]) -> None:
    plain = record(["greedy", "greedy"], seed=1, variant="mini")
    for pair in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True):
        game = Recording(plain.deck, pair, plain.actions, plain.variant, plain.max_steps)
        drawn = draw(game).replace("\\u003c", "<")
        for seat, name in enumerate(pair):
            assert re.search(f"seat {seat} {re.escape(html.escape(name, quote=False))}", drawn)


def test_a_training_shows_names_as_they_are(
    folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--num-games", "16", "--rollout-steps", "16", "--minibatch", "64", "--hidden", "16"]
    options += ["--num-threads", "1", "--decisions", "200", "--ladder-deals", "2"]
    assert train.main([*options, "--ladder", *folders, "--run-dir", "run"]) == 0
    said = capsys.readouterr().err
    for name in folders:
        assert f": {name} sampled " in said
