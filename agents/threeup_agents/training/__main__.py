"""Fit a policy by self-play: every seat's decisions train it, and it ends as a file to play with.

    threeup train --preset quick
    threeup evaluate --agents greedy runs/2p-quick-0
    threeup train --resume runs/2p-quick-0

Ctrl-C and SIGTERM stop a run after its next update, with a checkpoint and its policy.
"""

import argparse
import shlex
import sys
from dataclasses import replace
from typing import Any, Final

from threeup_agents.arena.referee import AgentError
from threeup_agents.commands import read, refuse
from threeup_agents.exact.tree import MAX_STEPS
from threeup_agents.training.interruption import EXIT_CODE, StoppedError, goes_on
from threeup_agents.training.settings import PRESETS, Config, read_config

INTERRUPTED: Final = 130


def main(arguments: list[str] | None = None, prog: str = "threeup train") -> int:
    """Run the command line, which errors call `prog`; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    config = None
    try:
        config = parse(given, prog)
        from threeup_agents.training.run import run  # needs the extra [train]

        policy = run(config, given)
        print(f"policy: {policy}, its course: curve.png")
        folder = shlex.quote(str(policy.parent))
        print(f"how good it is: threeup evaluate --agents greedy {folder}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("torch", "stable_baselines3", "sb3_contrib"):
            raise
        return refuse(prog, f"training needs {package}: pip install 'threeup[train]'")
    # An AgentError is an agent of the ladder that broke a rule.
    except (ValueError, OSError, AgentError) as error:
        return refuse(prog, error)
    except StoppedError as stopped:
        print(f"{prog}: {stopped}", file=sys.stderr)
        return EXIT_CODE + stopped.number
    except KeyboardInterrupt as interruption:
        print(f"{prog}: {_interrupted(config)}", file=sys.stderr)
        return EXIT_CODE + interruption.args[0] if interruption.args else INTERRUPTED
    return 0


def _interrupted(config: Config | None) -> str:
    """Say what is left of a run that had no time to stop."""
    folder = None if config is None else config.resume or config.folder()
    if folder is None or not (folder / "config.json").exists():
        return "interrupted before the run began"
    from threeup_agents.training import checkpoint

    try:
        return goes_on(folder, checkpoint.decisions(folder / checkpoint.FILE))
    except ValueError as error:
        return f"interrupted; {error}"


def parse(arguments: list[str], prog: str = "threeup train") -> Config:
    """Read the options; those not given have the preset's values, or the resumed run's.

    Raises:
        ValueError: other options beside `--resume`, or a folder that holds no run.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--preset", "--decisions", "--variant"):
        first.add_argument(option, nargs="?")
    known = first.parse_known_args(arguments)[0]
    default = PRESETS.get(known.preset, PRESETS["quick"])
    if known.variant == "mini":
        default = replace(default, max_steps=MAX_STEPS)  # its exact solution goes no further
    config = read(Config, arguments, prog, __doc__, default)
    if config.resume is None:
        return config
    changes: dict[str, Any] = {"resume": config.resume}
    if known.decisions is not None:
        changes["decisions"] = config.decisions
    if config != replace(PRESETS["quick"], **changes):
        raise ValueError(
            "resume: expected no other option but --decisions; a run goes on by its own settings"
        )
    path = config.resume / "config.json"
    if not path.is_file():
        raise ValueError(f"resume: expected a run folder; got {str(config.resume)!r}")
    return replace(read_config(path), **changes)


if __name__ == "__main__":
    sys.exit(main())
