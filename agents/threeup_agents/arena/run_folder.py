"""A run's folder: the games as they come, so that a run that was stopped goes on."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from threeup_agents.arena.line_ups import LineUp
from threeup_agents.arena.match import Match
from threeup_agents.files import read_json, write_text

GAMES: Final = "games"
LOGS: Final = "programs"
"""What agents in processes of their own write to standard error, a file an agent."""
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
        if path is None:
            return
        (path / GAMES).mkdir(parents=True, exist_ok=True)
        file = path / IDENTITY
        if file.exists():
            _check_same(path, read_json(file), identity)
            identity = merged(read_json(file), identity)
        write_text(file, json.dumps(identity, indent=2) + "\n")

    @property
    def logs(self) -> Path | None:
        """Where agents in processes of their own write; None without a path."""
        return None if self._path is None else self._path / LOGS

    def read(self, line_up: LineUp, first: int, stop: int) -> Match | None:
        """The games of a block, or None if they have not been played.

        Raises:
            ValueError: the file is damaged.
        """
        return None if self._path is None else read_block(self._path, line_up, first, stop)

    def write(self, match: Match, first: int, stop: int) -> None:
        """Keep the games of a block."""
        if self._path is not None:
            match.save(_file(self._path, match.line_up, first, stop))


def read_block(path: Path, line_up: LineUp, first: int, stop: int) -> Match | None:
    """The games of a block in a run's folder, or None if they have not been played.

    Raises:
        ValueError: the file is damaged.
    """
    file = _file(path, line_up, first, stop)
    if not file.exists():
        return None
    match = Match.load(file)
    deals = (match.num_deals, int(match.deal[0]) if match.num_deals else None)
    if match.line_up != line_up or deals != (stop - first, first):
        raise ValueError(
            f"{file}: expected {' / '.join(line_up)} on deals {first} to {stop - 1}; got "
            f"{' / '.join(match.line_up)}. Delete it and run the same command to play them"
        )
    return match


def _file(path: Path, line_up: LineUp, first: int, stop: int) -> Path:
    name = hashlib.sha256(repr(line_up).encode()).hexdigest()[:12]
    return path / GAMES / f"{name}-{first}-{stop}.npz"


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The identity of a folder to which other agents come."""
    return new | {"agents": old["agents"] | new["agents"]}


def _check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuse a folder whose games this run would not have played alike."""
    if not isinstance(old.get("agents"), dict):
        raise ValueError(f"{path / IDENTITY}: expected the settings of a run; got {old!r}"[:200])
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
