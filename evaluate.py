"""Round robin between agents: who is better, with 95% intervals over deals.

Every line-up plays the same deals, each under every rotation of the seats.
"""

import csv
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import agents
from agents import second_views
from agents.analysis import Analysis
from agents.files import whole, write_text
from agents.folder import RESULTS, Folder
from agents.games import Match
from agents.replay import replay
from agents.statistics import CONFIDENCE
from agents.tournament import Backend, Outcome, Settings, play_tournament, register_ray
from agents.versions import agent_hash, engine_hash, versions
from threeup_env.batch import Batch
from threeup_env.cards import check_variant

USAGE_ERROR: Final = 2
AGENT_LEFT: Final = 3
INTERRUPTED: Final = 130
LOOKS: Final = 4
"""Looks of `--stop-when-separable`, at equal distances; each spends an equal part of the
error (Bonferroni), and the intervals are those of that level (repeated intervals)."""


@dataclass(frozen=True)
class Config(Settings):
    """Let agents play each other and say who is better.

    Every line-up plays the same deals, each under every rotation of the seats. At more
    than 2 players one seat of an agent plays a table of another, and mixed tables play.
    """

    out: Path | None = None
    """Folder of the run: the games as they come in blocks, results.json, games.csv,
    report.html. The same command goes on with a run that was stopped. One for more agents or
    more deals keeps the blocks that it shares: all but the last of each line-up, if not full."""
    workers: int = 1
    """Processes; of several, each searches on one thread. The results are the same for any
    number."""
    backend: Backend = "loky"
    """joblib's backend; ray runs on a Ray cluster (pip install 'threeup[ray]')."""
    stop_when_separable: bool = False
    """Stop at a quarter, half or three quarters of the deals if every pair is told apart."""
    half_width: float = 0.01
    """Half-width of the intervals that the plan of deals is made for."""
    second_views: bool = False
    """Also alpha-rank and Nash averaging (pip install 'threeup[openspiel]')."""
    list: bool = False
    """Only name the agents."""
    replay: tuple[Path, int] | None = None
    """Only show a game: the folder of a run, and the game's number in its games.csv."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = tyro.cli(Config, args=list(arguments), description=__doc__)
    try:
        if config.list:
            show_agents()
        elif config.replay is not None:
            for text in replay(*config.replay):
                print(text, end="\n\n")
        elif run(config)["failures"]:
            return AGENT_LEFT
    except (ValueError, OSError, ImportError) as error:
        print(f"evaluate.py: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        kept = "nothing is kept without --out"
        if config.out is not None:
            kept = f"the games played are in {config.out}, the same command goes on"
        print(f"evaluate.py: interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED
    return 0


def run(config: Config) -> dict[str, Any]:
    """Play the round robin, print its tables and write its results.

    Returns:
        What `results.json` holds.

    Raises:
        ValueError: an unknown agent, too few agents, a number out of range, or a folder
            that holds another run.
        OSError: the results can't be written.
    """
    check(config)
    confidence = 1 - (1 - CONFIDENCE) / LOOKS if config.stop_when_separable else CONFIDENCE

    def is_enough(outcome: Outcome) -> bool:
        return Analysis(config, outcome, confidence).is_separable()

    outcome = play_tournament(
        config,
        Folder(config.out, identity(config)),
        config.workers,
        config.backend,
        looks(config),
        is_enough if config.stop_when_separable else lambda outcome: False,
    )
    for failure in outcome.failures:
        print(f"evaluate.py: {failure}; it left the run", file=sys.stderr)
    if len(outcome.agents) < 2:
        raise ValueError(f"agents: expected at least 2 that keep the rules; got {outcome.agents}")
    found = Analysis(config, outcome, confidence, config.half_width)
    results = facts(config, outcome) | found.results()
    if config.second_views:
        results["second_views"] = found.second_views()
    if config.out is not None:
        write(config.out, results, outcome.matches)
    show(results)
    if config.out is not None:
        print(f"results: {config.out / RESULTS}, games.csv, report.html")
    return results


def check(config: Config) -> None:
    """Refuse a run that can't work before any game is played."""
    if config.second_views:
        second_views.check_installed()
    if config.backend == "ray":
        register_ray()
    check_variant(config.variant, config.num_players)
    for name, least in (("deals", 2), ("max_steps", 1), ("seed", 0), ("workers", 1)):
        if getattr(config, name) < least:
            option = name.replace("_", "-")
            raise ValueError(f"{option}: expected at least {least}; got {getattr(config, name)}")
    for name in ("half_width", "seconds_per_decision"):
        if not getattr(config, name) > 0:
            option = name.replace("_", "-")
            raise ValueError(f"{option}: expected more than 0; got {getattr(config, name)}")
    if len(config.agents) < 2:
        raise ValueError(f"agents: expected at least 2; got {len(config.agents)}")
    game = Batch(1, config.num_players, config.variant)
    game.reset()
    seen = set()
    for spec in config.agents:
        agent = agents.make(spec)
        try:
            agent.act(game.observations, game.action_masks)
        except ValueError as error:  # e.g. a policy for another table size
            raise ValueError(f"agent {spec!r}: {error}") from error
        key = agents.policy_file(spec) or spec, spec.endswith(":best")
        if key in seen:
            raise ValueError(f"agents: expected each one once; got {spec!r} more than once")
        seen.add(key)
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise ValueError(f"out: expected a folder; {str(config.out)!r} is a file")


