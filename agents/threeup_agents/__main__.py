"""The command `threeup`: each of its parts reads its own options."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from threeup_agents.commands import USAGE_ERROR, refuse

COMMANDS: Final = {
    "evaluate": ("threeup_agents.evaluation", "let agents play each other; say who is better"),
    "merge": ("threeup_agents.merge", "put the folders of several machines together"),
    "train": ("threeup_agents.training.__main__", "fit a policy by self-play"),
    "play": ("threeup_agents.play.__main__", "play against agents in the terminal or a browser"),
    "exact": (
        "threeup_agents.exact.__main__",
        "solve the smallest variant; say who is exploitable",
    ),
    "page": ("threeup_agents.replay.__main__", "write a game as a web page that replays it"),
}
"""By name: the module whose `main` it is, and what it does."""
HELP: Final = """\
usage: threeup COMMAND [OPTIONS]

The card game 3UP 3DOWN for agents and people. Commands:

{commands}

  threeup COMMAND --help explains the options of one.

To begin with:

  threeup evaluate --agents random greedy careful --deals 200 --out results/first
      who is better, with intervals; open results/first/report.html
  threeup page results/first --game 0 --out game-0.html
      one of those games, step by step
  threeup play --opponents careful
      a game of your own (pip install 'threeup[play]')
  threeup train --preset quick --seed 1 --run-dir runs/quick
      a policy in a few minutes (pip install 'threeup[train]')
  threeup evaluate --agents greedy runs/quick
      how strong it is
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given or given[0] in ("--help", "-h"):
        lines = (f"  {name:10}{words}" for name, (_, words) in COMMANDS.items())
        print(HELP.format(commands="\n".join(lines)), end="")
        return 0 if given else USAGE_ERROR
    if given[0] not in COMMANDS:
        known = ", ".join(COMMANDS)
        return refuse("threeup", f"command: expected one of {known}; got {given[0]!r}")
    # A part is imported when it is asked for: the others' libraries take seconds.
    code: int = import_module(COMMANDS[given[0]][0]).main(given[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
