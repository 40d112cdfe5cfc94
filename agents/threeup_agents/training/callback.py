"""What happens between rollouts: checkpoints, snapshots, the ladder, and the display."""

import gc
import json
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from stable_baselines3.common.callbacks import BaseCallback

from threeup_agents.exact.exploitability import is_solvable, nash_conv, whole_tree
from threeup_agents.files import (
    OBJECT,
    TEXT,
    atomic_write,
    check_fields,
    list_of,
    number,
    object_of,
    optional,
    whole,
    write_text,
)
from threeup_agents.players.policy import Policy
from threeup_agents.search.positional import PositionPolicy
from threeup_agents.training import checkpoint, ladder
from threeup_agents.training.curves import draw_curves
from threeup_agents.training.interruption import StoppedError, StopRequest
from threeup_agents.training.ladder import Exploitability, Measurement
from threeup_agents.training.selfplay import SelfPlayPPO
from threeup_agents.training.settings import Config
from threeup_env.agent import Agent

_MEASUREMENT: Final = object_of(
    {"decisions": whole(), "seconds": number(0), "opponent": TEXT, "mode": TEXT}
    | {name: number() for name in ("win_share", "low", "high", "cut_off_share")}
)
_EXPLOITABILITY: Final = object_of(
    {"decisions": whole(), "seconds": number(0), "mode": TEXT, "nash_conv": number(0)}
)
_FACTS: Final = {
    "seconds": number(0),
    "decisions": whole(),
    "due": object_of({name: whole() for name in ("checkpoint", "ladder", "snapshot")}),
    "commands": list_of(TEXT),
    "measurements": list_of(_MEASUREMENT),
    "exploitability": list_of(_EXPLOITABILITY),
    "started_from": optional(OBJECT),
}
"""What a checkpoint keeps of a `Watch`."""


