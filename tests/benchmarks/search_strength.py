"""How strong agents are, and how much cards tell.

Prints a table: each agent at one seat against `greedy` at all others, every deal under all
rotations of the seats; the same search when it is dealt the true cards instead of drawn
ones, which only this script can do; and the processor time of a decision.

    python -m tests.benchmarks.search_strength --deals 600 --write docs/results/strength.json
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console
from rich.table import Table

import threeup_agents
from tests.benchmarks.measured import note
from threeup_agents.analysis.statistics import mean_interval
from threeup_agents.arena.deals import draw_deals
from threeup_agents.search.flat import flat_rows
from threeup_agents.search.searchers import tree_rows
from threeup_env import Batch
from threeup_env.engine.rng import streams
from threeup_env.engine.state import CUT_OFF, ENV_ID

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
    write: Path | None = None
    """File that takes the rows, in place of those of the same agents."""


@dataclass(frozen=True)
class Measured:
    """One agent at one seat of tables of another."""

    shares: npt.NDArray[np.float64]
    """Win shares by deal, `[D]`."""
    cut_off_share: float
    seconds: float
    """Of all processors, per decision that wasn't forced."""


def main(config: Config) -> None:
    """Print a row for every agent as soon as it is measured, then the table."""
    table = Table("players", "agent", "win share", "95% interval", "fair", "ms a decision")
    for num_players in config.num_players:
        for spec in config.agents:
            found = measure(spec, num_players, config)
            interval = mean_interval(found.shares)
            if config.write is not None:
                keys = ("agent", "against", "num_players")
                row = {"agent": spec, "against": config.against, "num_players": num_players}
                row |= {"win_share": interval.value, "low": interval.low, "high": interval.high}
                row |= {"cut_off_share": found.cut_off_share, "milliseconds": found.seconds * 1e3}
                row |= {"deals": config.deals, "seed": config.seed, "env": ENV_ID}
                note(config.write, [row], keys)
            cells = (
                str(num_players),
                spec,
                f"{interval.value:.3f}",
                f"{interval.low:.3f}-{interval.high:.3f}",
                f"{1 / num_players:.3f}",
                f"{found.seconds * 1e3:.3f}",
            )
            print(*cells, sep="\t", flush=True)
            table.add_row(*cells)
    Console().print(table)


def measure(spec: str, num_players: int, config: Config) -> Measured:
    """Play every deal under all rotations of the seats."""
    decks = draw_deals(config.deals, num_players, seed=config.seed)
    batch = Batch(num_players * len(decks), num_players, autoreset=False)
    batch.reset(decks=np.repeat(decks, num_players, axis=0))
    seats = np.arange(batch.num_games) % num_players
    chooser(spec, 0)(batch, np.arange(1))  # compiles
    choose = chooser(spec, config.seed + 1)
    others = chooser(config.against, config.seed + 2)
    spent = 0.0
    decisions = 0
    while batch.action_masks.any():
        running = batch.action_masks.any(axis=1)
        actions = np.zeros(batch.num_games, np.int64)
        own = np.flatnonzero(running & (batch.seats == seats))
        start = time.process_time()
        actions[own] = choose(batch, own)
        spent += time.process_time() - start
        decisions += int((batch.action_masks[own].sum(axis=1) > 1).sum())
        rest = np.flatnonzero(running & (batch.seats != seats))
        actions[rest] = others(batch, rest)
        batch.step(actions)
    shares = win_shares(batch, seats).reshape(-1, num_players).mean(axis=1)
    cut_off_share = float((batch.states["winner"] == CUT_OFF).mean())
    return Measured(shares, cut_off_share, spent / decisions)


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
