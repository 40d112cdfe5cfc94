"""What decided a game: its choices, weighed one by one by a search."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.recording import Recording
from agents.search import Flat
from threeup_env.actions import ACTION_NAMES


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
        from agents.figures import odds  # matplotlib takes a second to import

        return odds(self)


def judge(recording: Recording, num_worlds: int = 200, seed: int = 0) -> Judgement:
    """Weigh every choice of a game by what its seat knew.

    A `Flat` search says what is best, and another one, in worlds of its own, what that and
    the action taken are worth. The best of several estimates is too high by chance; this way
    the mean cost is not, though the cost of a single choice may come out below 0.

    Args:
        recording: the game.
        num_worlds: worlds that each search draws for a choice.
        seed: of the first search; the second has the next one.

    Raises:
        ValueError: the game breaks the rules.

    Example:
        >>> from agents.recording import record
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
