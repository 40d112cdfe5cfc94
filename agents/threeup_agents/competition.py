"""A round robin from its settings to its files, for the command line and for Python."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from threeup_agents.analysis import recipes, second_views
from threeup_agents.analysis.console import write_games
from threeup_agents.analysis.examples import KINDS
from threeup_agents.analysis.round_robin import Analysis
from threeup_agents.analysis.stopping import Stopping
from threeup_agents.analysis.table_files import write_tables
from threeup_agents.analysis.tables import tables
from threeup_agents.arena import ladder
from threeup_agents.arena.entrants import about, check_entrants, check_names
from threeup_agents.arena.match import Match
from threeup_agents.arena.merging import parse_part, write_settings
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
from threeup_agents.replay.pages_of_run import write_pages
from threeup_env.engine.arguments import check_count, check_positive
from threeup_env.engine.cards import check_variant
from threeup_env.engine.state import ENV_ID


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
    ladder: bool = False
    """Play on the shipped ladder: its agents' games on the public deals are there already, so
    that only those of --add are played. At 2, 3, 4 or 6 players."""
    add: tuple[str, ...] = ()
    """With --ladder: who is to be measured by it."""
    part: str = "1/1"
    """2/3 plays the second of three equal parts of the games and keeps them in the folder, for
    `threeup merge` to put together."""
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


def compete(config: Config, tell: Callable[[str], None]) -> tuple[dict[str, Any], Sequence[Match]]:
    """Play the round robin and write its results, for the command line and for Python.

    Args:
        config: of the run.
        tell: is called for each agent that left the run, with why.

    Returns:
        What `results.json` holds, and the games.

    Raises:
        ValueError, OSError: see `run`.
    """
    if config.add and not config.ladder:
        raise ValueError(f"add: expected --ladder with it; got --add {' '.join(config.add)} alone")
    known = ladder.load(config.num_players) if config.ladder else None
    if known is not None:
        config = ladder.join(config, known, config.add)
    config = whole(config)
    check(config)
    with hold(config.out), ladder.folder_with(known, config.out, identity(config)) as folder:
        if config.out is not None:
            write_settings(config.out, config)
        return _compete(config, folder, tell)


def _compete(
    config: Config, folder: Folder, tell: Callable[[str], None]
) -> tuple[dict[str, Any], Sequence[Match]]:
    rule = stopping(config)

    def analysis(outcome: Outcome) -> Analysis:
        return Analysis(config, outcome, rule.confidence, config.half_width, rule.half_width)

    outcome = play_tournament(
        config,
        folder,
        config.workers,
        config.backend,
        rule.looks(config.deals),
        lambda outcome: rule.is_enough(analysis(outcome)),
    )
    for failure in outcome.failures:
        tell(f"{failure}; it left the run")
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
        write(config, results, outcome.matches)
    return results, outcome.matches


def whole(config: Config) -> Config:
    """The run with the deals that may have to be played and the runs of its groups."""
    if config.until_half_width is not None:
        config = replace(config, deals=config.max_deals)
    runs = [run for runs in recipes.read_groups(config.group).values() for run in runs]
    new = (run for run in runs if run not in config.agents)
    return replace(config, agents=(*config.agents, *new))


def stopping(config: Config) -> Stopping:
    """When the run ends."""
    return Stopping(config.stop_when_separable, config.until_half_width)


def check(config: Config) -> None:
    """Refuse a run that can't work before any game is played."""
    if config.second_views:
        second_views.check_installed()
    if config.backend == "ray":
        register_ray()
    check_variant(config.variant, config.num_players)
    for name, least in (
        *(("deals", 2), ("max_steps", 1), ("seed", 0), ("workers", 1)),
        *(("max_deals", 2), ("replays", 0)),
    ):
        check_count(name, getattr(config, name), least=least)
    for name in ("half_width", "seconds_per_decision", "patience"):
        check_positive(name, getattr(config, name))
    if config.until_half_width is not None:
        check_positive("until_half_width", config.until_half_width)
    stopping(config).check()
    listed = isinstance(config.agents, Sequence) and not isinstance(config.agents, str)
    if not listed or not all(isinstance(name, str) for name in config.agents):
        raise ValueError(f"agents: expected a list of names; got {config.agents!r}")
    stops_early = config.stop_when_separable or config.until_half_width is not None
    if parse_part(config.part)[1] > 1 and (config.out is None or stops_early):
        raise ValueError(
            f"part: expected a run with --out that doesn't stop early; got {config.part}"
        )
    if len(config.agents) < 2:
        raise ValueError(f"agents: expected at least 2; got {len(config.agents)}")
    check_names(config.agents)
    who = config.entrants
    check_entrants(who, config.num_players, config.variant, config.workers, config.terms)
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise ValueError(f"out: expected a folder; {str(config.out)!r} is a file")


