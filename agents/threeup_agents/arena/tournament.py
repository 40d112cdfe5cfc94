"""Round robins: playing the blocks of all line-ups, on one core or many."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from typing import Final, Literal, TypeAlias

import joblib
import numpy as np
import numpy.typing as npt

from threeup_agents import specs
from threeup_agents.arena.deals import PUBLIC_SEED, deal_hashes, draw_deals
from threeup_agents.arena.isolation import keeping_processes
from threeup_agents.arena.line_ups import LineUp, draw_seats, line_ups
from threeup_agents.arena.match import Match
from threeup_agents.arena.pace import Pace, in_turns
from threeup_agents.arena.play import Entrant, blocks, play_block
from threeup_agents.arena.processes import end_with, naming_lost_workers
from threeup_agents.arena.progress import Bar
from threeup_agents.arena.referee import PATIENCE, SECONDS_PER_DECISION, AgentError
from threeup_agents.arena.run_folder import Folder
from threeup_agents.arena.terms import TERMS, Terms

_WAVE: Final = 4

Backend: TypeAlias = Literal["loky", "ray"]


@dataclass(frozen=True)
class Settings:
    """What decides every game of a round robin."""

    agents: tuple[str, ...] = ("random", "greedy", "careful")
    """Who takes part: names such as random, greedy, careful, flat:200, search:200, policy, the
    path of a policy file or run folder, mine.py:Mine for code; NAME=SPEC sets a name."""
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
    deal_set: Literal["fresh", "public"] = "fresh"
    """fresh: deals drawn from the seed; public: the same frozen deals for everybody."""
    mixed: bool = True
    """At 3 to 6 players also play tables of different agents."""
    seconds_per_decision: float = SECONDS_PER_DECISION
    """Time limit; an agent that takes longer is left out and reported."""
    patience: float = PATIENCE
    """Seconds that an agent may take in a block of games beside, for loading and compiling."""
    isolate: bool = False
    """Run each agent in a process of its own, as programs are anyway: if it crashes, exits, hangs
    or takes too much memory, it leaves the run, and the others play on."""
    trust: bool = False
    """Load policy files that could run code of whoever wrote them (.zip and .pt)."""

    @property
    def entrants(self) -> dict[str, Entrant]:
        """Who takes part, by the name in the results."""
        return {specs.named(spec)[0]: spec for spec in self.agents}

    @property
    def terms(self) -> Terms:
        """The terms under which the agents are asked."""
        return Terms(self.isolate, self.patience, trust=self.trust)

    @property
    def names(self) -> tuple[str, ...]:
        """What those who take part are called in the results, as listed."""
        return tuple(self.entrants)


@dataclass(frozen=True)
class Block:
    """Some deals of one line-up: what is played, written and read at once."""

    line_up: LineUp
    first: int
    stop: int

    @property
    def games(self) -> int:
        """Games in it."""
        return (self.stop - self.first) * len(self.line_up)


@dataclass
class Outcome:
    """The games of a round robin, and the agents that had to leave it."""

    agents: tuple[str, ...]
    """Those that stayed."""
    matches: list[Match]
    failures: list[AgentError] = field(default_factory=list)


Result: TypeAlias = tuple[Block, Match | AgentError]


def play_tournament(
    settings: Settings,
    folder: Folder,
    workers: int = 1,
    backend: Backend = "loky",
    looks: Sequence[int] = (),
    is_enough: Callable[[Outcome], bool] = lambda outcome: False,
) -> Outcome:
    """Play what the folder doesn't hold yet; the same games for any number of workers.

    An agent that breaks its contract leaves the run, and all its games with it.

    Args:
        settings: of the run.
        folder: keeps each block of games as soon as it is played.
        workers: processes.
        backend: joblib's; "ray" runs on a Ray cluster.
        looks: numbers of deals after which to ask whether that is enough.
        is_enough: ends the run at a look.
    """
    if backend == "ray":
        register_ray()
    run = _Run(settings, folder, workers, backend)
    tables = line_ups(settings.names, settings.num_players, settings.mixed)
    outcome = Outcome(settings.names, [])
    total = len(tables) * settings.deals * settings.num_players
    with keeping_processes(), Bar("playing", total) as bar:
        for start, stop in stretches(settings.deals, looks):
            wanted = [b for table in tables for b in part(table, start, stop, settings.entrants)]
            run.play(wanted, bar)
            outcome = run.outcome(tables)
            if len(outcome.agents) < 2 or is_enough(outcome):
                break
    return outcome


def play_blocks(
    settings: Settings,
    folder: Folder,
    blocks: Sequence[Block],
    workers: int = 1,
    backend: Backend = "loky",
) -> list[AgentError]:
    """Play some of a run's blocks, so that several machines can share it.

    Returns:
        The failures of agents, whose other blocks are then missing.
    """
    if backend == "ray":
        register_ray()
    run = _Run(settings, folder, workers, backend)
    with keeping_processes(), Bar("playing", sum(block.games for block in blocks)) as bar:
        run.play(blocks, bar)
    return run.failures


def decks_of(
    num_deals: int, num_players: int, variant: str, deal_set: str, seed: int
) -> npt.NDArray[np.int8]:
    """The deals that a run plays, as `draw_deals` gives them: fresh ones, or the public ones."""
    stream = PUBLIC_SEED if deal_set == "public" else seed
    return draw_deals(num_deals, num_players, variant, stream)


def stretches(deals: int, looks: Sequence[int]) -> list[tuple[int, int]]:
    """The deals between two looks of a run, as pairs: the first, and the one after the last.

    >>> stretches(100, [25, 50, 100])
    [(0, 25), (25, 50), (50, 100)]
    """
    return list(pairwise([0, *(look for look in looks if look < deals), deals]))


def part(line_up: LineUp, start: int, stop: int, entrants: Mapping[str, Entrant]) -> list[Block]:
    """The blocks of the deals that a run plays between two of its looks.

    Args:
        line_up: names.
        start: the first deal.
        stop: the one after the last.
        entrants: who they are, by name.
    """
    size = blocks([entrants[name] for name in line_up], stop - start)
    return [Block(line_up, start + first, start + last) for first, last in size]


class _Run:
    """The games of a run so far."""

    def __init__(self, settings: Settings, folder: Folder, workers: int, backend: Backend) -> None:
        self._decks = decks_of(
            settings.deals,
            settings.num_players,
            settings.variant,
            settings.deal_set,
            settings.seed,
        )
        self._hashes = deal_hashes(self._decks, settings.num_players, settings.variant)
        self._settings = settings
        self._folder = folder
        self._terms = replace(settings.terms, logs=folder.logs)
        self._workers = workers
        self._backend = backend
        self._games: dict[Block, Match] = {}
        self._failures: dict[str, AgentError] = {}

    @property
    def failures(self) -> list[AgentError]:
        """Of the agents that have left."""
        return list(self._failures.values())

    def outcome(self, tables: Sequence[LineUp]) -> Outcome:
        """The line-ups without the agents that have left."""
        stayed = tuple(name for name in self._settings.names if name not in self._failures)
        by_table: dict[LineUp, list[Block]] = {table: [] for table in tables}
        for block in sorted(self._games, key=lambda block: block.first):
            by_table[block.line_up].append(block)
        matches = [
            Match.concatenate([self._games[block] for block in own])
            for table, own in by_table.items()
            if not self._failures.keys() & set(table)
        ]
        return Outcome(stayed, matches, self.failures)

    def play(self, wanted: Sequence[Block], bar: Bar) -> None:
        """Read each block, or play and write it; line-ups take turns."""
        missing = []
        for block in wanted:
            hashes = self._hashes[block.first : block.stop]
            found = self._folder.read(block.line_up, block.first, block.stop, hashes)
            if found is None:
                missing.append(block)
            else:
                self._games[block] = found
                bar.advance(block.games)
        missing = [missing[i] for i in in_turns([block.line_up for block in missing])]
        pace = Pace()
        for block in missing:
            pace.want(block.line_up, block.stop - block.first)
        alone = self._workers == 1 and self._backend == "loky"
        results = self._here(missing, bar.advance) if alone else self._elsewhere(missing)
        for block, result in results:
            if isinstance(result, AgentError):
                self._failures.setdefault(result.agent, result)
                pace.leave(result.agent)
                continue
            self._games[block] = result
            self._folder.write(result, block.first, block.stop)
            pace.played(result)
            bar.expect(pace.left())
            if not alone:
                bar.advance(block.games)

    def _wanted(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Leave out, as soon as it is known, what would be played with a broken agent."""
        return (block for block in blocks if not self._failures.keys() & set(block.line_up))

    def _here(self, blocks: Sequence[Block], advance: Callable[[int], None]) -> Iterator[Result]:
        for block in self._wanted(blocks):
            decks = self._decks[block.first : block.stop]
            yield _play(self._settings, block, decks, advance, terms=self._terms)

    def _elsewhere(self, blocks: Sequence[Block]) -> Iterator[Result]:
        # Workers share the cores already: each with a thread a core would only add switching.
        num_threads = 1 if self._workers > 1 else None
        parent = (os.getpid(), os.getcwd()) if self._backend == "loky" else None
        options = partial(_play, num_threads=num_threads, parent=parent, terms=self._terms)
        play = partial(options, self._settings)
        tasks = (
            joblib.delayed(play)(block, self._decks[block.first : block.stop])
            for block in self._wanted(blocks)
        )
        config = joblib.parallel_config(backend=self._backend, n_jobs=self._workers)
        with naming_lost_workers(), config:
            if self._backend == "loky":
                parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
                yield from parallel(tasks)
                return
            # Ray's backend gives results in lists only.
            with joblib.Parallel(batch_size=1) as parallel:
                while wave := list(islice(tasks, _WAVE * self._workers)):
                    yield from parallel(wave)


def register_ray() -> None:
    """Make Ray known to joblib.

    Raises:
        ImportError: it isn't installed; says how to install it.
    """
    try:
        from ray.util.joblib import register_ray as register
    except ImportError as error:
        raise ImportError(f"backend ray needs Ray: pip install 'threeup[ray]' ({error})") from error
    register()


def _play(
    settings: Settings,
    block: Block,
    decks: npt.NDArray[np.int8],
    advance: Callable[[int], None] = lambda count: None,
    num_threads: int | None = None,
    parent: tuple[int, str] | None = None,
    terms: Terms = TERMS,
) -> Result:
    """Play a block; an agent's fault is a result too.

    A worker ends with its `parent`, a process and its folder, and finds files where that does.
    """
    if parent is not None:
        end_with(parent[0])
        os.chdir(parent[1])
    entrants = settings.entrants
    try:
        match = play_block(
            [entrants[name] for name in block.line_up],
            decks,
            block.first,
            settings.variant,
            settings.max_steps,
            settings.seed,
            settings.seconds_per_decision,
            advance,
            num_threads=num_threads,
            seats=draw_seats(block.line_up, block.first, block.stop, settings.seed),
            terms=terms,
        )
    except AgentError as error:
        return block, error
    return block, match
