"""The pictures of a report and of the notebooks, as SVG text."""

from typing import Any, Final

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from threeup_agents.analysis.tables import order
from threeup_agents.plots import BLUE, GREY, GRID, as_svg, mark_fair, style

_BLACK: Final = "#101010"
_WHITE: Final = "#fafafa"
"""Of the words on coloured cells; the cells are the same on dark paper, so these are too."""
_MOST_ODDS: Final = 3.0


def ratings(results: dict[str, Any]) -> str:
    """Ratings with their intervals, in the order of the standings."""
    place = {name: i for i, name in enumerate(order(results))}
    rows = sorted(results["ratings"], key=lambda row: -place[row["agent"]])
    with style():
        figure = Figure(figsize=(5.4, 0.9 + 0.34 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        values = np.array([row["rating"] for row in rows])
        reach = np.array(
            [[row["rating"] - row["low"], row["high"] - row["rating"]] for row in rows]
        )
        axes.errorbar(values, range(len(rows)), xerr=reach.T, fmt="o", color=BLUE, capsize=3)
        axes.set_yticks(range(len(rows)), [row["agent"] for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
        axes.grid(axis="x", color=GRID)
        axes.set_axisbelow(True)
        axes.set_xlabel("Plackett-Luce rating")
        return as_svg(figure)


def heat_map(results: dict[str, Any]) -> str:
    """Win share of each agent (row) at a table of each other one (column)."""
    names = order(results)
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
    with style():
        figure = Figure(figsize=(2.4 + 0.75 * size, 1.2 + 0.5 * size), layout="constrained")
        axes = figure.add_subplot()
        colours = colormaps["RdBu"](odds / (2 * _MOST_ODDS) + 0.5)
        for (i, j), word in words.items():
            cell = tuple(map(float, colours[i, j, :3]))
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=cell, linewidth=0))
            axes.text(j, i, word, ha="center", va="center", color=word_colour(cell))
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
        axes.set_xticks(range(size), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return as_svg(figure)


def word_colour(cell: tuple[float, ...]) -> str:
    """Black or white: whichever stands out more on a cell of a colour, red, green, blue in 0..1.

    By relative luminance (Web Content Accessibility Guidelines 2.2), in which the contrast to
    black is the greater one from 0.179 on.

    >>> word_colour((1, 1, 0)) == word_colour((0, 1, 0)) == "#101010"
    True
    >>> word_colour((0, 0, 1)) == word_colour((0.5, 0, 0)) == "#fafafa"
    True
    """
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in cell]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return _BLACK if luminance > 0.179 else _WHITE


def seats(results: dict[str, Any]) -> str:
    """Share of the win by seat, with the fair share."""
    rows = results["seats"]
    with style():
        figure = Figure(figsize=(4.4, 2.8), layout="constrained")
        axes = figure.add_subplot()
        values = np.array([row["win_share"] for row in rows])
        low = values - [row["low"] for row in rows]
        high = np.array([row["high"] for row in rows]) - values
        axes.errorbar(range(len(rows)), values, yerr=[low, high], fmt="o", color=BLUE, capsize=3)
        mark_fair(axes, results["fair_share"])
        axes.set_xticks(range(len(rows)))
        axes.set_xlim(-0.5, len(rows) - 0.5)
        axes.set_xlabel("seat")
        axes.set_ylabel("share of the win")
        return as_svg(figure)


def lengths(results: dict[str, Any]) -> str:
    """How many actions games take."""
    histogram = results["length"]["histogram"]
    with style():
        figure = Figure(figsize=(4.4, 2.8), layout="constrained")
        axes = figure.add_subplot()
        axes.stairs(histogram["counts"], histogram["edges"], fill=True, color=BLUE)
        axes.set_xlabel("actions in a game")
        axes.set_ylabel("games")
        return as_svg(figure)
