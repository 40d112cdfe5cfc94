"""How strong the hand-written and the searching agents are, and how much cards tell.

Prints a table: each agent at one seat against `greedy` at all others, every deal under all
rotations of the seats; the same search when it is dealt the true cards instead of drawn
ones, which only this script can do; and the time of a decision.

    python -m tests.benchmarks.search_strength --deals 600
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console
from rich.table import Table

import threeup_agents
from threeup_agents.analysis.statistics import mean_interval
from threeup_agents.arena.deals import draw_deals
from threeup_agents.search.flat import flat_rows
from threeup_agents.search.searchers import tree_rows
from threeup_env import Batch
from threeup_env.engine.rng import streams

Choose = Callable[[Batch, npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""Chooses in some rows of a batch; only that with the true cards looks at its states."""


@dataclass(frozen=True)
class Config:
    """Measure the strength of agents against greedy players."""

    agents: tuple[str, ...] = (
        "careful",
        "flat:50",
        "flat:200",
        "search:50",
        "search:200",
        "search:1000",
    )
    """Specs of `threeup_agents.make`; `true:` before a search deals it the true cards."""
    num_players: tuple[int, ...] = (2, 3, 4)
    """Table sizes."""
    against: str = "greedy"
    """Who sits at the other seats."""
    deals: int = 100
    """Deals; each is played once for every rotation of the seats."""
    seed: int = 0
    """Draws the deals and starts the agents."""


def main(config: Config) -> None:
    """Print a row for every agent as soon as it is measured, then the table."""
    table = Table("players", "agent", "win share", "95% interval", "fair", "ms a decision")
    for num_players in config.num_players:
        for spec in config.agents:
            shares, seconds = measure(spec, num_players, config)
            interval = mean_interval(shares)
            row = (
                str(num_players),
                spec,
                f"{interval.value:.3f}",
                f"{interval.low:.3f}-{interval.high:.3f}",
                f"{1 / num_players:.3f}",
                f"{seconds * 1e3:.2f}",
            )
            print(*row, sep="\t", flush=True)
            table.add_row(*row)
    Console().print(table)


def measure(spec: str, num_players: int, config: Config) -> tuple[npt.NDArray[np.float64], float]:
    """Win shares by deal, `[D]`, and seconds per decision that wasn't forced."""
    decks = draw_deals(config.deals, num_players, seed=config.seed)
    batch = Batch(num_players * len(decks), num_players, autoreset=False)
    batch.reset(decks=np.repeat(decks, num_players, axis=0))
    seats = np.arange(batch.num_games) % num_players
    choose = chooser(spec, config.seed + 1)
    others = chooser(config.against, config.seed + 2)
    spent = 0.0
    decisions = 0
    while batch.action_masks.any():
        running = batch.action_masks.any(axis=1)
        actions = np.zeros(batch.num_games, np.int64)
        own = np.flatnonzero(running & (batch.seats == seats))
        start = time.perf_counter()
        actions[own] = choose(batch, own)
        spent += time.perf_counter() - start
        decisions += int((batch.action_masks[own].sum(axis=1) > 1).sum())
        rest = np.flatnonzero(running & (batch.seats != seats))
        actions[rest] = others(batch, rest)
        batch.step(actions)
    return win_shares(batch, seats).reshape(-1, num_players).mean(axis=1), spent / decisions


def win_shares(batch: Batch, seats: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Each game's win share of one seat (R20, R21), from the last states; `[B]`."""
    return np.asarray(batch.states["winner"] == seats, np.float64)


def chooser(spec: str, seed: int) -> Choose:
    """An agent, or with `true:` before its name a search that is dealt the true cards."""
    if spec.startswith("true:"):
        name, count = spec.removeprefix("true:").split(":")
        return true_cards(name, int(count), seed)
    agent = threeup_agents.make(spec, seed)

    def choose(batch: Batch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return agent.act(batch.observations[rows], batch.action_masks[rows])

    return choose


def true_cards(name: str, count: int, seed: int) -> Choose:
    """The kernel of a search, with the game itself as its only world."""
    kernel = {"flat": flat_rows, "search": tree_rows}[name]
    start = streams(seed, 1)[0]

    def decide(batch: Batch, row: int) -> int:
        masks = batch.action_masks[row : row + 1]
        actions = np.empty(1, np.int64)
        kernel(
            batch.observations[row : row + 1],
            masks,
            start,
            count,
            batch.states[row : row + 1].copy(),
            np.empty(masks.shape, np.int64),
            np.empty(masks.shape),
            actions,
        )
        return int(actions[0])

    def choose(batch: Batch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return np.array(list(pool.map(lambda row: decide(batch, row), rows)), np.int64)

    return choose


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
