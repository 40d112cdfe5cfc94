"""Matches in lock-step: fixed agents, every deal under every rotation of the seats."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

import agents
from agents.base import Agent
from agents.deals import deal_hash, draw_deals
from agents.progress import Bar
from threeup_env.batch import Batch

AGENTS: Final = 1
"""First spawn key of an agent's random streams; the deals' stream starts with another."""
BLOCK: Final = 256
"""Deals played at once. Each block gets agents with streams of their own, so that a block
is the same whatever is played before it or beside it."""
_FNV_PRIME: Final = np.uint64(1099511628211)

Entrant: TypeAlias = "str | Agent | Callable[[int], Agent]"
"""Who takes part: a spec for `agents.make`, a function from a seed to an agent, or an agent
as it is (then its random stream, if it has one, goes on from block to block)."""


@dataclass(frozen=True)
class Match:
    """The games of one line-up, sorted by deal and rotation; a row a game.

    Line-up place i sits at seat `(i + rotation) % S`.
    """

    line_up: tuple[str, ...]
    """Names of the agents, `[S]`."""
    deal: npt.NDArray[np.int64]
    """Number of the deal, `[B]`."""
    rotation: npt.NDArray[np.int8]
    """How far the line-up is turned, `[B]`."""
    deal_hash: npt.NDArray[np.int64]
    """Names the cards as dealt, `[B]`."""
    course: npt.NDArray[np.uint64]
    """Equal for games of the same deal and the same actions, `[B]`."""
    win_share: npt.NDArray[np.float64]
    """Share of the win by line-up place; 1 for the winner; `[B, S]`."""
    cards_left: npt.NDArray[np.int8]
    """Cards that each line-up place has left, `[B, S]`."""
    length: npt.NDArray[np.int32]
    """Actions taken, `[B]`."""
    cut_off: npt.NDArray[np.bool_]
    """True where the step limit ended the game, `[B]`."""

    @property
    def num_players(self) -> int:
        """Seats at the table, S."""
        return len(self.line_up)

    @property
    def place(self) -> npt.NDArray[np.float64]:
        """1 for the fewest cards left, equals sharing the mean of their places; `[B, S]`."""
        places: npt.NDArray[np.float64] = stats.rankdata(self.cards_left, axis=1)
        return places

    def by_deal(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The mean of a column over the rotations of each deal; `[D, ...]`."""
        shape = (-1, self.num_players, *values.shape[1:])
        means: npt.NDArray[np.float64] = values.reshape(shape).mean(axis=1)
        return means

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """A table with a row a game, by seat: `pandas.DataFrame(match.columns())`."""
        rows = np.arange(len(self.deal))
        table: dict[str, npt.NDArray[Any]] = {
            "deal": self.deal,
            "rotation": self.rotation,
            "deal_hash": self.deal_hash,
        }
        names = np.array(self.line_up)
        places = [(seat - self.rotation) % self.num_players for seat in range(self.num_players)]
        table |= {f"agent_{seat}": names[place] for seat, place in enumerate(places)}
        for name, values in (("win_share", self.win_share), ("cards_left", self.cards_left)):
            table |= {f"{name}_{seat}": values[rows, place] for seat, place in enumerate(places)}
        return table | {"length": self.length, "cut_off": self.cut_off}

    @classmethod
    def concatenate(cls, parts: Sequence["Match"]) -> "Match":
        """Put parts of one line-up's games together, in the order given."""
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in cls.__dataclass_fields__
            if name != "line_up"
        }
        return cls(line_up=parts[0].line_up, **arrays)


