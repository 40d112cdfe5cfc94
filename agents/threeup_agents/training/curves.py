"""The pictures of a training run: strength, and how long its games are."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from threeup_agents.plots import (
    BLUE,
    GRID,
    SEATS,
    as_svg,
    draw_band,
    legend_above,
    mark_fair,
    style,
)
from threeup_agents.training.ladder import Measurement

_STROKES: Final = (("o", "-"), ("^", "--"), ("s", ":"))
"""Marker and line of each mode in which a policy plays; an opponent has a colour."""


def training(
    measurements: Sequence[Measurement], lengths: Sequence[tuple[int, float]], num_players: int
) -> str:
    """A policy in training: its strength, and how many actions its games take.

    Args:
        measurements: measurements of its strength, in one mode.
        lengths: decisions trained on, and the mean length of the games since the last.
        num_players: seats at the table.
    """
    with style():
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        thousands = [measurement.decisions / 1000 for measurement in measurements]
        _draw_strength(left, measurements, thousands, num_players)
        if measurements:
            legend_above(left, columns=2)
        right.plot(
            [decisions / 1000 for decisions, _ in lengths], [n for _, n in lengths], color=BLUE
        )
        right.set_ylabel("actions in a game")
        right.grid(axis="y", color=GRID)
        for axes in (left, right):
            axes.set_xlim(left=0)
            axes.set_xlabel("thousand decisions")
            axes.xaxis.set_major_formatter("{x:,.0f}")
        return as_svg(figure)


def draw_curves(measurements: Sequence[Measurement], num_players: int, path: Path) -> None:
    """Draw strength against decisions and against minutes, as a PNG whatever its name."""
    with style():
        strength(measurements, num_players).savefig(path, format="png", dpi=150)


def strength(measurements: Sequence[Measurement], num_players: int) -> Figure:
    """Strength against decisions and against minutes, as a picture to be saved."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    millions = [measurement.decisions / 1e6 for measurement in measurements]
    minutes = [measurement.seconds / 60 for measurement in measurements]
    for axes, xs, label in ((left, millions, "million decisions"), (right, minutes, "minutes")):
        _draw_strength(axes, measurements, xs, num_players)
        axes.set_xlabel(label)
    right.set_ylabel("")
    if measurements:
        columns = min(3, len({measurement.opponent for measurement in measurements}))
        lines = left.get_legend_handles_labels()
        figure.legend(*lines, loc="outside upper left", ncols=columns, frameon=False)
    return figure


def _draw_strength(
    axes: Any, measurements: Sequence[Measurement], xs: Sequence[float], num_players: int
) -> None:
    """A line with its 95% band for each opponent and mode, and the fair share."""
    lines: dict[tuple[str, str], list[tuple[float, Measurement]]] = {}
    for x, measurement in zip(xs, measurements, strict=True):
        lines.setdefault((measurement.opponent, measurement.mode), []).append((x, measurement))
    modes = list(dict.fromkeys(mode for _, mode in lines))
    colours = dict(
        zip(dict.fromkeys(opponent for opponent, _ in lines), cycle(SEATS), strict=False)
    )
    for (opponent, mode), line in lines.items():
        marker, stroke = _STROKES[modes.index(mode) % len(_STROKES)]
        draw_band(
            axes,
            [x for x, _ in line],
            [measurement.win_share for _, measurement in line],
            [measurement.low for _, measurement in line],
            [measurement.high for _, measurement in line],
            label=f"against {opponent}" + f", {mode}" * (len(modes) > 1),
            color=colours[opponent],
            linestyle=stroke,
            marker=marker,
            markersize=4,
        )
    fair = 1 / num_players
    most = max((measurement.high for measurement in measurements), default=0)
    axes.set_ylim(0, min(1.02, max(2.04 * fair, 1.08 * most)))
    axes.set_xlim(left=0)
    axes.set_ylabel("share of the win")
    axes.grid(axis="y", color=GRID)
    mark_fair(axes, fair)
