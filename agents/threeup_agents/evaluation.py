"""Round robin between agents: who is better, with 95% intervals over deals.

Every line-up plays the same deals, each under every rotation of the seats.

    threeup evaluate --agents random greedy careful --out results/first
    threeup evaluate --agents greedy runs/quick mine.py:Mine --num-players 3
    threeup evaluate --ladder --add mine.py:Mine
    threeup evaluate --replay results/first 0
    threeup evaluate --list
"""

import sys
from collections.abc import Sequence
from typing import Any, Final

from threeup_agents.analysis.console import show, show_agents
from threeup_agents.arena.merging import blocks_of, parse_part, write_settings
from threeup_agents.arena.processes import TerminatedError, WorkerLostError, sigterm_as_interrupt
from threeup_agents.arena.run_folder import RESULTS, Folder
from threeup_agents.arena.tournament import play_blocks
from threeup_agents.commands import read, refuse
from threeup_agents.competition import Config, check, compete, identity, whole
from threeup_agents.files import hold
from threeup_agents.replay.from_run import replay
from threeup_agents.specs import named

__all__ = ["Config", "main", "run"]

AGENT_LEFT: Final = 3
WORKER_LOST: Final = 4
INTERRUPTED: Final = 130
TERMINATED: Final = 143


def main(arguments: Sequence[str] | None = None, prog: str = "threeup evaluate") -> int:
    """Run the command line, which errors call `prog`; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = read(Config, arguments, prog, __doc__)
    try:
        if config.list:
            show_agents()
        elif config.replay is not None:
            for text in replay(*config.replay, config.trust):
                print(text, end="\n\n")
        else:
            with sigterm_as_interrupt():
                return AGENT_LEFT if run(config, prog)["failures"] else 0
    except (ValueError, OSError, ImportError) as error:
        return refuse(prog, error)
    except WorkerLostError as error:
        print(f"{prog}: {error}; {_kept(config)}", file=sys.stderr)
        return WORKER_LOST
    except KeyboardInterrupt as error:
        print(f"{prog}: interrupted; {_kept(config)}", file=sys.stderr)
        return TERMINATED if isinstance(error, TerminatedError) else INTERRUPTED
    return 0


def _kept(config: Config) -> str:
    if config.out is None:
        return "nothing is kept without --out"
    return f"the games played are in {config.out}, the same command goes on"


def run(config: Config, prog: str = "threeup evaluate") -> dict[str, Any]:
    """Play the round robin, print its tables and write its results.

    Returns:
        What `results.json` holds.

    Raises:
        ValueError: an unknown agent, too few agents, a number out of range, or a folder
            that holds another run or in which another process works.
        OSError: the results can't be written.
    """
    if parse_part(config.part)[1] > 1:
        return _play_part(config, prog)
    results, _ = compete(config, lambda failure: print(f"{prog}: {failure}", file=sys.stderr))
    show(results)
    added = {named(spec)[0] for spec in config.add}
    for place, row in enumerate(results["standings"], start=1):
        if row["agent"] in added:
            print(f"{row['agent']}: place {place} of {len(results['agents'])} on the ladder")
    if config.out is None:
        print("nothing is kept: --out FOLDER keeps games and tables, with a report page")
    else:
        print(f"results: {config.out / RESULTS}, games.csv, report.html")
    return results


def _play_part(config: Config, prog: str) -> dict[str, Any]:
    """Play a part of the blocks; there are no results before all are put together."""
    config = whole(config)
    check(config)
    index, count = parse_part(config.part)
    own = blocks_of(config)[index::count]
    with hold(config.out):
        folder = Folder(config.out, identity(config))
        if config.out is not None:
            write_settings(config.out, config)
        failures = play_blocks(config, folder, own, config.workers, config.backend)
    for failure in failures:
        print(f"{prog}: {failure}; it left the run", file=sys.stderr)
    print(f"part {config.part}: its games are in {config.out}; threeup merge puts parts together")
    return {"failures": failures}