def looks(config: Config) -> list[int]:
    """Numbers of deals after which `--stop-when-separable` looks."""
    if not config.stop_when_separable:
        return []
    return sorted({max(2, config.deals * look // LOOKS) for look in range(1, LOOKS + 1)})


def identity(config: Config) -> dict[str, Any]:
    """What decides a block of games beside its line-up and deals."""
    same = ("num_players", "variant", "max_steps", "seed", "deal_set")
    return {name: getattr(config, name) for name in same} | {
        "engine": engine_hash(),
        "agents": {spec: agent_hash(spec, config.num_players) for spec in config.agents},
    }


def facts(config: Config, outcome: Outcome) -> dict[str, Any]:
    """What was asked for and what it was made with."""
    stopping = None
    if config.stop_when_separable:
        stopping = {
            "rule": f"look after each of the deals listed; stop if every pair differs at "
            f"Holm-corrected {(1 - CONFIDENCE) / LOOKS:g}; intervals are of that level",
            "looks": looks(config),
        }
    settings = {field.name: getattr(config, field.name) for field in fields(Settings)}
    return {
        "num_players": config.num_players,
        "deals": config.deals,
        "seed": config.seed,
        "settings": settings,
        "stopping": stopping,
        "failures": [
            {"agent": failure.agent, "reason": failure.reason} | failure.where
            for failure in outcome.failures
        ],
        "line_ups": [match.line_up for match in outcome.matches],
        "engine": engine_hash(),
        "agents": [
            {"agent": spec, "about": agents.about(spec)}
            | {"hash": agent_hash(spec, config.num_players)}
            for spec in outcome.agents
        ],
        "versions": versions(),
        "command": command(config),
    }


def command(config: Config) -> str:
    """The command that gives these results again."""
    words = ["python", "evaluate.py"]
    for field in fields(Settings):
        value = getattr(config, field.name)
        option = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif field.name == "agents":
            words += ["--agents", *value]
        else:
            words += [f"--{option}", str(value)]
    words += ["--half-width", str(config.half_width)]
    words += ["--stop-when-separable"] if config.stop_when_separable else []
    words += ["--second-views"] if config.second_views else []
    return shlex.join(words)


def write(folder: Path, results: dict[str, Any], matches: Sequence[Match]) -> None:
    """Write `results.json`, `games.csv` and `report.html`, each whole or not at all."""
    from agents.report import page  # matplotlib takes a second to import

    write_text(folder / RESULTS, json.dumps(results, indent=2) + "\n")
    write_games(folder / "games.csv", matches)
    write_text(folder / "report.html", page(results))


def write_games(path: Path, matches: Sequence[Match]) -> None:
    """Write a row a game."""
    with whole(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        game = 0
        for match in matches:
            columns = match.columns()
            if game == 0:
                writer.writerow(["game", *columns])
            for row in zip(*(column.tolist() for column in columns.values()), strict=True):
                writer.writerow([game, *row])
                game += 1


def show_agents() -> None:
    """Print the names that `--agents` understands."""
    table = _table("agents", "agent", "what it does")
    for spec, words in agents.SPECS.items():
        table.add_row(spec, words)
    Console().print(table)


def show(results: dict[str, Any]) -> None:
    """Print who is better: ratings and shares, then each pairing."""
    console = Console()
    title = (
        f"{results['num_players']} players, {results['deals_played']:,} deals, "
        f"{results['games']:,} games; fair share {results['fair_share']:.3f}"
    )
    interval = f"{results['confidence']:.4g}"
    board = _table(title, "agent", "rating", interval, "share", interval, "place", "cut off")
    standings = {row["agent"]: row for row in results["standings"]}
    for rating in results["ratings"]:
        row = standings[rating["agent"]]
        board.add_row(
            row["agent"],
            f"{rating['rating']:+.2f}",
            f"{rating['low']:+.2f} {rating['high']:+.2f}",
            f"{row['win_share']:.3f}",
            f"{row['low']:.3f} {row['high']:.3f}",
            f"{row['mean_place']:.2f}",
            f"{row['cut_off_share']:.1%}",
        )
    duels = _table("each against each", "agent", "against", "share", interval, "is", "games")
    for pair in results["pairings"]:
        share, low, high = (f"{pair[name]:.3f}" for name in ("win_share", "low", "high"))
        duels.add_row(
            pair["agent"],
            pair["against"],
            share,
            f"{low} {high}",
            pair["verdict"],
            f"{pair['games']:,}",
        )
    console.print(board)
    console.print(duels)
    plan = results["plan"]
    words = f"for half-widths of {plan['half_width']:g}: {plan['deals']:,} deals"
    console.print(words, highlight=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in columns:
        words = name in ("agent", "against", "is", "what it does")
        justify: Literal["left", "right"] = "left" if words else "right"
        table.add_column(name, justify=justify, no_wrap=not words, overflow="fold")
    return table


if __name__ == "__main__":
    sys.exit(main())
