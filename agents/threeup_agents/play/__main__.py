"""Play against agents in the terminal or a browser, with keys or the mouse.

    threeup play
    threeup play --opponents careful search:200 --num-players 3
    threeup play --opponents policy --browser
    threeup play --resume results/played.json

h gives a hint. u takes back your last action, as long as nobody else has acted since and it has
shown you no card. Only what your seat may know is shown. The game is written to a file after
each action, so leaving in the middle or a closed terminal loses nothing; `threeup page` shows it
again.
"""

import contextlib
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from threeup_agents.arena.referee import AgentError
from threeup_agents.commands import read, refuse
from threeup_agents.play.session import Session
from threeup_agents.replay.recording import Recording

AGENT_FAILED: Final = 3
MANY_SEEDS: Final = 10**6
"""How many seeds are drawn from when none is given."""

LIBRARIES: Final = {
    "textual": "textual",
    "textual_serve": "textual-serve",
    "aiohttp": "textual-serve",
}
"""What the extra installs, by the module that is missing."""


@dataclass(frozen=True)
class Config:
    """Options of `threeup play`."""

    opponents: tuple[str, ...] = ("careful",)
    """Agents in the other seats, in their order; fewer than seats are taken in turn
    (threeup evaluate --list names them)."""
    num_players: int = 2
    """Seats at the table."""
    variant: str = "standard"
    """standard, listed or mini."""
    seat: int = 0
    """Yours; seat 0 begins."""
    seed: int | None = None
    """The same seed, the same cards; none draws one and prints it."""
    hint: str = "search:200"
    """The agent that gives hints."""
    pause: float = 0.8
    """Seconds before another seat acts."""
    resume: Path | None = None
    """Go on with a recorded game that was left; who sits where is as it was."""
    trust: bool = False
    """Run code that --resume's recording names, and load policy files that could run some."""
    out: Path = Path("results/played.json")
    """The recording; where there is one already, it gets a number."""
    browser: bool = False
    """Serve the game to the browsers of this machine, at the address that is printed; each
    page opened is a game of its own."""
    port: int = 8000
    """Of that address."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = read(Config, arguments, "threeup play", __doc__)
    try:
        if config.browser:
            return serve(config, arguments)
        with contextlib.redirect_stdout(sys.stderr if is_served() else sys.stdout):
            return run(config)
    except (ValueError, OSError, ImportError, AgentError) as error:
        return refuse("threeup play", error)


def run(config: Config) -> int:
    """Play until the person leaves; say where the games are.

    Raises:
        AgentError: an agent that can't play at this table.
        ImportError: the extra `[play]` isn't installed; says how to get it.
        OSError: the folder of the recordings can't be made, or there is no terminal.
        ValueError: a bad option; says which values would have been right.
    """
    terminal = _face("terminal")
    session = _session(config)
    app = terminal.Terminal(session, config.out, config.pause)
    failure = start(app)
    if app.saved:
        print(session.summary)
    for path in app.saved:
        print(f"recording: {path} (threeup page {path} makes a page of it)")
    if app.saved and not session.is_over:
        print(f"go on: threeup play --resume {app.saved[-1]}")
    if failure is not None:
        print(f"threeup play: {failure}", file=sys.stderr)
        return AGENT_FAILED
    return app.return_code or 0


def serve(config: Config, arguments: Sequence[str]) -> int:
    """Serve games with these options until the process is interrupted.

    Raises:
        AgentError, ImportError, OSError, ValueError: as `run` does, or the port is taken.
    """
    browser = _face("browser")
    _session(config)  # what is wrong with the options is said before a page is opened
    browser.serve(arguments, config.port)
    return 0


def _session(config: Config) -> Session:
    """The first game, dealt, and the folder for its recording."""
    if config.pause < 0:
        raise ValueError(f"pause: expected at least 0; got {config.pause}")
    seed = secrets.randbelow(MANY_SEEDS) if config.seed is None else config.seed
    print(f"seed {seed}; the agents get ready, which takes a while the first time", flush=True)
    if config.resume is None:
        session = Session(
            *(config.opponents, config.num_players, config.variant, config.seat, seed, config.hint),
            trust=config.trust,
        )
    else:
        session = Session.resume(Recording.load(config.resume), seed, config.hint, config.trust)
    config.out.parent.mkdir(parents=True, exist_ok=True)
    return session


def is_served() -> bool:
    """Whether a server shows this process; then the standard output is its channel."""
    return "TEXTUAL_DRIVER" in os.environ


def start(app: Any) -> str | None:
    """Give the terminal to the app until the person leaves; what went wrong with an agent.

    Raises:
        OSError: there is no terminal.
    """
    if not (is_served() or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise OSError("expected a terminal; the input or the output is none")
    failure: str | None = app.run()
    return failure


def _face(name: str) -> ModuleType:
    """The module of this room that shows a game; it needs what the core doesn't install."""
    try:
        return import_module(f"threeup_agents.play.{name}")
    except ModuleNotFoundError as error:
        library = LIBRARIES.get((error.name or "").partition(".")[0])
        if library is None:
            raise
        raise ImportError(f"threeup play needs {library}: pip install 'threeup[play]'") from error


if __name__ == "__main__":
    sys.exit(main())
