"""How often 95% intervals hold the truth, and how often identical agents are told apart.

Real games are played once; runs of few deals are then drawn from them with replacement, so
that the truth is known: it is what all the games say. Shares up to .99 come from the same
games, in which losses were made wins, and from a model in which the rotations of a deal
depend on each other. Prints a Markdown table and writes it to a file.

    python -m tests.benchmarks.coverage
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tyro

from threeup_agents.analysis import ratings
from threeup_agents.analysis.rated_games import RatedGames
from threeup_agents.analysis.statistics import holm, mean_intervals, p_values
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.line_ups import is_pair, line_ups
from threeup_agents.arena.match import Match
from threeup_agents.arena.play import play

Values = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "coverage.md"
EDGES = (0.9, 0.95, 0.98, 0.99)
ALIKE = 0.3
"""Correlation of the rotations of a deal in the model."""


@dataclass(frozen=True)
class Config:
    """Simulate the coverage of intervals."""

    agents: tuple[str, ...] = ("random", "greedy", "careful", "policy:net")
    """Who plays the pool of games."""
    num_players: tuple[int, ...] = (2, 3, 4)
    """Table sizes."""
    deals: tuple[int, ...] = (10, 20, 50, 200)
    """Deals of a run."""
    pool: int = 1000
    """Deals that each line-up plays once."""
    runs: int = 4000
    """Runs that are drawn for shares, places and differences."""
    rated: int = 1000
    """The same for ratings, which take longer."""
    seed: int = 0
    """Starts deals, agents and draws."""
    out: Path = RESULT
    """File to write the table to."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    source: str
    num_players: int
    quantity: str
    found: list[float]
    """The least coverage of any of the quantities, by number of deals."""


def main(config: Config) -> None:
    """Print the table row by row, then write it."""
    lines = [
        "| games | players | what | "
        + " | ".join(f"{deals} deals" for deals in config.deals)
        + " |",
        "| --- " * (3 + len(config.deals)) + "|",
    ]
    print(*lines, sep="\n", flush=True)
    for row in rows(config):
        cells = " | ".join(f"{share:.3f}" for share in row.found)
        lines.append(f"| {row.source} | {row.num_players} | {row.quantity} | {cells} |")
        print(lines[-1], flush=True)
    lines.append(
        f"\n{config.runs:,} runs a cell, {config.rated:,} of ratings: standard errors of "
        f"{error(config.runs):.3f} and {error(config.rated):.3f}. A cell is the least coverage of "
        "any agent or pair; chance alone makes the least of several smaller."
    )
    print(lines[-1])
    config.out.parent.mkdir(parents=True, exist_ok=True)
    config.out.write_text("\n".join(lines) + "\n")


def error(runs: int) -> float:
    """Standard error of a coverage of 0.95."""
    return float(np.sqrt(0.95 * 0.05 / runs))


def rows(config: Config) -> Iterator[Row]:
    """All lines of the table."""
    for num_players in config.num_players:
        rng = np.random.default_rng([config.seed, num_players])
        matches = pool(config.agents, num_players, config.pool, config.seed)
        for name, (values, least, most) in quantities(matches, config.agents).items():
            truth = values.mean(axis=1)
            found = [
                coverage(drawn(values, deals, config.runs, rng), truth, least, most)
                for deals in config.deals
            ]
            yield Row("of the agents", num_players, name, found)
        yield from edges(config, matches, num_players, rng)
        yield from rated_rows(config, matches, num_players, rng)
        for agent in ("random", "greedy"):
            differences = of_copies(agent, num_players, config)
            found = [family_error(differences, deals, config.runs, rng) for deals in config.deals]
            yield Row(f"of 4 that are all {agent}", num_players, "any told apart", found)


def pool(agents: Sequence[str], num_players: int, deals: int, seed: int) -> list[Match]:
    """The games of a round robin on the same deals."""
    decks = draw_deals(deals, num_players, seed=seed)
    return [
        play(table, decks, seed=seed, progress=False) for table in line_ups(agents, num_players)
    ]


def quantities(
    matches: Sequence[Match], agents: Sequence[str]
) -> dict[str, tuple[Values, float, float]]:
    """By name: values by deal, `[K, P]`, and the least and the most that one can be."""
    shares, places = {}, {}
    for match in matches:
        if is_pair(match.line_up):
            for side in (0, 1) if match.num_players == 2 else (0,):
                key = match.line_up[side], match.line_up[1 - side]
                shares[key] = match.by_deal(match.win_share[:, side])
                places[key] = match.by_deal(match.place[:, side])
    overall = {a: np.mean([shares[a, b] for b in agents if b != a], axis=0) for a in agents}
    pairs = list(combinations(agents, 2))
    return {
        "share": (np.array(list(shares.values())), 0, 1),
        "place": (np.array(list(places.values())), 1, matches[0].num_players),
        "difference of a pair": (np.array([shares[a, b] - shares[b, a] for a, b in pairs]), -1, 1),
        "difference overall": (np.array([overall[a] - overall[b] for a, b in pairs]), -1, 1),
    }


def drawn(values: Values, deals: int, runs: int, rng: np.random.Generator) -> Values:
    """Runs of some deals from a pool: `[K, P]` to `[K, runs, deals]`."""
    return values[:, rng.integers(values.shape[1], size=(runs, deals))]


def coverage(values: Values, truth: Values, least: float, most: float) -> float:
    """The least coverage of any quantity; `[K, runs, deals]` and `[K]`."""
    shares = []
    for own, true in zip(values, truth, strict=True):
        found = np.array(mean_intervals(own, least=least, most=most))
        shares.append(((found[:, 1] <= true + 1e-9) & (true - 1e-9 <= found[:, 2])).mean())
    return float(min(shares))


