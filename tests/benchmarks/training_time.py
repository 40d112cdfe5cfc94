"""Strength against training time at three players: the way before `--lookahead`'s, and its own.

The curves are those that training runs have left: of the shipped policy in its file, of the one
that was shipped before in `results/training_before.json` (it imitated `careful`, and learnt
from looks which of its own outputs to raise). Both on one core. Draws `results/training_time.svg`.

    python -m tests.benchmarks.training_time
"""

import json
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from threeup_agents.files import write_text
from threeup_agents.plots import GREY, SEATS, as_svg, style
from threeup_agents.search import positional

RESULTS: Final = Path(__file__).parent / "results"
BEFORE: Final = RESULTS / "training_before.json"
NUM_PLAYERS: Final = 3
OPPONENT: Final = "greedy"
Curve = list[dict[str, Any]]


def curves() -> dict[str, Curve]:
    """Measurements against one opponent, by how the policy has learnt and plays."""
    now: Any = positional.shipped(NUM_PLAYERS).training["curve"]
    before: Any = json.loads(BEFORE.read_text())["curve"]
    found = {
        "policy": [row for row in now if row["mode"] == "looking"],
        "policy:net": [row for row in now if row["mode"] == "net"],
        "before": [row for row in before if row["mode"] == "sampled"],
    }
    return {
        name: [row for row in rows if row["opponent"] == OPPONENT] for name, rows in found.items()
    }


def draw(found: dict[str, Curve]) -> str:
    """Win share by minutes, with 95% intervals, as SVG."""
    with style():
        figure = Figure(figsize=(6.5, 3.6), layout="constrained")
        axes = figure.subplots()
        for colour, (name, rows) in zip(SEATS, found.items(), strict=False):
            minutes = [row["seconds"] / 60 for row in rows]
            axes.plot(minutes, [row["win_share"] for row in rows], color=colour, label=name)
            low, high = ([row[end] for row in rows] for end in ("low", "high"))
            axes.fill_between(minutes, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.axhline(1 / NUM_PLAYERS, color=GREY, linewidth=0.8, linestyle=":")
        place = axes.get_yaxis_transform()
        axes.text(1, 1 / NUM_PLAYERS, "fair share", ha="right", va="bottom", transform=place)
        axes.set_xlabel("minutes on one core")
        axes.set_ylabel(f"win share against {OPPONENT}")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
        return as_svg(figure)


def main() -> None:
    """Draw, and print the table."""
    found = curves()
    write_text(RESULTS / "training_time.svg", draw(found))
    for name, rows in found.items():
        for row in rows:
            print(name, f"{row['seconds'] / 60:.1f} min", f"{row['win_share']:.3f}", sep="\t")


if __name__ == "__main__":
    main()
