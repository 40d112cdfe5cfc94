"""The shipped ladder: the known agents' games on the public deals, to measure others by.

`python -m threeup_agents.arena.ladder` plays them and writes the files of the package.
"""

import json
import lzma
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import tyro

from threeup_agents.arena import play
from threeup_agents.arena.deals import deal_hashes
from threeup_agents.arena.line_ups import LineUp, draw_seats
from threeup_agents.arena.match import DAMAGED, Match
from threeup_agents.arena.provenance import agent_hash, engine_hash
from threeup_agents.arena.run_folder import Folder
from threeup_agents.arena.tournament import Block, Settings, decks_of, part, play_tournament
from threeup_agents.files import atomic_write, checksum, parse_json
from threeup_env.engine.state import ENV_ID

FOLDER: Final = Path(__file__).parent / "ladders"
FAST: Final = ("random", "greedy", "careful", "policy:net", "policy")
AGENTS: Final = {2: (*FAST, "search:50"), 3: (*FAST, "search:50"), 4: FAST, 6: FAST}
"""Who stands on the ladder, by number of players."""
DEALS: Final = 2000
_DECIDED: Final = ("agents", "deals", "variant", "max_steps", "seed", "deal_set", "mixed")
"""Settings that the ladder's games decide."""

SettingsLike = TypeVar("SettingsLike", bound=Settings)


def settings_for(num_players: int) -> Settings:
    """What a ladder's run plays: pairs on the public deals.

    Raises:
        ValueError: there is no ladder for so many players.
    """
    if num_players not in AGENTS:
        known = ", ".join(map(str, AGENTS))
        raise ValueError(f"ladder: expected one of {known} players; got {num_players}")
    return Settings(AGENTS[num_players], num_players, DEALS, deal_set="public", mixed=False)


@dataclass(frozen=True)
class Ladder:
    """Games of a finished run without what can be told again: deals, seats, courses.

    A match of it has the course 0 in every game, which stands for "not kept".
    """

    settings: Settings
    line_ups: tuple[LineUp, ...]
    """`[L]`."""
    cards_left: npt.NDArray[np.int8]
    """By line-up place, line-up and game; `[S, L, B]`."""
    length: npt.NDArray[np.uint16]
    """Actions taken, `[L, B]`."""
    seconds: npt.NDArray[np.float64]
    """As `Match` has it, `[L, S]`."""
    decisions: npt.NDArray[np.int64]
    """As `Match` has it, `[L, S]`."""

    @classmethod
    def of(cls, settings: Settings, matches: Sequence[Match]) -> "Ladder":
        """The games of a run."""
        return cls(
            settings,
            tuple(match.line_up for match in matches),
            np.array([match.cards_left for match in matches], np.int8).transpose(2, 0, 1),
            np.array([match.length for match in matches], np.uint16),
            np.array([match.seconds for match in matches]),
            np.array([match.decisions for match in matches]),
        )

    def blocks(self) -> Iterator[tuple[Block, Match]]:
        """Its games as a run's folder keeps them."""
        settings = self.settings
        size = settings.num_players
        which = settings.variant, settings.deal_set, settings.seed
        decks = decks_of(settings.deals, size, *which)
        hashes = deal_hashes(decks, size, settings.variant)
        for i, line_up in enumerate(self.line_ups):
            for block in part(line_up, 0, settings.deals, settings.entrants):
                yield block, self._match(i, block, hashes)

    def _match(self, index: int, block: Block, hashes: npt.NDArray[np.int64]) -> Match:
        size = self.settings.num_players
        deal = np.repeat(np.arange(block.first, block.stop), size)
        rotation = np.tile(np.arange(size), block.stop - block.first)
        seats = draw_seats(block.line_up, block.first, block.stop, self.settings.seed)
        cards_left = self.cards_left[:, index, block.first * size : block.stop * size].T
        won = cards_left == 0  # nobody has shed all cards in a game that was cut off
        weight = 1 if block.first == 0 else 0  # times are kept by line-up only
        return Match(
            line_up=block.line_up,
            deal=deal,
            rotation=rotation.astype(np.int8),
            seat=((np.repeat(seats, size, axis=0) + rotation[:, None]) % size).astype(np.int8),
            deal_hash=hashes[deal],
            course=np.zeros(len(deal), np.uint64),
            win_share=won.astype(np.float64),
            cards_left=np.ascontiguousarray(cards_left),
            length=self.length[index, block.first * size : block.stop * size].astype(np.int32),
            cut_off=~won.any(axis=1),
            seconds=weight * self.seconds[index],
            decisions=weight * self.decisions[index],
        )

    def save(self, path: Path) -> None:
        """Write it with what it was made with; a tenth of what a run's folder takes."""
        about = {name: getattr(self.settings, name) for name in ("num_players", *_DECIDED)}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {"line_ups": np.array(self.line_ups)}
        arrays |= {"about": np.array(json.dumps(about | _made_with(self.settings)))}
        arrays |= {"checksum": np.array(checksum(arrays))}
        with (
            atomic_write(path) as temporary,
            zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as file,
        ):
            for name, array in arrays.items():
                # A fixed date: the same games give the same file.
                entry = zipfile.ZipInfo(f"{name}.npy")
                entry.compress_type = zipfile.ZIP_LZMA
                with file.open(entry, "w") as member:
                    np.lib.format.write_array(member, np.array(array, order="C"))


