"""How strong a policy in training is: matches against fixed opponents, or best responses."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from threeup_agents.analysis.statistics import mean_interval
from threeup_agents.arena.play import play
from threeup_agents.players.policy import Policy
from threeup_agents.search.positional import PositionPolicy


@dataclass(frozen=True)
class Measurement:
    """One seat of the policy against a table of one opponent."""

    decisions: int
    """Decisions that had been trained on."""
    seconds: float
    """Time that training had taken, evaluation left out."""
    opponent: str
    mode: str
    """Which of the policy's `players()`."""
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


@dataclass(frozen=True)
class Exploitability:
    """What best responses gain against the policy."""

    decisions: int
    """Decisions that had been trained on."""
    seconds: float
    """Time that training had taken, evaluation left out."""
    mode: str
    """Which of the policy's `players()`."""
    nash_conv: float
    """See `exact.exploitability.nash_conv`."""

    def __str__(self) -> str:
        return f"NashConv {self.nash_conv:.4f}"

    def as_json(self) -> dict[str, Any]:
        """A row beside those of `Measurement`, with another number."""
        by = {"opponent": "best response", "mode": self.mode}
        found = {"seconds": round(self.seconds, 4), "nash_conv": round(self.nash_conv, 6)}
        return {"decisions": self.decisions} | by | found


def measure(
    policy: Policy | PositionPolicy,
    opponents: Sequence[str],
    num_players: int,
    deals: int,
    variant: str = "standard",
    max_steps: int = 1000,
    modes: Sequence[str] = (),
    seed: int = 0,
    decisions: int = 0,
    seconds: float = 0.0,
) -> list[Measurement]:
    """Play a policy against each opponent, each mode on the same deals.

    Args:
        policy: who is measured.
        opponents: specs for `threeup_agents.make`.
        num_players: seats at the table.
        deals: each is played under every rotation of the seats.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts a game off (R21).
        modes: of the policy's `players()`; empty for all.
        seed: starts the deals and the agents' streams.
        decisions: goes into the result.
        seconds: likewise.
    """
    measurements = []
    players = policy.players()
    for opponent in opponents:
        for mode in modes or players:
            match = play(
                [players[mode], opponent],
                deals,
                num_players,
                variant,
                max_steps,
                seed=seed,
                progress=False,
            )
            shares = match.by_deal(match.win_share[:, 0])
            interval = mean_interval(shares)
            cut_off = float(match.cut_off.mean())
            measurements.append(Measurement(decisions, seconds, opponent, mode, *interval, cut_off))
    return measurements


def regressions(earlier: Sequence[Measurement], now: Sequence[Measurement]) -> list[str]:
    """Say which opponents the policy was significantly stronger against before.

    That is where the interval of now lies wholly below the best earlier one.
    """
    warnings = []
    for measurement in now:
        same = [
            r for r in earlier if (r.opponent, r.mode) == (measurement.opponent, measurement.mode)
        ]
        best = max(same, key=lambda r: r.low, default=None)
        if best is not None and measurement.high < best.low:
            warnings.append(
                f"weaker than at {best.decisions:,} decisions: {measurement}; was {best}"
            )
    return warnings
