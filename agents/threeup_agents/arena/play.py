"""Matches in lock-step: fixed agents, every deal under every rotation of the seats."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_agents import specs
from threeup_agents.arena.deals import deal_hashes, draw_deals
from threeup_agents.arena.match import Match
from threeup_agents.arena.progress import Bar
from threeup_agents.arena.referee import SECONDS_PER_DECISION, AgentError, Referee
from threeup_agents.arena.slots import Slots
from threeup_agents.arena.terms import TERMS, Terms, custody, take_in
from threeup_agents.arena.threads import one_blas_thread
from threeup_agents.outside.functions import agent_of
from threeup_env.agent import Agent, MemoryAgent, name_of
from threeup_env.engine.batch import Batch
from threeup_env.engine.events import EventLog
from threeup_env.engine.rng import MATCH_AGENTS, streams

BLOCK_GAMES: Final = 1024
"""Games played at once in a block. Each block gets agents with streams of their own, so
that it is the same whatever is played before it or beside it."""
SLOW_BLOCK_GAMES: Final = 64
"""The same where an agent searches: less is lost when such a run is stopped."""
_SLOW: Final = ("flat:", "search:")
_FNV_PRIME: Final = np.uint64(1099511628211)

Entrant: TypeAlias = "str | Agent | MemoryAgent | Callable[..., Any]"
"""Who takes part: a spec for `threeup_agents.make`, or what `agent_of` takes: a function from a
seed to an agent, a function of a row's observation and mask, or an agent as it is (then its random
stream, if it has one, goes on from block to block)."""

Watch: TypeAlias = Callable[[Batch, npt.NDArray[np.int64], npt.NDArray[np.int64]], None]
"""Called before every step: the batch, the rows that are stepped, int64 `[K]`, and their
actions, int64 `[K]`."""


def play(
    line_up: Sequence[Entrant],
    deals: int | npt.NDArray[np.int8] = 100,
    num_players: int | None = None,
    variant: str = "standard",
    max_steps: int = 1000,
    seed: int = 0,
    limit: float = SECONDS_PER_DECISION,
    progress: bool = True,
    trust: bool = False,
) -> Match:
    """Play a match: every deal under every rotation of the seats.

    The deals come from one random stream and each agent's choices from another, so the
    same seed gives the same deals whoever plays, and the same games every time.

    Args:
        line_up: who sits where under rotation 0; the last one also takes the seats left
            over, so that `["greedy", "random"]` at 4 is one greedy among three random.
        deals: how many to draw, or the decks themselves, int8 `[D, deck size]`.
        num_players: seats at the table; None means one for each of the line-up.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off (R21).
        seed: starts the stream of deals and the agents' streams.
        limit: seconds that an agent may take per decision, see `Referee`.
        progress: show a bar on anything over two seconds.
        trust: see `threeup_agents.make`.

    Raises:
        ValueError: an unknown agent, variant or table size, or a line-up that is too long.
        AgentError: an agent raised, took too long or gave no legal action.

    Example:
        >>> match = play(["greedy", "random"], deals=50)
        >>> bool(match.win_share[:, 0].mean() > 0.5)
        True
    """
    num_players = len(line_up) if num_players is None else num_players
    if not 1 <= len(line_up) <= num_players:
        raise ValueError(f"line_up: expected 1 to {num_players} agents; got {len(line_up)}")
    decks = draw_deals(deals, num_players, variant, seed) if isinstance(deals, int) else deals
    full = [*line_up, *[line_up[-1]] * (num_players - len(line_up))]
    parts = []
    with Bar("playing", len(decks) * num_players, show=progress) as bar:
        for first, stop in blocks(full, len(decks)):
            settings = variant, max_steps, seed, limit, bar.advance
            parts.append(
                play_block(full, decks[first:stop], first, *settings, terms=Terms(trust=trust))
            )
    return Match.concatenate(parts)


def blocks(line_up: Sequence[Entrant], deals: int) -> list[tuple[int, int]]:
    """The first deal of each block and the one after its last.

    >>> blocks(["greedy", "random"], 1200)
    [(0, 512), (512, 1024), (1024, 1200)]
    """
    known = (specs.named(who)[1] if isinstance(who, str) else _label(who) for who in line_up)
    slow = any(name.startswith(_SLOW) for name in known)
    size = max(1, (SLOW_BLOCK_GAMES if slow else BLOCK_GAMES) // len(line_up))
    return [(first, min(first + size, deals)) for first in range(0, deals, size)]


def play_block(
    line_up: Sequence[Entrant],
    decks: npt.NDArray[np.int8],
    first_deal: int = 0,
    variant: str = "standard",
    max_steps: int = 1000,
    seed: int = 0,
    limit: float = SECONDS_PER_DECISION,
    advance: Callable[[int], None] = lambda count: None,
    watch: Watch | None = None,
    num_threads: int | None = None,
    seats: npt.NDArray[np.int8] | None = None,
    terms: Terms = TERMS,
) -> Match:
    """Play some deals of a match in one lock-step batch.

    Args:
        line_up: one entrant a seat.
        decks: int8 `[D, deck size]`.
        first_deal: number of the first deal; also chooses the agents' streams.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off (R21).
        seed: starts the agents' streams.
        limit: seconds that an agent may take per decision, see `Referee`.
        advance: called with the number of games that have just ended.
        watch: called before every step.
        num_threads: see `threeup_agents.make`.
        seats: of each place under rotation 0, deal by deal, int8 `[D, S]`; None means its own
            number.
        terms: under which the agents are asked.

    Raises:
        AgentError: an agent raised, took too long or gave no legal action.
        ValueError: no such agent, or one that can't be isolated.
    """
    num_players = len(line_up)
    made, places = _make_agents(line_up, seed, first_deal, num_threads, terms)
    names = tuple(map(_label, line_up))
    rotation = np.tile(np.arange(num_players), len(decks))
    deal = np.repeat(np.arange(first_deal, first_deal + len(decks)), num_players)
    hashes = np.repeat(deal_hashes(decks, num_players, variant), num_players)
    batch = Batch(len(rotation), num_players, variant, max_steps, autoreset=False)
    batch.reset(decks=np.repeat(decks, num_players, axis=0))
    seat_of = _seat_of(rotation, num_players, seats)
    agent_at = places[np.argsort(seat_of, axis=1)]
    called = [names[places.tolist().index(i)] for i in range(len(made))]
    try:
        watched = Referee(called, made, limit, terms.patience)
        with one_blas_thread(), custody(made), watched as referee:
            slots = _tell_slots(batch, referee, agent_at)
            course, cut_off = _play_out(batch, referee, agent_at, slots, hashes, advance, watch)
    except AgentError as error:
        where = {"deal": deal, "rotation": rotation, "step": batch.lengths}
        error.where = {"line_up": names} | {k: int(at[error.row]) for k, at in where.items()}
        raise
    cards_left = np.take_along_axis(batch.cards_left, seat_of, axis=1)
    won = (cards_left == 0) & ~cut_off[:, None]  # who has won has no card left (R20, R21)
    return Match(
        line_up=names,
        deal=deal,
        rotation=rotation.astype(np.int8),
        seat=seat_of.astype(np.int8),
        deal_hash=hashes,
        course=course,
        win_share=won.astype(np.float64),
        cards_left=cards_left,
        length=batch.lengths.copy(),
        cut_off=cut_off,
        seconds=_at_first_place(places, referee.seconds),
        decisions=_at_first_place(places, referee.decisions),
    )


def _seat_of(
    rotation: npt.NDArray[np.int64], num_players: int, seats: npt.NDArray[np.int8] | None
) -> npt.NDArray[np.int64]:
    """The seat of each place in each game; `[B, S]`."""
    first = np.arange(num_players) if seats is None else np.repeat(seats, num_players, axis=0)
    turned: npt.NDArray[np.int64] = (first + rotation[:, None]) % num_players
    return turned


def _at_first_place(places: npt.NDArray[np.int64], values: Sequence[Any]) -> npt.NDArray[Any]:
    """Spread values by agent over line-up places: each at its agent's first, else 0; `[S]`."""
    spread = np.zeros(len(places), np.asarray(values).dtype)
    for i, value in enumerate(values):
        spread[places.tolist().index(i)] = value
    return spread


