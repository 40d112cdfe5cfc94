"""The pictures of a training run: strength, and how long its games are."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from threeup_agents.plots import BLUE, GREY, SEATS, as_svg, style
from threeup_agents.training.ladder import Measurement


def training(
    measurements: Sequence[Measurement], lengths: Sequence[tuple[int, float]], num_players: int
) -> str:
    """A policy in training: its strength, and how many actions its games take.

    Args:
        measurements: measurements of its strength.
        lengths: decisions trained on, and the mean length of the games since the last.
        num_players: seats at the table.
    """
    lines: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        lines.setdefault(f"against {measurement.opponent}", []).append(measurement)
    with style():
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for colour, (label, line) in zip(SEATS, lines.items(), strict=False):
            decisions = [measurement.decisions / 1000 for measurement in line]
            shares = [measurement.win_share for measurement in line]
            left.plot(decisions, shares, marker=".", color=colour, label=label)
            low, high = (
                [measurement.low for measurement in line],
                [measurement.high for measurement in line],
            )
            left.fill_between(decisions, low, high, color=colour, alpha=0.2, linewidth=0)
        left.axhline(1 / num_players, color=GREY, linewidth=0.8, linestyle=":")
        left.set_ylim(0, 1)
        left.set_ylabel("share of the win")
        if lines:
            left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        thousands = [decisions / 1000 for decisions, _ in lengths]
        right.plot(thousands, [length for _, length in lengths], color=BLUE)
        right.set_ylabel("actions in a game")
        for axes in (left, right):
            axes.set_xlabel("thousand decisions")
            axes.xaxis.set_major_formatter("{x:,.0f}")
        return as_svg(figure)


def draw_curves(measurements: Sequence[Measurement], num_players: int, path: Path) -> None:
    """Draw strength against decisions and against minutes, as a PNG whatever its name."""
    with style():
        _draw_curves(measurements, num_players).savefig(path, format="png")


def _draw_curves(measurements: Sequence[Measurement], num_players: int) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    lines: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in measurements:
        lines.setdefault((measurement.opponent, measurement.mode), []).append(measurement)
    for (opponent, mode), line in lines.items():
        shares = [measurement.win_share for measurement in line]
        for axes, xs in (
            (left, [measurement.decisions / 1e6 for measurement in line]),
            (right, [measurement.seconds / 60 for measurement in line]),
        ):
            axes.plot(xs, shares, marker=".", label=f"against {opponent}, {mode}")
            axes.fill_between(xs, [r.low for r in line], [r.high for r in line], alpha=0.2)
    for axes, label in ((left, "million decisions"), (right, "minutes")):
        axes.axhline(1 / num_players, color="grey", linewidth=1)
        axes.set_xlabel(label)
    left.set_ylabel("share of wins")
    if lines:
        left.legend()
    return figure
