"""Write a recorded game as one self-contained web page.

    threeup page results/played.json --out replay.html
    threeup page results/played.json --viewers 0 --out replay.html
    threeup page results/first --game 31 --out replay.html

The games of a run have the numbers of its games.csv.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from threeup_agents import specs
from threeup_agents.arena.progress import Bar
from threeup_agents.commands import read, refuse
from threeup_agents.replay.judge import Judgement, judge
from threeup_agents.replay.page import page
from threeup_agents.replay.recording import PERSON, Recording


@dataclass(frozen=True)
class Config:
    """Write a recorded game as a web page that needs nothing else."""

    source: tyro.conf.Positional[Path]
    """A recording, or the folder of a run of `threeup evaluate`."""
    game: int = 0
    """The game's number in the games.csv of the run."""
    viewers: tuple[str, ...] = ()
    """Whose views the page holds: seats by number, spectator, open; none for all of these.
    A page for one seat alone holds no card that it doesn't know."""
    explain: bool = False
    """Ask the agents anew what they think of each choice (a search takes its time)."""
    worlds: int = 1000
    """Worlds in which a search weighs each choice, which gives the curve of win odds under the
    slider and the best action beside the one played: about a second for a game, some more the
    first time. 0 leaves them out."""
    trust: bool = False
    """Run code that the source names: agents in Python files, policies with pickles."""
    out: Path = Path("replay.html")
    """The page."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = read(Config, arguments, "threeup page", __doc__)
    try:
        if config.worlds < 0:
            raise ValueError(f"worlds: expected at least 0; got {config.worlds}")
        recording = _read(config.source, config.game, config.trust)
        if config.explain:
            names = recording.agents
            specs.check_trusted(names, "explain", config.trust)
            recording = recording.explained(
                [None if name == PERSON else specs.make(name, trust=config.trust) for name in names]
            )
        viewers = [int(name) if name.isdigit() else name for name in config.viewers]
        judgement = _judged(recording, config.worlds) if config.worlds else None
        # page() checks the viewers.
        page(recording, viewers, judgement).save(config.out)  # type: ignore[arg-type]
    except (ValueError, OSError, ImportError) as error:
        return refuse("threeup page", error)
    print(f"page: {config.out}")
    return 0


def _judged(recording: Recording, num_worlds: int) -> Judgement:
    """The judgement, with a bar while it is made."""
    with Bar("judging", len(recording.actions), "choices") as bar:
        return judge(recording, num_worlds, watch=bar.advance)


def _read(source: Path, game: int, trust: bool) -> Recording:
    if not source.is_dir():
        return Recording.load(source)
    from threeup_agents.replay.from_run import recording_of

    return recording_of(source, game, trust)


if __name__ == "__main__":
    sys.exit(main())
