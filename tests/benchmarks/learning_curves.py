"""Learning curves of several seeds: what the critic's view, all seats and a teacher are worth.

Trains each arm with each seed, prints mean and spread at the end, and draws strength
against decisions and against minutes. Runs that are already there are not trained again,
and one that was stopped goes on.

    python -m tests.benchmarks.learning_curves --num-players 2 --out runs/curves
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tests.benchmarks.measured import note
from threeup_agents.training import __main__ as train
from threeup_agents.training.settings import read_config

ARMS: Final[dict[str, tuple[str, ...]]] = {
    "all seats, critic sees the cards": (),
    "critic sees what the seat sees": ("--no-privileged-critic",),
    "one seat against greedy": ("--one-seat",),
    "careful as teacher at first": ("--teacher", "careful"),
}
"""Options of train.py beside those that all arms share."""


@dataclass(frozen=True)
class Config:
    """Train every arm with every seed and compare."""

    num_players: int = 2
    """Seats at the table."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """One run each."""
    decisions: int = 2_000_000
    """Of each run; a teacher plays the first quarter."""
    ladder_every: int = 500_000
    """Decisions between two points of a curve."""
    ladder_deals: int = 1000
    """Deals a point, each under every rotation of the seats, against greedy."""
    num_threads: int = 1
    """Threads of the networks."""
    out: Path = Path("runs/curves")
    """Folder of the runs and of the picture."""
    write: Path | None = None
    """File that takes a row an arm for the documentation, docs/results/learning.json."""


def main(config: Config) -> None:
    """Train, print a row an arm, draw."""
    table = Table(
        "arm", "mean", "lowest", "highest", "minutes", title=f"{config.num_players} players"
    )
    curves: dict[str, list[list[dict[str, Any]]]] = {}
    for arm in ARMS:
        curves[arm] = [curve(config, arm, seed) for seed in config.seeds]
        last = [points[-1]["win_share"] for points in curves[arm]]
        minutes = [points[-1]["seconds"] / 60 for points in curves[arm]]
        numbers = (np.mean(last), min(last), max(last))
        row = [arm, *(f"{number:.3f}" for number in numbers), f"{np.mean(minutes):.1f}"]
        print(*row, sep="\t", flush=True)
        table.add_row(*row)
        if config.write is not None:
            facts = {"arm": arm, "num_players": config.num_players, "decisions": config.decisions}
            facts |= {"mean": float(np.mean(last)), "deviation": float(np.std(last, ddof=1))}
            note(config.write, [facts | {"seeds": len(last)}], ("arm", "num_players"))
    draw(config, curves)
    Console().print(table)


def curve(config: Config, arm: str, seed: int) -> list[dict[str, Any]]:
    """Points of one run, sampled play against greedy; trains it as far as it isn't there."""
    folder = config.out / f"{config.num_players}p-{list(ARMS).index(arm)}-{seed}"
    options = ["--seed", str(seed), "--run-dir", str(folder), "--ladder", "greedy", *ARMS[arm]]
    if "--teacher" in options:
        options += ["--teacher-decisions", str(config.decisions // 4)]
    for name in ("num_players", "decisions", "ladder_every", "ladder_deals", "num_threads"):
        options += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    return [point for point in finish(folder, options) if point["mode"] == "sampled"]


def finish(folder: Path, options: list[str]) -> list[dict[str, Any]]:
    """Train a run with these options of train.py as far as it isn't there; its curve."""
    if (folder / "config.json").exists():
        found = read_config(folder / "config.json")
        wanted, there = asdict(train.parse(options)), asdict(found)
        if other := {name: there[name] for name in wanted if wanted[name] != there[name]}:
            right = {name: wanted[name] for name in other}
            raise SystemExit(f"{folder}: expected a run with {right}; got {other}")
        options = ["--resume", str(folder)]
    points = read_points(folder)
    if not points or points[-1]["decisions"] < train.parse(options).decisions:
        if code := train.main(options):
            raise SystemExit(code)
        points = read_points(folder)
    return points


def read_points(folder: Path) -> list[dict[str, Any]]:
    """The curve of a run so far."""
    path = folder / "curve.json"
    points: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return points


def draw(config: Config, curves: dict[str, list[list[dict[str, Any]]]]) -> None:
    """Mean and range over the seeds as a PNG."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for arm, runs in curves.items():
        shares = np.array([[point["win_share"] for point in run] for run in runs])
        for axes, unit, scale in zip(panels, ("decisions", "seconds"), (1e6, 60), strict=True):
            xs = np.mean([[point[unit] / scale for point in run] for run in runs], axis=0)
            axes.plot(xs, shares.mean(axis=0), marker=".", label=arm)
            axes.fill_between(xs, shares.min(axis=0), shares.max(axis=0), alpha=0.2)
    for axes, label in zip(panels, ("million decisions", "minutes"), strict=True):
        axes.axhline(1 / config.num_players, color="grey", linewidth=1)
        axes.set_xlabel(label)
    panels[0].set_ylabel("share of wins against greedy")
    panels[0].legend()
    figure.savefig(config.out / f"{config.num_players}p.png")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
