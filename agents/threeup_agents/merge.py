"""Put the folders of several machines together: one run, with its results.

They hold what was played with the same engine and settings: parts of one run, or runs of
other agents or more deals.

    threeup evaluate --part 1/2 --out one
    threeup evaluate --part 2/2 --out two
    threeup merge one two --out both
"""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from threeup_agents import competition, evaluation
from threeup_agents.arena.merging import blocks_of, merge, missing
from threeup_agents.commands import read, refuse
from threeup_agents.files import hold


@dataclass(frozen=True)
class Config:
    """Options of `threeup merge`."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs."""
    out: Path
    """Folder of the run that they make: its results.json, games.csv and report.html are those
    that one run gives. Where games are missing it says which command goes on."""


def main(arguments: Sequence[str] | None = None, prog: str = "threeup merge") -> int:
    """Run the command line, which errors call `prog`; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = read(Config, arguments, prog, __doc__)
    try:
        return run(config)
    except (ValueError, OSError) as error:
        return refuse(prog, error)


def run(config: Config) -> int:
    """Merge, then write the results as the run itself would; the exit code.

    Raises:
        ValueError: folders that don't fit each other, see `merging.merge`.
        OSError: the folder can't be written.
    """
    if not config.folders:
        raise ValueError("folders: expected a value; got none")
    with hold(config.out):
        settings = merge(config.folders, config.out)
        rest = missing(config.out, settings)
    whole = evaluation.Config(**vars(settings), out=config.out)
    if rest:
        games = sum(block.games for block in blocks_of(settings))
        print(
            f"{config.out}: {games - sum(block.games for block in rest):,} of {games:,} games; to "
            f"play the others: {competition.command(whole)} --out {shlex.quote(str(config.out))}"
        )
        return 0
    return evaluation.AGENT_LEFT if evaluation.run(whole)["failures"] else 0
