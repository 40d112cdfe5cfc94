"""Round robin between agents: who is better, with 95% intervals over deals.

Every line-up plays the same deals, each under every rotation of the seats.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import tyro

from threeup_agents import specs
from threeup_agents.analysis import recipes, second_views
from threeup_agents.analysis.console import show, show_agents, write_games
from threeup_agents.analysis.examples import KINDS
from threeup_agents.analysis.round_robin import Analysis
from threeup_agents.analysis.stopping import Stopping
from threeup_agents.analysis.table_files import write_tables
from threeup_agents.analysis.tables import tables
from threeup_agents.arena.match import Match
from threeup_agents.arena.provenance import agent_hash, engine_hash, versions
from threeup_agents.arena.run_folder import RESULTS, Folder
from threeup_agents.arena.tournament import (
    Backend,
    Outcome,
    Settings,
    play_tournament,
    register_ray,
)
from threeup_agents.files import hold, write_text
from threeup_agents.replay.from_run import replay
from threeup_agents.replay.pages_of_run import write_pages
from threeup_env.engine.batch import Batch
from threeup_env.engine.cards import check_variant
from threeup_env.engine.state import ENV_ID

USAGE_ERROR: Final = 2
AGENT_LEFT: Final = 3
INTERRUPTED: Final = 130


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
    until_half_width: float | None = None
    """Play until the interval of every pairing's win share is this wide to both sides, by
    confidence sequences, or --max-deals are played, which then counts in place of --deals."""
    max_deals: int = 20_000
    """Deals after which a run with --until-half-width ends anyway."""
    group: tuple[str, ...] = ()
    """Training recipes to compare over their seeds, e.g. --group 'runs/a-*' 'best=runs/b-*': the
    runs that fit a pattern take part, and their shares against --agents are compared."""
    half_width: float = 0.01
    """Half-width of the intervals that the plan of deals is made for."""
    second_views: bool = False
    """Also alpha-rank and Nash averaging (pip install 'threeup[openspiel]')."""
    replays: int = 12
    """Pairings, from the top of the report's table, that get pages of three of their games
    under --out; 0 for none. Where that takes long the report has numbers for `threeup page`."""
    list: bool = False
    """Only name the agents."""
    replay: tuple[Path, int] | None = None
    """Only show a game: the folder of a run, and the game's number in its games.csv."""


def main(arguments: Sequence[str] | None = None, prog: str = "threeup evaluate") -> int:
    """Run the command line, which errors call `prog`; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = tyro.cli(Config, args=list(arguments), description=__doc__, prog=prog)
    try:
        if config.list:
            show_agents()
        elif config.replay is not None:
            for text in replay(*config.replay):
                print(text, end="\n\n")
        elif run(config, prog)["failures"]:
            return AGENT_LEFT
    except (ValueError, OSError, ImportError) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        kept = "nothing is kept without --out"
        if config.out is not None:
            kept = f"the games played are in {config.out}, the same command goes on"
        print(f"{prog}: interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED
    return 0


def run(config: Config, prog: str = "threeup evaluate") -> dict[str, Any]:
    """Play the round robin, print its tables and write its results.

    Returns:
        What `results.json` holds.

    Raises:
        ValueError: an unknown agent, too few agents, a number out of range, or a folder
            that holds another run or in which another process works.
        OSError: the results can't be written.
    """
    config = whole(config)
    check(config)
    with hold(config.out):
        return _run(config, prog)


def _run(config: Config, prog: str) -> dict[str, Any]:
    rule = stopping(config)

    def analysis(outcome: Outcome) -> Analysis:
        return Analysis(config, outcome, rule.confidence, config.half_width, rule.half_width)

    outcome = play_tournament(
        config,
        Folder(config.out, identity(config)),
        config.workers,
        config.backend,
        rule.looks(config.deals),
        lambda outcome: rule.is_enough(analysis(outcome)),
    )
    for failure in outcome.failures:
        print(f"{prog}: {failure}; it left the run", file=sys.stderr)
    if len(outcome.agents) < 2:
        raise ValueError(f"agents: expected at least 2 that keep the rules; got {outcome.agents}")
    found = analysis(outcome)
    results = facts(config, outcome) | found.results()
    if config.group:
        groups = recipes.read_groups(config.group)
        results["groups"] = recipes.compared(results, groups)
        results["warnings"] += recipes.warnings(results["groups"])
    if config.second_views:
        results["second_views"] = found.second_views()
    if config.out is not None:
        write(config.out, results, outcome.matches, config.replays)
    show(results)
    if config.out is not None:
        print(f"results: {config.out / RESULTS}, games.csv, report.html")
    return results


def whole(config: Config) -> Config:
    """The run with the deals that may have to be played and the runs of its groups."""
    if config.until_half_width is not None:
        config = replace(config, deals=config.max_deals)
    runs = [run for runs in recipes.read_groups(config.group).values() for run in runs]
    new = (run for run in runs if run not in config.agents)
    return replace(config, agents=(*config.agents, *new))


def check(config: Config) -> None:
    """Refuse a run that can't work before any game is played."""
    if config.second_views:
        second_views.check_installed()
    if config.backend == "ray":
        register_ray()
    check_variant(config.variant, config.num_players)
    for name, least in (
        ("deals", 2),
        ("max_steps", 1),
        ("seed", 0),
        ("workers", 1),
        ("replays", 0),
    ):
        if getattr(config, name) < least:
            raise ValueError(f"{name}: expected at least {least}; got {getattr(config, name)}")
    for name in ("half_width", "seconds_per_decision", "until_half_width"):
        value = getattr(config, name)
        if value is not None and not value > 0:
            raise ValueError(f"{name}: expected more than 0; got {value}")
    stopping(config).check()
    if len(config.agents) < 2:
        raise ValueError(f"agents: expected at least 2; got {len(config.agents)}")
    game = Batch(1, config.num_players, config.variant)
    game.reset()
    seen = set()
    for spec in config.agents:
        agent = specs.make(spec)
        try:
            agent.act(game.observations.copy(), game.action_masks.copy())
        except ValueError as error:  # e.g. a policy for another table size
            raise ValueError(f"agent {spec!r}: {error}") from error
        key = specs.policy_file(spec) or spec, spec.endswith(":best")
        if key in seen:
            raise ValueError(f"agents: expected each one once; got {spec!r} more than once")
        seen.add(key)
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise ValueError(f"out: expected a folder; {str(config.out)!r} is a file")