def play(
    line_up: Sequence[Entrant],
    deals: int | npt.NDArray[np.int8] = 100,
    num_players: int | None = None,
    variant: str = "standard",
    max_steps: int = 1000,
    seed: int = 0,
    progress: bool = True,
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
        progress: show a bar on anything over two seconds.

    Raises:
        ValueError: an unknown agent, variant or table size, or a line-up that is too long.

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
        for first in range(0, len(decks), BLOCK):
            block = decks[first : first + BLOCK]
            parts.append(play_block(full, block, first, variant, max_steps, seed, bar.advance))
    return Match.concatenate(parts)


def play_block(
    line_up: Sequence[Entrant],
    decks: npt.NDArray[np.int8],
    first_deal: int = 0,
    variant: str = "standard",
    max_steps: int = 1000,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
) -> Match:
    """Play some deals of a match in one lock-step batch.

    Args:
        line_up: one entrant a seat.
        decks: int8 `[D, deck size]`.
        first_deal: number of the first deal; also chooses the agents' streams.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off (R21).
        seed: starts the agents' streams.
        advance: called with the number of games that have just ended.
    """
    num_players = len(line_up)
    made, places = _make_agents(line_up, seed, first_deal)
    rotation = np.tile(np.arange(num_players), len(decks))
    batch = Batch(len(rotation), num_players, variant, max_steps, autoreset=False)
    batch.reset(decks=np.repeat(decks, num_players, axis=0))
    # agent_at[game, seat]: index into the agents made.
    place_at = (np.arange(num_players) - rotation[:, None]) % num_players
    hashes = np.array([deal_hash(deck, num_players, variant) for deck in decks])
    win_share, course = _play_out(
        batch, made, places[place_at], np.repeat(hashes, num_players), advance
    )
    seat_of = (np.arange(num_players) + rotation[:, None]) % num_players
    return Match(
        line_up=tuple(map(_label, line_up)),
        deal=np.repeat(np.arange(first_deal, first_deal + len(decks)), num_players),
        rotation=rotation.astype(np.int8),
        deal_hash=np.repeat(hashes, num_players),
        course=course,
        win_share=np.take_along_axis(win_share, seat_of, axis=1),
        cards_left=np.take_along_axis(batch.cards_left, seat_of, axis=1),
        length=batch.lengths.copy(),
        cut_off=batch.truncations.copy(),
    )


def _play_out(
    batch: Batch,
    made: Sequence[Agent],
    agent_at: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.int64],
    advance: Callable[[int], None],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint64]]:
    """Step until every game has ended; the shares of the win by seat and the courses."""
    num_players = batch.num_players
    win_share = np.zeros((batch.num_games, num_players))
    cut_off = np.zeros(batch.num_games, np.bool_)
    course = hashes.astype(np.uint64)
    running = np.arange(batch.num_games)
    while len(running):
        acting = agent_at[running, batch.seats[running]]
        actions = np.empty(len(running), np.int64)
        for i, agent in enumerate(made):
            own = np.flatnonzero(acting == i)
            if len(own):
                rows = running[own]
                actions[own] = agent.act(batch.observations[rows], batch.action_masks[rows])
        batch.step(actions, running)
        course[running] = (course[running] ^ actions.astype(np.uint64)) * _FNV_PRIME
        ended = batch.terminations | batch.truncations
        if ended.any():
            # The inverse of the reward (n w - 1) / (n - 1).
            win_share[ended] = (batch.rewards[ended] * (num_players - 1.0) + 1) / num_players
            cut_off |= batch.truncations
            advance(int(ended.sum()))
            running = running[~ended[running]]
    batch.truncations[:] = cut_off
    return win_share, course


def _label(entrant: Entrant) -> str:
    """A spec as it is, else the agent's or the function's name."""
    if isinstance(entrant, str):
        return entrant
    return str(getattr(entrant, "name", None) or getattr(entrant, "__name__", entrant))


def _make_agents(
    line_up: Sequence[Entrant], seed: int, first_deal: int
) -> tuple[list[Agent], npt.NDArray[np.int64]]:
    """Make each different entrant once; index of its agent by line-up place, `[S]`."""
    different: list[Entrant] = []
    for entrant in line_up:
        if entrant not in different:
            different.append(entrant)
    made: list[Agent] = []
    for entrant in different:
        own_seed = agent_seed(_label(entrant), seed, first_deal)
        if isinstance(entrant, str):
            made.append(agents.make(entrant, own_seed))
        else:
            made.append(entrant(own_seed) if callable(entrant) else entrant)
    return made, np.array([different.index(entrant) for entrant in line_up])


def agent_seed(name: str, seed: int, first_deal: int) -> int:
    """The seed of an agent's stream for the block that starts at `first_deal`.

    It depends on the agent's name, not on its place in a list, so that an agent plays
    the same whoever else takes part.
    """
    key = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=16).digest(), np.uint32)
    sequence = np.random.SeedSequence(seed, spawn_key=(AGENTS, *key.tolist(), first_deal))
    return int(sequence.generate_state(1, np.uint64)[0])
