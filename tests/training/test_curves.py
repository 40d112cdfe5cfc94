import numpy as np
import pytest
from matplotlib.colors import to_hex

from threeup_agents.plots import GREY, SEATS
from threeup_agents.training.curves import strength
from threeup_agents.training.ladder import Measurement


def measured(opponents: str, modes: str, points: int) -> list[Measurement]:
    """A policy that gets better, with intervals of 0.1 to both sides."""
    return [
        Measurement(
            1_000_000 * i, 60.0 * i, opponent, mode, 0.2 + i / 10, 0.1 + i / 10, 0.3 + i / 10, 0.0
        )
        for i in range(points)
        for opponent in opponents.split()
        for mode in modes.split()
    ]


@pytest.mark.parametrize("num_players", [2, 6])
def test_both_curves_name_the_fair_share(num_players: int) -> None:
    for axes in strength(measured("greedy", "best", 3), num_players).axes:
        (line,) = [line for line in axes.lines if to_hex(line.get_color()) == GREY]
        assert np.asarray(line.get_ydata()).tolist() == [1 / num_players] * 2
        (name,) = axes.texts
        assert name.get_text().split() == ["fair", "share"]
        assert name.get_position()[0] > 1  # beside the axes
        assert name.get_position()[1] == 1 / num_players


@pytest.mark.parametrize("points", [1, 3])
def test_each_line_lies_in_a_band_of_its_colour(points: int) -> None:
    for axes in strength(measured("greedy careful", "sampled best", points), 2).axes:
        assert len(axes.collections) == 4
        lines = [line for line in axes.lines if to_hex(line.get_color()) != GREY]
        for line, band in zip(lines, axes.collections, strict=True):
            assert to_hex(np.asarray(band.get_facecolor())[0]) == to_hex(line.get_color())
            edge = np.asarray(band.get_paths()[0].vertices)[:, 1]
            shares = np.asarray(line.get_ydata())
            assert edge.min() == pytest.approx(shares.min() - 0.1)
            assert edge.max() == pytest.approx(shares.max() + 0.1)
            assert points > 1 or np.all(np.asarray(band.get_linewidth()) > 0)


def test_an_opponent_has_a_colour_and_a_mode_a_stroke() -> None:
    axes = strength(measured("greedy careful", "sampled best", 2), 2).axes[0]
    looks = {str(line.get_label()): (line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert looks["against greedy, sampled"] == (SEATS[0], "-")
    assert looks["against greedy, best"] == (SEATS[0], "--")
    assert looks["against careful, best"] == (SEATS[1], "--")
