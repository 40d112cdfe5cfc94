"""Curves of a training that redraw themselves in a notebook while it runs."""

from collections.abc import Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from threeup_agents.training import curves, ladder
from threeup_agents.training.ladder import Measurement
from threeup_agents.training.selfplay import SelfPlayPPO


class LiveCurves(BaseCallback):
    """Measures a policy in training and shows how it goes; for `SelfPlayPPO.learn`.

    It takes the place of the callback that `train.run` has, and writes nothing.

    Args:
        opponents: agents that the policy is measured against.
        every: decisions between two measurements; there is one at the start and the end as well.
        deals: deals a measurement, each under every rotation of the seats.
        seed: of the deals and of the opponents' streams.
    """

    model: SelfPlayPPO

    def __init__(
        self,
        opponents: Sequence[str] = ("random", "greedy"),
        every: int = 100_000,
        deals: int = 200,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.opponents = tuple(opponents)
        self.every = every
        self.deals = deals
        self.seed = seed
        self.measurements: list[Measurement] = []
        self.lengths: list[tuple[int, float]] = []
        self._due = 0
        self._screen: Any = None

    def _on_training_start(self) -> None:
        from IPython.display import display  # nobody else needs it

        self._screen = display(self, display_id=True)  # type: ignore[no-untyped-call]  # has no types

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps >= self._due:
            self._measure()

    def _on_rollout_end(self) -> None:
        tally, self.model.env.tally = self.model.env.tally, {}
        if games := tally.get("games", 0):
            self.lengths.append((self.model.num_timesteps, tally["length"] / games))
        self._draw()

    def _on_training_end(self) -> None:
        self._measure()

    def _measure(self) -> None:
        batch = self.model.env.batch
        while self._due <= self.model.num_timesteps:
            self._due += self.every
        self.measurements += ladder.measure(
            self.model.export((batch.num_players,)),
            self.opponents,
            batch.num_players,
            self.deals,
            batch.variant,
            modes=("sampled",),
            seed=self.seed,
            decisions=self.model.num_timesteps,
        )
        self._draw()

    def _draw(self) -> None:
        if self._screen is not None:
            self._screen.update(self)

    def _repr_svg_(self) -> str:
        return curves.training(self.measurements, self.lengths, self.model.env.batch.num_players)