def stopping(config: Config) -> Stopping:
    """When the run ends."""
    return Stopping(config.stop_when_separable, config.until_half_width)


def identity(config: Config) -> dict[str, Any]:
    """What decides a block of games beside its line-up and deals."""
    same = ("num_players", "variant", "max_steps", "seed", "deal_set")
    return {name: getattr(config, name) for name in same} | {
        "env": ENV_ID,
        "engine": engine_hash(),
        "agents": {spec: agent_hash(spec, config.num_players) for spec in config.agents},
    }


def facts(config: Config, outcome: Outcome) -> dict[str, Any]:
    """What was asked for and what it was made with."""
    settings = {field.name: getattr(config, field.name) for field in fields(Settings)}
    return {
        "num_players": config.num_players,
        "deals": config.deals,
        "seed": config.seed,
        "settings": settings,
        "stopping": stopping(config).facts(config.deals),
        "failures": [
            {"agent": failure.agent, "reason": failure.reason} | failure.where
            for failure in outcome.failures
        ],
        "line_ups": [match.line_up for match in outcome.matches],
        "engine": engine_hash(),
        "agents": [
            {"agent": spec, "about": specs.about(spec)}
            | {"hash": agent_hash(spec, config.num_players)}
            for spec in outcome.agents
        ],
        "versions": versions(),
        "command": command(config),
    }


def command(config: Config) -> str:
    """The command that gives these results again."""
    words = ["threeup", "evaluate"]
    for field in fields(Settings):
        value = getattr(config, field.name)
        option = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif field.name == "agents":
            runs = {run for runs in recipes.read_groups(config.group).values() for run in runs}
            words += ["--agents", *(name for name in value if name not in runs)]
        else:
            words += [f"--{option}", str(value)]
    words += ["--half-width", str(config.half_width)]
    words += ["--stop-when-separable"] if config.stop_when_separable else []
    if config.until_half_width is not None:
        words += ["--until-half-width", str(config.until_half_width)]
        words += ["--max-deals", str(config.max_deals)]
    words += ["--group", *config.group] if config.group else []
    words += ["--second-views"] if config.second_views else []
    return shlex.join(words)


def write(
    folder: Path, results: dict[str, Any], matches: Sequence[Match], num_pairings: int
) -> None:
    """Write `results.json`, `games.csv`, `tables`, `replays` and `report.html`.

    Each file is written whole or not at all; `num_pairings` have replay pages.
    """
    from threeup_agents.analysis.report import page  # matplotlib takes a second to import

    write_text(folder / RESULTS, json.dumps(results, indent=2) + "\n")
    write_games(folder / "games.csv", matches)
    write_tables(folder / "tables", list(tables(results).values()))
    rows = results["examples"]
    shown = [(row["agent"], row["against"]) for row in tables(results)["pairings"].rows]
    rows = sorted(rows, key=lambda row: shown.index((row["agent"], row["against"])))
    games = [row[kind] for row in rows[:num_pairings] for kind in KINDS]
    write_text(folder / "report.html", page(results, write_pages(folder, games)))