def identity(config: Config) -> dict[str, Any]:
    """What decides a block of games beside its line-up and deals.

    Raises:
        ValueError: an agent that has no hash, for a folder that is kept.
    """
    hashed = hashes(config)
    for name, found in hashed.items():
        if found is None and config.out is not None:
            raise ValueError(
                f"out: expected agents that a run which goes on can tell from others; {name!r} "
                "can't be pickled. Play without a folder, or put it in a file and name that"
            )
    same = ("num_players", "variant", "max_steps", "seed", "deal_set")
    return {name: getattr(config, name) for name in same} | {
        "env": ENV_ID,
        "engine": engine_hash(),
        "agents": hashed,
    }


def hashes(config: Config) -> dict[str, str | None]:
    """The hash of each agent, see `agent_hash`."""
    return {
        name: agent_hash(entrant, config.num_players, config.trust)
        for name, entrant in config.entrants.items()
    }


def facts(config: Config, outcome: Outcome) -> dict[str, Any]:
    """What was asked for and what it was made with."""
    settings = {field.name: getattr(config, field.name) for field in fields(Settings)}
    hashed = hashes(config)
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
            {"agent": name, "about": about(config.entrants[name]), "hash": hashed[name]}
            for name in outcome.agents
        ],
        "versions": versions(),
        "command": command(config),
    }


def command(config: Config) -> str:
    """The command that gives these results again; objects of Python have none."""
    given = [name for name, who in config.entrants.items() if not isinstance(who, str)]
    if given:
        return f"threeup_agents.round_robin(...), with objects of Python: {', '.join(given)}"
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


def write(config: Config, results: dict[str, Any], matches: Sequence[Match]) -> None:
    """Write `results.json`, `games.csv`, `tables`, `replays` and `report.html`.

    Each file is written whole or not at all. Pages are of the first pairings in the report, on the
    ladder of those who were added. Games of objects of Python, which the folder doesn't hold, have
    no replay pages.
    """
    from threeup_agents.analysis.report import page  # matplotlib takes a second to import

    folder = config.out
    assert folder is not None
    write_text(folder / RESULTS, json.dumps(results, indent=2) + "\n")
    write_games(folder / "games.csv", matches)
    write_tables(folder / "tables", list(tables(results).values()))
    rows = results["examples"]
    shown = [(row["agent"], row["against"]) for row in tables(results)["pairings"].rows]
    known = set(ladder.AGENTS[config.num_players]) if config.ladder else set()

    def order(row: dict[str, Any]) -> tuple[bool, int]:
        pair = row["agent"], row["against"]
        return known.issuperset(pair), shown.index(pair)  # who was added to the ladder first

    rows = sorted(rows, key=order)
    given = {name for name, who in config.entrants.items() if not isinstance(who, str)}
    rows = [row for row in rows if not given & {row["agent"], row["against"]}]
    games = [row[kind] for row in rows[: config.replays] for kind in KINDS]
    own = [match for match in matches if not known.issuperset(match.line_up)]
    seconds = sum(float(match.seconds.sum()) for match in own)
    write_text(folder / "report.html", page(results, write_pages(folder, games, seconds)))