_ARRAYS: Final = ("cards_left", "length", "seconds", "decisions")


def file_for(num_players: int) -> Path:
    """Where the ladder of a table size lies."""
    return FOLDER / f"{num_players}.npz"


def load(num_players: int) -> Ladder:
    """Read a shipped ladder; nothing in it is ever executed.

    Raises:
        ValueError: there is none, it is damaged, or the installed engine or one of its agents
            plays otherwise than when it was made; says what to do.
    """
    settings_for(num_players)
    path = file_for(num_players)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as columns:
            arrays = {name: columns[name] for name in columns.files}
        kept = str(arrays.pop("checksum"))
        if kept != checksum(arrays):
            raise ValueError("its checksum is another")
        about = parse_json(str(arrays["about"]))
        settings = Settings(
            **{name: about[name] for name in ("num_players", *_DECIDED) if name != "agents"},
            agents=tuple(about["agents"]),
        )
    except (*DAMAGED, lzma.LZMAError) as error:
        raise ValueError(f"{path}: expected a ladder; it is damaged ({error}). {_ANEW}") from error
    for name, value in _made_with(settings).items():
        if about.get(name) != value:
            raise ValueError(
                f"{path}: expected games with {name} {value!r}, as it is installed; got "
                f"{about.get(name)!r}. {_ANEW}"
            )
    line_ups = tuple(tuple(map(str, line_up)) for line_up in arrays["line_ups"].tolist())
    return Ladder(settings, line_ups, **{name: arrays[name] for name in _ARRAYS})


_ANEW: Final = "Make it anew by python -m threeup_agents.arena.ladder, or install the package again"


def join(config: SettingsLike, ladder: Ladder, added: Sequence[str]) -> SettingsLike:
    """The settings by which others play on a ladder: its own, and its agents with them.

    Raises:
        ValueError: a setting that the ladder decides was given otherwise.
    """
    for field in fields(Settings):
        own, given = (getattr(settings, field.name) for settings in (ladder.settings, config))
        if field.name in _DECIDED and given not in (own, field.default):
            option = field.name.replace("_", "-")
            raise ValueError(
                f"ladder: expected no --{option}, which it decides ({own!r}); got {given!r}"
            )
    decided = {name: getattr(ladder.settings, name) for name in _DECIDED}
    return replace(config, **decided | {"agents": (*ladder.settings.agents, *added)})


@contextmanager
def folder_with(
    ladder: Ladder | None, out: Path | None, identity: dict[str, Any]
) -> Iterator[Folder]:
    """Open a run's folder; with a ladder it holds the ladder's games, so that only others are left.

    Args:
        ladder: None adds nothing.
        out: the folder; None keeps nothing but what a ladder gives, as long as this lasts.
        identity: see `Folder`.

    Raises:
        ValueError: another run's folder, or a damaged one.
        OSError: it can't be made or written.
    """
    if ladder is None:
        yield Folder(out, identity)
        return
    with TemporaryDirectory() as temporary:
        folder = Folder(Path(temporary) if out is None else out, identity)
        for block, match in ladder.blocks():
            if not folder.has(block.line_up, block.first, block.stop):
                folder.write(match, block.first, block.stop)
        yield folder


def _made_with(settings: Settings) -> dict[str, Any]:
    """What decides the games beside the settings, flat."""
    agents = {f"agent {n}": agent_hash(n, settings.num_players) for n in settings.agents}
    sizes = [play.BLOCK_GAMES, play.SLOW_BLOCK_GAMES]
    return {"env": ENV_ID, "engine": engine_hash(), "block sizes": sizes} | agents


def make(settings: Settings, workers: int = 1) -> Ladder:
    """Play a ladder's games.

    Raises:
        ValueError: an agent broke its contract.
    """
    outcome = play_tournament(settings, Folder(None, {}), workers)
    if outcome.failures:
        raise ValueError(f"ladder: expected agents that keep the rules; {outcome.failures[0]}")
    return Ladder.of(settings, outcome.matches)


def main(num_players: tuple[int, ...] = tuple(AGENTS), workers: int = 2) -> None:
    """Play the ladders anew and write the package's files.

    Args:
        num_players: which of them.
        workers: processes.
    """
    for each in num_players:
        FOLDER.mkdir(exist_ok=True)
        make(settings_for(each), workers).save(file_for(each))
        print(f"{file_for(each)}: {file_for(each).stat().st_size / 1000:,.0f} kB")


if __name__ == "__main__":
    tyro.cli(main)