def _tell_slots(
    batch: Batch, referee: Referee, agent_at: npt.NDArray[np.int64]
) -> list[Slots | None]:
    """Begin the games for the agents with memory; the slots of each, None of the others."""
    remembers = referee.open()
    slots: list[Slots | None] = [None] * len(remembers)
    if any(remembers):  # only now is it known that somebody reads the log
        batch.log = EventLog(batch.num_games)
        for i in np.flatnonzero(remembers):
            own = slots[i] = Slots(batch, batch.log, agent_at == i)
            referee.begin(int(i), own.numbers, own.seats, batch.num_players)
    return slots


def _play_out(
    batch: Batch,
    referee: Referee,
    agent_at: npt.NDArray[np.int64],
    slots: Sequence[Slots | None],
    hashes: npt.NDArray[np.int64],
    advance: Callable[[int], None],
    watch: Watch | None,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Step until every game has ended; the courses and what was cut off, each `[B]`.

    Args:
        batch: just dealt.
        referee: asks the agents.
        agent_at: index of the agent at each seat; int64 `[B, S]`.
        slots: of each agent; None of one without memory.
        hashes: of the deals; int64 `[B]`.
        advance: see `play_block`.
        watch: see `play_block`.
    """
    cut_off = np.zeros(batch.num_games, np.bool_)
    course = hashes.astype(np.uint64)
    running = np.arange(batch.num_games)
    while len(running):
        acting = agent_at[running, batch.seats[running]]
        actions = np.empty(len(running), np.int64)
        for i in range(len(referee.agents)):
            own = np.flatnonzero(acting == i)
            if len(own):
                rows = running[own]
                views = batch.observations.take(rows, axis=0), batch.action_masks.take(rows, axis=0)
                memory = slots[i]
                told = () if memory is None else memory.tell(rows)
                actions[own] = referee.ask(i, *views, rows, *told)
        if watch is not None:
            watch(batch, running, actions)
        batch.step(actions, running)
        course[running] = (course[running] ^ actions.astype(np.uint64)) * _FNV_PRIME
        ended = batch.terminations | batch.truncations
        if ended.any():
            cut_off |= batch.truncations
            advance(int(ended.sum()))
            running = running[~ended[running]]
    return course, cut_off


def _label(entrant: Entrant) -> str:
    """The name that a spec gives or else the spec, else the agent's or the function's name."""
    if isinstance(entrant, str):
        return specs.named(entrant)[0]
    return name_of(entrant)


def _make_agents(
    line_up: Sequence[Entrant],
    seed: int,
    first_deal: int,
    num_threads: int | None,
    terms: Terms,
) -> tuple[list[Agent | MemoryAgent], npt.NDArray[np.int64]]:
    """Make each different entrant once; index of its agent by line-up place, `[S]`."""
    different: list[Entrant] = []
    for entrant in line_up:
        if entrant not in different:
            different.append(entrant)
    made = []
    for entrant in different:
        name = _label(entrant)
        own_seed = agent_seed(name, seed, first_deal)
        maker = partial(_make, entrant, own_seed, num_threads, terms.trust)
        made.append(take_in(name, maker, entrant, terms))
    return made, np.array([different.index(entrant) for entrant in line_up])


def _make(entrant: Entrant, seed: int, num_threads: int | None, trust: bool) -> Agent | MemoryAgent:
    """Make one agent, here or in the process where it is going to be asked."""
    if isinstance(entrant, str):
        return specs.make_any(entrant, seed, num_threads, trust)
    return agent_of(entrant, seed, any_name_is_seed=True)


def agent_seed(name: str, seed: int, first_deal: int) -> int:
    """The seed of an agent's stream for the block that starts at `first_deal`.

    It depends on the agent's name, not on its place in a list, so that an agent plays
    the same whoever else takes part.
    """
    key = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=16).digest(), np.uint32)
    return int(streams(seed, 1, (*MATCH_AGENTS, *key.tolist(), first_deal))[0])
