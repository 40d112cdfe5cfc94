"""Round robin between agents: who is better, with 95% intervals over deals.

Every line-up plays the same deals, each under every rotation of the seats.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import agents
import threeup_env
from agents.deals import draw_deals
from agents.match import BLOCK, Match, play_block
from agents.progress import Bar
from agents.statistics import Interval
from agents.tournament import Pairing, Standing, line_ups, pairings, standings
from threeup_env.cards import check_variant

INTERRUPTED: Final = 130
USAGE_ERROR: Final = 2


@dataclass(frozen=True)
class Config:
    """Let agents play each other and say who is better.

    Every line-up plays the same deals, each under every rotation of the seats. At more
    than 2 players one seat of an agent plays a table of another.
    """

    agents: tuple[str, ...] = ("random", "greedy")
    """Who takes part: names such as random, greedy, careful, flat:200, search:200, ppo,
    or the path of a policy file or run folder."""
    num_players: int = 2
    """Seats at the table, 2 to 6."""
    deals: int = 500
    """Deals that each line-up plays; each gives as many games as there are seats."""
    variant: str = "standard"
    """Deck and layout: standard, listed or mini."""
    max_steps: int = 1000
    """The action that cuts a game off if it doesn't win it."""
    seed: int = 0
    """Starts the deals, the agents' choices and the resampling, each a stream of its own."""
    out: Path | None = None
    """Folder for results.json; nothing is written without it."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    config = tyro.cli(Config, args=arguments, description=__doc__)
    try:
        run(config)
    except (ValueError, OSError) as error:
        print(f"evaluate.py: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("evaluate.py: interrupted; no results written", file=sys.stderr)
        return INTERRUPTED
    return 0


def run(config: Config) -> dict[str, Any]:
    """Play the round robin, print its tables and write its results.

    Returns:
        What `results.json` holds.

    Raises:
        ValueError: an unknown agent, too few agents, or a number out of range.
        OSError: the results can't be written.
    """
    check(config)
    matches = play_all(config)
    pairs = pairings(matches, config.seed)
    table = standings(config.agents, matches, config.seed)
    results = as_json(config, pairs, table)
    show(config, pairs, table)
    if config.out is not None:
        path = write(config.out, results)
        print(f"results: {path}")
    return results


def check(config: Config) -> None:
    """Refuse a run that can't work before any game is played."""
    check_variant(config.variant, config.num_players)
    for name, value in (("deals", config.deals), ("max-steps", config.max_steps)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1; got {value}")
    if config.seed < 0:
        raise ValueError(f"seed: expected at least 0; got {config.seed}")
    if len(config.agents) < 2:
        raise ValueError(f"agents: expected at least 2; got {len(config.agents)}")
    for spec in config.agents:
        if config.agents.count(spec) > 1:
            raise ValueError(f"agents: expected each one once; got {spec!r} more than once")
        agents.make(spec)
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise ValueError(f"out: expected a folder; {str(config.out)!r} is a file")


def play_all(config: Config) -> list[Match]:
    """Play every line-up."""
    decks = draw_deals(config.deals, config.num_players, config.variant, config.seed)
    tables = line_ups(config.agents, config.num_players)
    matches = []
    with Bar("playing", len(tables) * len(decks) * config.num_players) as bar:
        for table in tables:
            parts = [
                play_block(
                    table,
                    decks[first : first + BLOCK],
                    first,
                    config.variant,
                    config.max_steps,
                    config.seed,
                    bar.advance,
                )
                for first in range(0, len(decks), BLOCK)
            ]
            matches.append(Match.concatenate(parts))
    return matches


def as_json(config: Config, pairs: list[Pairing], table: list[Standing]) -> dict[str, Any]:
    """Everything that `results.json` holds; shares and ratings with 95% intervals."""

    def flat(interval: Interval, name: str) -> dict[str, float]:
        return {name: interval.value, "low": interval.low, "high": interval.high}

    return {
        "num_players": config.num_players,
        "deals": config.deals,
        "seed": config.seed,
        "fair_share": 1 / config.num_players,
        "pairings": [
            {"agent": pair.agent, "against": pair.against, "games": pair.games}
            | flat(pair.win_share, "win_share")
            | {"cut_off_share": pair.cut_off.value, "mean_place": pair.place.value}
            for pair in pairs
        ],
        "ratings": [
            {"agent": standing.agent} | flat(standing.rating, "rating") for standing in table
        ],
        "standings": [
            {"agent": standing.agent, "games": standing.games}
            | flat(standing.win_share, "win_share")
            | {"cut_off_share": standing.cut_off.value, "mean_place": standing.place.value}
            for standing in table
        ],
        "settings": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(config).items()
        },
        "versions": {"threeup": threeup_env.__version__, "numpy": np.__version__},
    }


def write(folder: Path, results: dict[str, Any]) -> Path:
    """Write `results.json` whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    temporary = path.with_suffix(".json.tmp")
    temporary.write_text(json.dumps(results, indent=2) + "\n")
    temporary.replace(path)
    return path


def show(config: Config, pairs: list[Pairing], table: list[Standing]) -> None:
    """Print who is better: the standings, then each pairing."""
    fair = 1 / config.num_players
    console = Console()
    title = f"{config.num_players} players, {config.deals} deals, fair share {fair:.3f}"
    board = _table(title, "agent", "rating", "95%", "win share", "95%", "place", "cut off", "games")
    for row in table:
        board.add_row(
            row.agent,
            f"{row.rating.value:+.2f}",
            f"{row.rating.low:+.2f} {row.rating.high:+.2f}",
            *_share(row.win_share),
            f"{row.place.value:.2f}",
            f"{row.cut_off.value:.1%}",
            f"{row.games:,}",
        )
    duels = _table("each against each", "agent", "against", "win share", "95%", "is", "games")
    for pair in pairs:
        found = verdict(pair.win_share, fair)
        duels.add_row(pair.agent, pair.against, *_share(pair.win_share), found, f"{pair.games:,}")
    console.print(board)
    console.print(duels)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for name in columns:
        words = name in ("agent", "against", "is")
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    return table


def _share(share: Interval) -> tuple[str, str]:
    return f"{share.value:.3f}", f"{share.low:.3f} {share.high:.3f}"


def verdict(share: Interval, fair: float) -> str:
    """What an interval says about an agent among others."""
    if share.low > fair:
        return "better"
    return "worse" if share.high < fair else "not separable"


if __name__ == "__main__":
    sys.exit(main())