def edges(
    config: Config, matches: Sequence[Match], num_players: int, rng: np.random.Generator
) -> Iterator[Row]:
    """Shares near 1: made from the games of the best pair, and from a model."""
    best = max((m for m in matches if is_pair(m.line_up)), key=lambda m: m.win_share[:, 0].mean())
    for edge in EDGES:
        lost = best.win_share[:, 0] == 0
        turned = rng.random(len(lost)) < 1 - min(1, (1 - edge) / lost.mean())
        values = best.by_deal(np.where(lost & turned, 1.0, best.win_share[:, 0]))[None]
        truth = values.mean(axis=1)
        found = [
            coverage(drawn(values, deals, config.runs, rng), truth, 0, 1) for deals in config.deals
        ]
        yield Row("with losses made wins", num_players, f"share {truth[0]:.3f}", found)
    for edge in (1 / num_players, *EDGES):
        found = []
        for deals in config.deals:
            # Beta-binomial: a deal has a share of its own, which its rotations have in common.
            weight = 1 / ALIKE - 1
            own = rng.beta(weight * edge, weight * (1 - edge), size=(1, config.runs, deals))
            values = rng.binomial(num_players, own) / num_players
            found.append(coverage(values, np.array([edge]), 0, 1))
        yield Row("of a model", num_players, f"share {edge:.3f}", found)


def rated_rows(
    config: Config, matches: list[Match], num_players: int, rng: np.random.Generator
) -> Iterator[Row]:
    """Ratings of the agents, then of a model in which one hardly ever loses to another."""
    games = RatedGames(config.agents, matches, 0.95)
    truth = ratings.fit(games.seats, games.wins.sum(axis=0), penalised=False)

    def from_pool(deals: int) -> npt.NDArray[np.int8]:
        return games.wins[rng.integers(len(games.wins), size=deals)]

    found = [
        rating_coverage(games.seats, truth, [from_pool(deals) for _ in range(config.rated)])
        for deals in config.deals
    ]
    for i, name in enumerate(("rating", "difference of ratings")):
        yield Row("of the agents", num_players, name, [both[i] for both in found])
    tables = line_ups("abc", num_players)
    seats = np.array([[table.count(name) for name in "abc"] for table in tables])
    for edge in EDGES[1:]:
        # One seat of a against c at all others wins this share.
        gap = np.log(edge / (1 - edge) * (num_players - 1))
        truth = np.array([gap, gap / 3, 0])
        found = [
            rating_coverage(
                seats, truth, [modelled(seats, truth, deals, rng) for _ in range(config.rated)]
            )
            for deals in config.deals
        ]
        for i, name in enumerate(("rating", "difference of ratings")):
            yield Row(f"of a model to {edge:g}", num_players, name, [both[i] for both in found])


def modelled(
    seats: npt.NDArray[np.int64], truth: Values, deals: int, rng: np.random.Generator
) -> npt.NDArray[np.int8]:
    """Wins `[D, L, N]` by Plackett and Luce, where on some deals all rotations end alike."""
    odds = seats * np.exp(truth)
    num_players = int(seats[0].sum())
    wins = np.empty((deals, *seats.shape), np.int8)
    for i, share in enumerate(odds / odds.sum(axis=1, keepdims=True)):
        wins[:, i] = rng.multinomial(num_players, share, size=deals)
        alike = rng.random(deals) < ALIKE
        wins[alike, i] = num_players * rng.multinomial(1, share, size=int(alike.sum()))
    return wins


def rating_coverage(
    seats: npt.NDArray[np.int64], truth: Values, runs: Sequence[npt.NDArray[np.int8]]
) -> tuple[float, float]:
    """The least coverage of any rating, and of any difference of two."""
    names = tuple(map(str, range(len(truth))))
    pairs = list(combinations(range(len(truth)), 2))
    of_level, of_pairs = np.zeros(len(truth)), np.zeros(len(pairs))
    for wins in runs:
        rated = ratings.rate(names, seats, wins)
        # The scale has no zero of its own: both are measured from the level of all.
        distance = truth - rated.weight @ truth + rated.weight @ rated.value
        of_level += (rated.low <= distance) & (distance <= rated.high)
        for k, (one, other) in enumerate(pairs):
            found = rated.difference(one, other)
            of_pairs[k] += found.low <= truth[one] - truth[other] <= found.high
    return float(of_level.min()) / len(runs), float(of_pairs.min()) / len(runs)


def of_copies(agent: str, num_players: int, config: Config) -> Values:
    """Differences by deal within each pair of four agents that play alike; `[6, P]`."""
    decks = draw_deals(config.pool, num_players, seed=config.seed)
    shares = []
    for copy in range(12):
        match = play([agent] * num_players, decks, seed=config.seed + copy, progress=False)
        shares.append(match.by_deal(match.win_share[:, 0]))
    return np.array(shares[:6]) - np.array(shares[6:])


def family_error(differences: Values, deals: int, runs: int, rng: np.random.Generator) -> float:
    """How often any of the pairs is told apart; `[K, P]`.

    Which of two equal agents is the one and which the other is drawn for every deal: then
    there is exactly no difference.
    """
    values = drawn(differences, deals, runs, rng)
    values = values * rng.choice([-1, 1], size=values.shape)
    found = p_values(values.reshape(-1, deals)).reshape(len(differences), runs)
    return float(np.mean([holm(p).min() < 0.05 for p in found.T]))


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
