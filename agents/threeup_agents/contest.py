"""Round robins from Python: agents of any kind in, tables and the report out.

The same run as `threeup evaluate`, which writes the same folder.
"""

import html
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from threeup_agents import competition, specs
from threeup_agents.arena.entrants import Given, check_names
from threeup_agents.arena.match import Match
from threeup_agents.arena.play import Entrant

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Config(competition.Config):
    """A run to which objects are given, of which `agents` holds the names alone."""

    given: Mapping[str, Given] = field(default_factory=dict)
    """The objects by name."""

    @property
    def entrants(self) -> dict[str, Entrant]:
        """Who takes part, by the name in the results."""
        found: dict[str, Entrant] = {}
        for spec in self.agents:
            if spec in self.given:
                found[spec] = self.given[spec]
            else:
                found[specs.named(spec)[0]] = spec
        return found


class Result:
    """What a round robin found; a notebook shows it as the report."""

    def __init__(self, results: dict[str, Any], matches: Sequence[Match]) -> None:
        self.results = results
        """What `results.json` holds."""
        self.matches = matches
        """The games as columns, an element a line-up."""

    @property
    def standings(self) -> "DataFrame":
        """Each agent over its tables of one other agent, best first."""
        return _frame(self.results["standings"])

    @property
    def pairings(self) -> "DataFrame":
        """Each agent against each other one."""
        return _frame(self.results["pairings"])

    @property
    def ratings(self) -> "DataFrame":
        """Ratings, best first."""
        return _frame(self.results["ratings"])

    @property
    def differences(self) -> "DataFrame":
        """Differences of two agents' overall shares."""
        return _frame(self.results["differences"])

    @property
    def games(self) -> "DataFrame":
        """A row a game, as in `games.csv`, with the names as they are."""
        tables = [match.columns() for match in self.matches]
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        number = np.arange(len(columns["deal"]))
        return _frame({"game": number} | columns)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Agents that left the run, each with why and where."""
        found: list[dict[str, Any]] = self.results["failures"]
        return found

    def __repr__(self) -> str:
        found = self.results
        shares = (f"{row['agent']} {row['win_share']:.3f}" for row in found["standings"])
        left = "".join(f"; {row['agent']} left" for row in self.failures)
        return (
            f"Result({found['num_players']} players, {found['deals_played']:,} deals, "
            f"{found['games']:,} games: {', '.join(shares)}{left})"
        )

    def _repr_html_(self) -> str:
        """The report, in a frame of its own so that neither it nor the notebook styles the other.

        The frame's page can run its scripts but can't reach the notebook.
        """
        from threeup_agents.analysis.report import page  # matplotlib takes a second to import

        return (
            '<iframe sandbox="allow-scripts" style="width:100%;height:40em;border:0" '
            f'srcdoc="{html.escape(page(self.results))}"></iframe>'
        )


def round_robin(
    agents: Iterable[Any] | Mapping[str, Any],
    deals: int = 500,
    num_players: int = 2,
    out: str | Path | None = None,
    seed: int = 0,
    workers: int = 1,
    **options: Any,
) -> Result:
    """Let agents play each other and say who is better.

    An agent is a spec ("greedy", "mine.py:Mine", "best=search:200"), an object with `act`, a
    class or a function of at most one argument, the seed, that gives one, or a function
    `f(observation, mask) -> action` of one row; `(name, agent)` names any of these. An object
    plays each block of games as a copy of what it was when given, if it can be pickled; one that
    can't needs `workers=1` and no folder.

    Args:
        agents: who takes part, or a mapping from names to them.
        deals: that each line-up plays; each gives as many games as there are seats.
        num_players: seats at the table.
        out: folder of the run, as `--out`.
        seed: starts the deals, the agents' choices and the resampling.
        workers: processes.
        options: the other options of `threeup evaluate`, by their names in
            `threeup_agents.competition.Config`; `trust=True` is `--trust`.

    Raises:
        ValueError: too few agents, one that is none, two of one name, or a number out of range.
        TypeError: an option that there isn't.
        ImportError: a library that an agent needs isn't installed.

    Example:
        >>> result = round_robin([("first", lambda view, mask: mask.argmax()), "greedy"], deals=20)
        >>> result.standings["agent"].tolist()
        ['greedy', 'first']
    """
    _check_options(options)
    listed = list(agents.items()) if isinstance(agents, Mapping) else list(agents)
    names: list[str] = []
    given: dict[str, Given] = {}
    for entry in listed:
        name, thing = entry if isinstance(entry, tuple) and len(entry) == 2 else (None, entry)
        if isinstance(thing, str | Path):
            names.append(str(thing) if name is None else f"{name}={thing}")
            if name is not None and specs.named(names[-1]) != (name, str(thing)):
                raise ValueError(f"name: expected one without = : ? / or \\; got {name!r}")
            continue
        entrant = Given(thing, name)
        if "=" in entrant.name:
            raise ValueError(f"name: expected one without =; got {entrant.name!r}")
        names.append(entrant.name)
        given[entrant.name] = entrant
    check_names(names)
    config = Config(
        tuple(names),
        num_players=num_players,
        deals=deals,
        seed=seed,
        out=None if out is None else Path(out),
        workers=workers,
        given=given,
        **options,
    )
    return Result(*competition.compete(config, lambda words: warnings.warn(words, stacklevel=3)))


def _check_options(options: Mapping[str, Any]) -> None:
    own = {"agents", "given", "list", "replay"}
    known = [each.name for each in fields(Config) if each.name not in own]
    for name in options:
        if name not in known:
            raise TypeError(f"round_robin: expected options among {', '.join(known)}; got {name!r}")


def _frame(table: Any) -> "DataFrame":
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"tables of a result need pandas: pip install 'threeup[notebooks]' ({error})"
        ) from error
    return pd.DataFrame(table)