class Watch(BaseCallback):
    """Looks after a run; SB3 calls it before and after each rollout.

    Args:
        settings: of the run.
        folder: of the run.
        console: for the display.
        request: asks to stop, perhaps.
        begin: called with settings, folder and commands once there is a checkpoint.
    """

    model: SelfPlayPPO

    def __init__(
        self,
        settings: Config,
        folder: Path,
        console: Console,
        request: StopRequest,
        begin: Callable[[Config, Path, list[str]], None],
    ) -> None:
        super().__init__()
        self.settings = settings
        self.folder = folder
        self.console = console
        self.request = request
        self.begin = begin
        self.commands: list[str] = []
        self.started_from: dict[str, Any] | None = None  # facts of that policy's training
        self.measurements: list[Measurement] = []
        self.exploitability: list[Exploitability] = []  # of the one game that is solved
        self.seconds = 0.0
        self._resumed_at = 0
        self._resumed_seconds = 0.0
        self._due = {"checkpoint": 0, "ladder": 0, "snapshot": 0}
        self._tick = time.perf_counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[news]}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("training", total=settings.decisions, news="")

    def restore(self, facts: dict[str, Any]) -> None:
        """Go on from a checkpoint's facts.

        Raises:
            ValueError: they aren't what `_save` writes.
        """
        facts = {"started_from": None, "exploitability": []} | facts  # older ones have neither
        check_fields(str(self.folder / checkpoint.FILE), facts, _FACTS)
        self.seconds = self._resumed_seconds = facts["seconds"]
        names = [field.name for field in fields(Measurement)]
        self.measurements = [
            Measurement(**{name: found[name] for name in names}) for found in facts["measurements"]
        ]
        self.exploitability = [
            Exploitability(found["decisions"], found["seconds"], found["mode"], found["nash_conv"])
            for found in facts["exploitability"]
        ]
        self._due = facts["due"]
        self._resumed_at = facts["decisions"]
        self.commands[:0] = facts["commands"]
        self.started_from = facts["started_from"]

    def __enter__(self) -> "Watch":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def _on_training_start(self) -> None:
        self._tick = time.perf_counter()
        if self._resumed_at == 0:
            for name in self._due:
                self._schedule(name)
            self._save()
        self.begin(self.settings, self.folder, self.commands)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps not in (0, self._resumed_at):
            self._after_update()
        if self.request.number is not None:
            self._save()
            self._export()
            raise StoppedError(self.request.number, self.folder, self.model.num_timesteps)

    def _on_rollout_end(self) -> None:
        tally, self.model.env.tally = self.model.env.tally, {}
        if games := tally.get("games", 0):
            self.logger.record("games/length", tally["length"] / games)
            self.logger.record("games/cut_off_share", tally["cut off"] / games)

    def _on_training_end(self) -> None:
        self._after_update(is_last=True)

    def _after_update(self, is_last: bool = False) -> None:
        """Do what is due; the model is between an update and the next rollout."""
        self.num_timesteps = self.model.num_timesteps
        self.seconds += time.perf_counter() - self._tick
        self.logger.record("time/decisions_per_second", self._speed())
        if self._is_due("snapshot") and self.settings.snapshot_every:
            self.model.add_snapshot(self.settings.pool_size)
        if self._is_due("ladder") or is_last:
            self._measure()
        if self._is_due("checkpoint") or is_last:
            self._save()
        self._show()
        self._tick = time.perf_counter()

    def _is_due(self, name: str) -> bool:
        due = self.num_timesteps >= self._due[name]
        if due:
            self._schedule(name)
        return due

    def _schedule(self, name: str) -> None:
        every: int = getattr(self.settings, f"{name}_every")
        while every and self._due[name] <= self.num_timesteps:
            self._due[name] += every

    def _speed(self) -> float:
        taken = self.seconds - self._resumed_seconds
        return (self.num_timesteps - self._resumed_at) / taken if taken else 0.0

    def _measure(self) -> None:
        """Measure the policy; say so if it has become weaker; keep it as the run's export."""
        settings = self.settings
        policy = self.model.export((settings.num_players,), settings.temperature)
        measurements = ladder.measure(
            policy,
            settings.ladder,
            settings.num_players,
            settings.ladder_deals,
            settings.variant,
            settings.max_steps,
            seed=settings.seed,
            decisions=self.num_timesteps,
            seconds=self.seconds,
        )
        for warning in ladder.regressions(self.measurements, measurements):
            self.console.print(Text(warning, style="bold red"))
        self.measurements += measurements
        for measurement in measurements:
            self.logger.record(
                f"ladder/{measurement.opponent}_{measurement.mode}", measurement.win_share
            )
            self._say(f"{measurement} cut off {measurement.cut_off_share:.3f}")
        if is_solvable(settings.variant, settings.num_players, settings.max_steps):
            self._exploit(policy)
        curve = self._curve()
        write_text(self.folder / "curve.json", json.dumps(curve, indent=1) + "\n")
        with atomic_write(self.folder / "curve.png") as picture:
            draw_curves(self.measurements, settings.num_players, picture)
        gc.collect()  # a figure refers to itself: 3 MB each would wait for a rare collection
        self._export()

    def _exploit(self, policy: Policy | PositionPolicy) -> None:
        """Find what best responses gain against the policy, as it will be exported."""
        tree = whole_tree(self.settings.variant, self.settings.max_steps)
        players: dict[str, Callable[[int], Agent]] = {**policy.players()}
        mode, first = next(iter(players.items()))
        found = nash_conv(first(self.settings.seed), tree)
        self.exploitability.append(Exploitability(self.num_timesteps, self.seconds, mode, found))
        self.logger.record("exact/nash_conv", found)
        self._say(str(self.exploitability[-1]))

    def _say(self, what: str) -> None:
        """Print what has just been measured, beside how far the run is."""
        when = f"{self.num_timesteps:>11,} {self.seconds / 60:5.1f} min {self._speed():,.0f}/s"
        self.console.print(
            f"{when}: {what}",
            soft_wrap=True,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def _curve(self) -> list[dict[str, Any]]:
        rows = [measurement.as_json() for measurement in self.measurements]
        rows += [found.as_json() for found in self.exploitability]
        return sorted(rows, key=lambda row: int(row["decisions"]))

    def _export(self) -> None:
        """Write the policy as it is now into the run's folder."""
        before = {} if self.started_from is None else {"started_from": self.started_from}
        policy = self.model.export(
            (self.settings.num_players,),
            self.settings.temperature,
            command="; ".join(self.commands),
            seed=self.settings.seed,
            decisions=self.model.num_timesteps,
            seconds=round(self.seconds, 1),
            curve=self._curve(),
            **before,
        )
        policy.save(self.folder / "policy.safetensors")

    def _save(self) -> None:
        facts = {
            "seconds": self.seconds,
            "decisions": self.num_timesteps,
            "due": self._due,
            "commands": self.commands,
            "started_from": self.started_from,
            "measurements": [measurement.__dict__ for measurement in self.measurements],
            "exploitability": [found.__dict__ for found in self.exploitability],
        }
        checkpoint.save(self.folder / checkpoint.FILE, self.model, facts)

    def _show(self) -> None:
        latest = {
            (measurement.opponent, measurement.mode): measurement
            for measurement in self.measurements
        }
        news = "; ".join(
            [
                *(
                    f"{opponent} {mode} {measurement.win_share:.3f}"
                    for (opponent, mode), measurement in latest.items()
                ),
                *map(str, self.exploitability[-1:]),
            ]
        )
        speed = f"{self._speed():,.0f} decisions/s"
        self._progress.update(
            self._task, completed=self.num_timesteps, description=speed, news=news
        )
