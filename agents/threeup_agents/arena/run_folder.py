"""A run's folder: the games as they come, so that a run that was stopped goes on."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.arena.line_ups import LineUp
from threeup_agents.arena.match import Match
from threeup_agents.files import parse_json, read_json, write_text

GAMES: Final = "games"
RESULTS: Final = "results.json"
IDENTITY: Final = "run.json"


class Folder:
    """Keeps blocks of games; without a path it keeps nothing.

    Who writes into it keeps other processes out by `files.hold`.

    Args:
        path: of the folder, made if need be.
        identity: what decides the games of a block beside its line-up and deals. A folder
            that holds another run's games is refused.

    Raises:
        ValueError: another run's folder, or a damaged one.
        OSError: it can't be made or written.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any]) -> None:
        self._path = path
        self._identity = identity
        if path is None:
            return
        (path / GAMES).mkdir(parents=True, exist_ok=True)
        file = path / IDENTITY
        if file.exists():
            before = read_identity(path)
            check_same(path, before, identity)
            identity = merged(before, identity)
        self._identity = identity
        write_text(file, json.dumps(identity, indent=2) + "\n")

    def read(
        self, line_up: LineUp, first: int, stop: int, deal_hashes: npt.NDArray[np.int64]
    ) -> Match | None:
        """The games of a block, or None if they have not been played.

        Args:
            line_up: who plays.
            first: the first deal.
            stop: the one after the last.
            deal_hashes: of these deals, int64 `[D]`.

        Raises:
            ValueError: the file is damaged, or another run's.
        """
        if self._path is None:
            return None
        match = read_block(self._path, self._identity, line_up, first, stop)
        if match is not None and (match.deal_hash[:: len(line_up)] != deal_hashes).any():
            raise _another(
                block_file(self._path, line_up, first, stop), "this run's deals", "others"
            )
        return match

    def has(self, line_up: LineUp, first: int, stop: int) -> bool:
        """Whether the games of a block are kept."""
        return self._path is not None and block_file(self._path, line_up, first, stop).exists()

    def write(self, match: Match, first: int, stop: int) -> None:
        """Keep the games of a block."""
        if self._path is not None:
            made_with = json.dumps(_made_with(self._identity, match.line_up))
            match.save(block_file(self._path, match.line_up, first, stop), made_with)


def read_block(
    path: Path, identity: dict[str, Any], line_up: LineUp, first: int, stop: int
) -> Match | None:
    """The games of a block in a run's folder, or None if they have not been played.

    Args:
        path: the folder.
        identity: of the run, as its file `IDENTITY` says.
        line_up: who plays.
        first: the first deal.
        stop: the one after the last.

    Raises:
        ValueError: the file is damaged, or another run's; says what is wrong.
    """
    file = block_file(path, line_up, first, stop)
    if not file.exists():
        return None
    match, made_with = Match.load_made(file)
    deals = (match.num_deals, int(match.deal[0]) if match.num_deals else None)
    if match.line_up != line_up or deals != (stop - first, first):
        expected = f"{' / '.join(line_up)} on deals {first} to {stop - 1}"
        raise _another(file, expected, " / ".join(match.line_up))
    found = parse_json(made_with) if made_with else {}
    for name, value in _made_with(identity, line_up).items():
        if found.get(name) != value:
            raise _another(file, f"games with {name} {value!r}", repr(found.get(name)))
    return match


def _another(file: Path, expected: str, got: str) -> ValueError:
    return ValueError(
        f"{file}: expected {expected}; got {got}. It is another run's: delete it and run the "
        "same command to play them"
    )


def _made_with(identity: dict[str, Any], line_up: LineUp) -> dict[str, Any]:
    """What decides the games of a block beside its line-up and deals, flat."""
    agents = {f"agent {name}": identity["agents"][name] for name in line_up}
    return {name: value for name, value in identity.items() if name != "agents"} | agents


def block_file(path: Path, line_up: LineUp, first: int, stop: int) -> Path:
    """Where the games of a block are kept."""
    name = hashlib.sha256(repr(line_up).encode()).hexdigest()[:12]
    return path / GAMES / f"{name}-{first}-{stop}.npz"


def read_identity(path: Path) -> dict[str, Any]:
    """What decides the games of a folder beside their line-ups and deals.

    Raises:
        ValueError: the file is missing or damaged.
    """
    file = path / IDENTITY
    found = read_json(file)
    if not isinstance(found.get("agents"), dict):
        raise ValueError(f"{file}: expected the settings of a run; got {found!r}"[:200])
    return found


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The identity of a folder to which other agents come."""
    return new | {"agents": old["agents"] | new["agents"]}


def check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuse a folder whose games this run would not have played alike.

    Raises:
        ValueError: says which setting or agent differs.
    """
    both = {name: (old.get(name), value) for name, value in new.items() if name != "agents"}
    both |= {
        f"agent {name}": (old["agents"].get(name, value), value)
        for name, value in new["agents"].items()
    }
    for name, (before, now) in both.items():
        if before != now:
            raise ValueError(
                f"out: {path} holds a run with {name} {before!r}; got {now!r}. "
                "Choose another folder"
            )
