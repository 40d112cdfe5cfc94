"""The pictures of a report and of the notebooks, as SVG text."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from agents.judge import Judgement
    from agents.ladder import Rung

_INK: Final = "#1f2430"
_GREY: Final = "#9aa2b1"
_BLUE: Final = "#2b5c8a"
_SEATS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of lines, told apart by colour-blind readers too (Okabe & Ito 2008)."""
_MISTAKE: Final = 0.05
"""What a choice must cost to be named in the picture of a game."""
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: small, sharp, searchable
    "svg.hashsalt": "threeup",  # the same picture gives the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def ratings(results: dict[str, Any]) -> str:
    """Ratings with their intervals, best on top."""
    rows = results["ratings"][::-1]
    with _settings():
        figure = Figure(figsize=(8, 0.9 + 0.34 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        values = np.array([row["rating"] for row in rows])
        reach = np.array(
            [[row["rating"] - row["low"], row["high"] - row["rating"]] for row in rows]
        )
        axes.errorbar(values, range(len(rows)), xerr=reach.T, fmt="o", color=_BLUE, capsize=3)
        axes.set_yticks(range(len(rows)), [row["agent"] for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.axvline(0, color=_GREY, linewidth=0.8, linestyle=":")
        axes.grid(axis="x", color="#eceef2")
        axes.set_axisbelow(True)
        axes.set_xlabel("Plackett-Luce rating")
        return _svg(figure)


def heat_map(results: dict[str, Any]) -> str:
    """Win share of each agent (row) at a table of each other one (column)."""
    names = [row["agent"] for row in results["ratings"]]
    size = len(names)
    shares = np.full((size, size), np.nan)
    words = {}
    for row in results["pairings"]:
        i, j = names.index(row["agent"]), names.index(row["against"])
        shares[i, j] = row["win_share"]
        form = "({:.2f})" if row["verdict"] == "not separable" else "{:.2f}"
        words[i, j] = form.format(row["win_share"])
    fair = results["fair_share"]
    # The fair share is white; equal odds ratios are equally far from it.
    odds = np.log(np.clip(shares, 0.01, 0.99) / (1 - np.clip(shares, 0.01, 0.99)))
    odds -= np.log(fair / (1 - fair))
    with _settings():
        figure = Figure(figsize=(2.4 + 0.75 * size, 1.2 + 0.5 * size), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(odds, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
        for (i, j), word in words.items():
            color = "white" if abs(odds[i, j]) > 2 else _INK
            axes.text(j, i, word, ha="center", va="center", color=color)
        axes.set_xticks(range(size), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return _svg(figure)


def seats(results: dict[str, Any]) -> str:
    """Share of the win by seat, with the fair share."""
    rows = results["seats"]
    with _settings():
        figure = Figure(figsize=(4.4, 2.8), layout="constrained")
        axes = figure.add_subplot()
        values = np.array([row["win_share"] for row in rows])
        low = values - [row["low"] for row in rows]
        high = np.array([row["high"] for row in rows]) - values
        axes.errorbar(range(len(rows)), values, yerr=[low, high], fmt="o", color=_BLUE, capsize=3)
        axes.axhline(results["fair_share"], color=_GREY, linewidth=0.8, linestyle=":")
        axes.set_xticks(range(len(rows)))
        axes.set_xlim(-0.5, len(rows) - 0.5)
        axes.set_xlabel("seat")
        axes.set_ylabel("share of the win")
        return _svg(figure)


def lengths(results: dict[str, Any]) -> str:
    """How many actions games take."""
    histogram = results["length"]["histogram"]
    with _settings():
        figure = Figure(figsize=(4.4, 2.8), layout="constrained")
        axes = figure.add_subplot()
        axes.stairs(histogram["counts"], histogram["edges"], fill=True, color=_BLUE)
        axes.set_xlabel("actions in a game")
        axes.set_ylabel("games")
        return _svg(figure)


def odds(judgement: "Judgement") -> str:
    """The win share that each seat could expect along a game, and the choices that cost most."""
    with _settings():
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for seat, name in enumerate(judgement.agents):
            own = judgement.seat == seat
            label = f"seat {seat} {name}"
            colour = _SEATS[seat]
            axes.plot(judgement.step[own], judgement.value[own], color=colour, label=label)
        for i in np.flatnonzero(judgement.cost >= _MISTAKE):
            step, value, colour = judgement.step[i], judgement.value[i], _SEATS[judgement.seat[i]]
            after = value - judgement.cost[i]
            axes.plot([step, step], [value, after], color=colour, linewidth=1)
            axes.plot([step], [after], "v", color=colour)
        for i in np.argsort(-judgement.cost)[:3]:
            if judgement.cost[i] >= _MISTAKE:
                words = f"{judgement.taken[i]}, not {judgement.best[i]}"
                place = judgement.step[i], judgement.value[i] - judgement.cost[i]
                box = {"boxstyle": "square,pad=0.1", "color": "white", "alpha": 0.8}
                axes.annotate(
                    words, place, (6, -4), textcoords="offset points", fontsize=9, bbox=box
                )
        axes.axhline(1 / len(judgement.agents), color=_GREY, linewidth=0.8, linestyle=":")
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("actions taken")
        axes.set_ylabel(f"win share, by {judgement.judge}")
        axes.legend(loc="upper left", frameon=False)
        return _svg(figure)


def training(
    rungs: "Sequence[Rung]", lengths: Sequence[tuple[int, float]], num_players: int
) -> str:
    """A policy in training: its strength, and how many actions its games take.

    Args:
        rungs: measurements of its strength.
        lengths: decisions trained on, and the mean length of the games since the last.
        num_players: seats at the table.
    """
    lines: dict[str, list[Rung]] = {}
    for rung in rungs:
        lines.setdefault(f"against {rung.opponent}", []).append(rung)
    with _settings():
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for colour, (label, line) in zip(_SEATS, lines.items(), strict=False):
            decisions = [rung.decisions / 1000 for rung in line]
            shares = [rung.win_share for rung in line]
            left.plot(decisions, shares, marker=".", color=colour, label=label)
            low, high = [rung.low for rung in line], [rung.high for rung in line]
            left.fill_between(decisions, low, high, color=colour, alpha=0.2, linewidth=0)
        left.axhline(1 / num_players, color=_GREY, linewidth=0.8, linestyle=":")
        left.set_ylim(0, 1)
        left.set_ylabel("share of the win")
        if lines:
            left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        thousands = [decisions / 1000 for decisions, _ in lengths]
        right.plot(thousands, [length for _, length in lengths], color=_BLUE)
        right.set_ylabel("actions in a game")
        for axes in (left, right):
            axes.set_xlabel("thousand decisions")
            axes.xaxis.set_major_formatter("{x:,.0f}")
        return _svg(figure)


@contextmanager
def _settings() -> Iterator[None]:
    with rc_context(_SETTINGS):
        yield


def _svg(figure: Figure) -> str:
    """The picture as an `<svg>` element, with no date in it."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
