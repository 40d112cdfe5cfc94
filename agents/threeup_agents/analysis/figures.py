"""The pictures of a report and of the notebooks, as SVG text."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from threeup_agents.plots import BLUE, GREY, INK, as_svg, style


def ratings(results: dict[str, Any]) -> str:
    """Ratings with their intervals, best on top."""
    rows = results["ratings"][::-1]
    with style():
        figure = Figure(figsize=(8, 0.9 + 0.34 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        values = np.array([row["rating"] for row in rows])
        reach = np.array(
            [[row["rating"] - row["low"], row["high"] - row["rating"]] for row in rows]
        )
        axes.errorbar(values, range(len(rows)), xerr=reach.T, fmt="o", color=BLUE, capsize=3)
        axes.set_yticks(range(len(rows)), [row["agent"] for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
        axes.grid(axis="x", color="#eceef2")
        axes.set_axisbelow(True)
        axes.set_xlabel("Plackett-Luce rating")
        return as_svg(figure)


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
    with style():
        figure = Figure(figsize=(2.4 + 0.75 * size, 1.2 + 0.5 * size), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(odds, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
        for (i, j), word in words.items():
            color = "white" if abs(odds[i, j]) > 2 else INK
            axes.text(j, i, word, ha="center", va="center", color=color)
        axes.set_xticks(range(size), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return as_svg(figure)


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
        axes.axhline(results["fair_share"], color=GREY, linewidth=0.8, linestyle=":")
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
