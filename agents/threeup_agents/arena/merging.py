"""Runs that add up: parts played on several machines, put together in one folder."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

import numpy as np

from threeup_agents.arena.line_ups import line_ups
from threeup_agents.arena.match import Match
from threeup_agents.arena.run_folder import (
    GAMES,
    Folder,
    block_file,
    check_same,
    merged,
    read_block,
    read_identity,
)
from threeup_agents.arena.tournament import Block, Settings, part
from threeup_agents.files import Field, atomic_write, check_fields, read_json, write_text

SETTINGS: Final = "settings.json"
"""What a folder's run was asked to play; there as soon as it begins."""
_NEW_ONES: Final = ("agents", "deals")
"""Settings in which folders that are put together may differ."""


def parse_part(text: str) -> tuple[int, int]:
    """Read "2/3", the second of three parts, as its index and their number.

    >>> parse_part("2/3")
    (1, 3)

    Raises:
        ValueError: not such a text, or no such part.
    """
    which, slash, count = text.partition("/")
    digits = all(each.isascii() and each.isdigit() for each in (which, count))
    if not slash or not digits or not 1 <= int(which) <= int(count):
        raise ValueError(f"part: expected e.g. '2/3', the second of three; got {text!r}")
    return int(which) - 1, int(count)


def blocks_of(settings: Settings) -> list[Block]:
    """All blocks of a run that doesn't stop early, in a fixed order."""
    tables = line_ups(settings.names, settings.num_players, settings.mixed)
    entrants = settings.entrants
    return [block for table in tables for block in part(table, 0, settings.deals, entrants)]


def write_settings(folder: Path, settings: Settings) -> None:
    """Say in a run's folder what the run was asked to play."""
    values = {field.name: getattr(settings, field.name) for field in fields(Settings)}
    write_text(folder / SETTINGS, json.dumps(values, indent=2) + "\n")


def read_settings(folder: Path) -> Settings:
    """What the run of a folder was asked to play.

    Raises:
        ValueError: the file is missing or damaged.
    """
    file = folder / SETTINGS
    found = read_json(file)
    check_fields(str(file), found, {each.name: _like(each.default) for each in fields(Settings)})
    values: dict[str, Any] = {each.name: found[each.name] for each in fields(Settings)}
    for name, value in values.items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return Settings(**values)


def _like(default: Any) -> Field:
    """A value of the same kind as a setting's default."""
    if isinstance(default, tuple):
        return Field(
            "a list of texts",
            lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
        )
    return Field(
        f"a value such as {default!r}",
        lambda value: (
            type(value) is type(default) or (isinstance(default, float) and type(value) is int)
        ),
    )


def merge(folders: Sequence[Path], out: Path) -> Settings:
    """Put the blocks of several folders into one, which may be one of them.

    Args:
        folders: of runs with the same engine and settings but for agents and deals.
        out: made if need be; it isn't held here.

    Returns:
        What the folder's run is now: all their agents, as many deals as the largest of them.

    Raises:
        ValueError: a folder or file that is none or damaged, or that doesn't fit the others;
            says which and why.
        OSError: the folder can't be written.
    """
    settings = reduce(_both, ((folder, read_settings(folder)) for folder in folders))[1]
    identities = {folder: read_identity(folder) for folder in folders}
    identity = identities[folders[0]]
    for folder, other in identities.items():
        check_same(folder, other, identity)
        identity = merged(other, identity)
    Folder(out, identity)
    for folder in folders:
        for file in sorted((folder / GAMES).glob("*.npz")):
            _add(folder, identities[folder], file, out)
    write_settings(out, settings)
    return settings


def missing(out: Path, settings: Settings) -> list[Block]:
    """The blocks that a run's folder doesn't hold."""
    return [
        block
        for block in blocks_of(settings)
        if not block_file(out, block.line_up, block.first, block.stop).exists()
    ]


def _both(one: tuple[Path, Settings], other: tuple[Path, Settings]) -> tuple[Path, Settings]:
    """The settings of two folders' runs together."""
    for field in fields(Settings):
        values = [getattr(settings, field.name) for _, settings in (one, other)]
        if field.name not in _NEW_ONES and values[0] != values[1]:
            raise ValueError(
                f"merge: expected runs with the same {field.name}; got {values[0]!r} in {one[0]} "
                f"and {values[1]!r} in {other[0]}"
            )
    agents = dict.fromkeys((*one[1].agents, *other[1].agents))
    deals = max(one[1].deals, other[1].deals)
    return one[0], replace(one[1], agents=tuple(agents), deals=deals)


def _add(folder: Path, identity: dict[str, Any], file: Path, out: Path) -> None:
    """Check a block and put it into the folder, unless it is there already."""
    match = Match.load(file)
    first, stop = int(match.deal[0]), int(match.deal[-1]) + 1
    known = set(match.line_up) <= set(identity["agents"])
    if not known or file != block_file(folder, match.line_up, first, stop):
        raise ValueError(
            f"{file}: expected a block of this folder's run; got {' / '.join(match.line_up)} on "
            f"deals {first} to {stop - 1} under another name. Delete it and merge again"
        )
    read_block(folder, identity, match.line_up, first, stop)
    target = block_file(out, match.line_up, first, stop)
    held = read_block(out, identity, match.line_up, first, stop)
    if held is None:
        with atomic_write(target) as temporary:
            shutil.copyfile(file, temporary)
    elif not _are_same(held, match):
        raise ValueError(
            f"{file}: expected the games of {target}; got others, though engine, settings and "
            "agents are the same. One of the two machines plays otherwise: delete its blocks"
        )


def _are_same(one: Match, other: Match) -> bool:
    """Whether the games are the same, as far as both have kept their courses."""
    kept = (one.course != 0) & (other.course != 0)
    columns = ("seat", "cards_left", "length")
    return np.array_equal(one.course[kept], other.course[kept]) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in columns
    )
