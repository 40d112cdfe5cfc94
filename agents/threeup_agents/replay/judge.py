"""What decided a game: its choices, weighed one by one by a search."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.replay.recording import Recording
from threeup_agents.search.searchers import Flat
from threeup_env.engine.actions import ACTION_NAMES

MISTAKE: Final = 0.05
"""What a choice must cost to be named in the picture of a game."""


@dataclass(frozen=True)
class Judgement:
    """The choices of a game, in order; moves without a choice are left out."""

    agents: tuple[str, ...]
    """Who sat where, `[S]`."""
    judge: str
    """Name of the search that judges."""
    step: npt.NDArray[np.int64]
    """Actions taken before, `[K]`."""
    seat: npt.NDArray[np.int64]
    """Whose choice it was, `[K]`."""
    taken: tuple[str, ...]
    """What was played, `[K]`."""
    best: tuple[str, ...]
    """What the judge thinks best, `[K]`."""
    value: npt.NDArray[np.float64]
    """Win share that the seat can expect if it plays that, `[K]`."""
    cost: npt.NDArray[np.float64]
    """By how much what was played is worth less, `[K]`."""

    def columns(self) -> dict[str, Any]:
        """A table with a row a choice: `pandas.DataFrame(judgement.columns())`."""
        return {
            "step": self.step,
            "seat": self.seat,
            "agent": [self.agents[seat] for seat in self.seat],
            "taken": self.taken,
            "best": self.best,
            "value": self.value,
            "cost": self.cost,
        }

    def _repr_html_(self) -> str:
        return odds(self)


def judge(
    recording: Recording,
    num_worlds: int = 200,
    seed: int = 0,
    watch: Callable[[], object] = lambda: None,
) -> Judgement:
    """Weigh every choice of a game by what its seat knew.

    A `Flat` search says what is best, and another one, in worlds of its own, what that and
    the action taken are worth. The best of several estimates is too high by chance; this way
    the mean cost is not, though the cost of a single choice may come out below 0.

    Args:
        recording: the game.
        num_worlds: worlds that each search draws for a choice.
        seed: of the first search; the second has the next one.
        watch: called after each choice.

    Raises:
        ValueError: the game breaks the rules.

    Example:
        >>> from threeup_agents.replay.recording import record
        >>> found = judge(record(["greedy", "random"], variant="mini"), 50)
        >>> bool((found.cost <= 1).all())
        True
    """
    first, second = (Flat(num_worlds, seed + i) for i in range(2))
    steps, seats, taken, best, values, costs = [], [], [], [], [], []
    for step, (batch, _) in enumerate(recording.play()):
        if step == len(recording.actions) or batch.action_masks[0].sum() < 2:
            continue
        steps.append(step)
        seats.append(int(batch.seats[0]))
        taken.append(ACTION_NAMES[recording.actions[step]])
        best.append(first.explain(batch.observations[0]).chosen)
        found = second.explain(batch.observations[0])
        worth = dict(zip(found.actions, found.values.tolist(), strict=True))
        values.append(worth[best[-1]])
        costs.append(worth[best[-1]] - worth[taken[-1]])
        watch()
    return Judgement(
        agents=recording.agents,
        judge=second.name,
        step=np.array(steps, np.int64),
        seat=np.array(seats, np.int64),
        taken=tuple(taken),
        best=tuple(best),
        value=np.array(values, np.float64),
        cost=np.array(costs, np.float64),
    )


def odds(judgement: Judgement) -> str:
    """The win share that each seat could expect along a game, and the choices that cost most."""
    from matplotlib.figure import Figure  # takes a second to import

    from threeup_agents import plots

    with plots.style():
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for seat, name in enumerate(judgement.agents):
            own = judgement.seat == seat
            label = f"seat {seat} {name}"
            colour = plots.SEATS[seat]
            axes.plot(judgement.step[own], judgement.value[own], color=colour, label=label)
        for i in np.flatnonzero(judgement.cost >= MISTAKE):
            step, value, colour = (
                judgement.step[i],
                judgement.value[i],
                plots.SEATS[judgement.seat[i]],
            )
            after = value - judgement.cost[i]
            axes.plot([step, step], [value, after], color=colour, linewidth=1)
            axes.plot([step], [after], "v", color=colour)
        for i in np.argsort(-judgement.cost)[:3]:
            if judgement.cost[i] >= MISTAKE:
                words = f"{judgement.taken[i]}, not {judgement.best[i]}"
                place = judgement.step[i], judgement.value[i] - judgement.cost[i]
                box = {"boxstyle": "square,pad=0.1", "color": "white", "alpha": 0.8}
                axes.annotate(
                    words, place, (6, -4), textcoords="offset points", fontsize=9, bbox=box
                )
        plots.mark_fair(axes, 1 / len(judgement.agents))
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("actions taken")
        axes.set_ylabel(f"win share, by {judgement.judge}")
        plots.legend_above(axes)
        return plots.as_svg(figure)
