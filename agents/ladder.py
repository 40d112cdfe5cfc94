"""How strong a policy in training is: matches against fixed opponents, at intervals."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents import ppo
from agents.match import play
from agents.statistics import mean_interval

MODES = ("sampled", "best")
"""Sampled play at the policy's temperature, or its best action."""


@dataclass(frozen=True)
class Rung:
    """One seat of the policy against a table of one opponent."""

    decisions: int
    """Decisions that had been trained on."""
    seconds: float
    """Time that training had taken, evaluation left out."""
    opponent: str
    mode: str
    """One of `MODES`."""
    win_share: float
    low: float
    """Lower end of the 95% interval."""
    high: float
    cut_off_share: float

    def __str__(self) -> str:
        return f"{self.opponent} {self.mode} {self.win_share:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def as_json(self) -> dict[str, Any]:
        """The same as a dict, rounded for reading."""
        return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items()}


def climb(
    policy: ppo.Policy,
    opponents: Sequence[str],
    num_players: int,
    deals: int,
    variant: str = "standard",
    modes: Sequence[str] = MODES,
    seed: int = 0,
    decisions: int = 0,
    seconds: float = 0.0,
) -> list[Rung]:
    """Play a policy against each opponent, each mode on the same deals.

    Args:
        policy: who climbs.
        opponents: specs for `agents.make`.
        num_players: seats at the table.
        deals: each is played under every rotation of the seats.
        variant: a key of `VARIANTS`.
        modes: of `MODES`.
        seed: starts the deals and the agents' streams.
        decisions: goes into the result.
        seconds: likewise.
    """
    rungs = []
    for opponent in opponents:
        for mode in modes:

            def policy_agent(agent_seed: int, best: bool = mode == "best") -> ppo.PPO:
                return ppo.PPO(policy, "policy", agent_seed, best)

            match = play(
                [policy_agent, opponent], deals, num_players, variant, seed=seed, progress=False
            )
            shares = match.by_deal(match.win_share[:, 0])
            interval = mean_interval(shares, np.random.default_rng(seed))
            cut_off = float(match.cut_off.mean())
            rungs.append(Rung(decisions, seconds, opponent, mode, *interval, cut_off))
    return rungs


def falls(earlier: Sequence[Rung], now: Sequence[Rung]) -> list[str]:
    """Say which opponents the policy was significantly stronger against before.

    That is where the interval of now lies wholly below the best earlier one.
    """
    warnings = []
    for rung in now:
        same = [r for r in earlier if (r.opponent, r.mode) == (rung.opponent, rung.mode)]
        best = max(same, key=lambda r: r.low, default=None)
        if best is not None and rung.high < best.low:
            warnings.append(f"weaker than at {best.decisions:,} decisions: {rung}; was {best}")
    return warnings


def draw_curves(rungs: Sequence[Rung], num_players: int, path: Path) -> None:
    """Draw strength against decisions and against minutes, as a PNG whatever its name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    lines: dict[tuple[str, str], list[Rung]] = {}
    for rung in rungs:
        lines.setdefault((rung.opponent, rung.mode), []).append(rung)
    for (opponent, mode), line in lines.items():
        shares = [rung.win_share for rung in line]
        for axes, xs in (
            (left, [rung.decisions / 1e6 for rung in line]),
            (right, [rung.seconds / 60 for rung in line]),
        ):
            axes.plot(xs, shares, marker=".", label=f"against {opponent}, {mode}")
            axes.fill_between(xs, [r.low for r in line], [r.high for r in line], alpha=0.2)
    for axes, label in ((left, "million decisions"), (right, "minutes")):
        axes.axhline(1 / num_players, color="grey", linewidth=1)
        axes.set_xlabel(label)
    left.set_ylabel("share of wins")
    if lines:
        left.legend()
    figure.savefig(path, format="png")
