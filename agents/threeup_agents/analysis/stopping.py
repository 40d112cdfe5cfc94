"""When a run may end before its last deal, and what that costs its intervals."""

from dataclasses import dataclass
from typing import Any, Final

from threeup_agents.analysis import sequences
from threeup_agents.analysis.round_robin import Analysis
from threeup_agents.analysis.statistics import CONFIDENCE

LOOKS: Final = 4
"""Looks of `separable`, at equal distances; each spends an equal part of the error
(Bonferroni), and the intervals are those of that level (repeated intervals)."""


@dataclass(frozen=True)
class Stopping:
    """The rule of a run; by default it ends at its last deal."""

    separable: bool = False
    """Stop if every pair is told apart."""
    half_width: float | None = None
    """Stop if the interval of every pairing's win share is this wide to both sides."""

    def check(self) -> None:
        """Refuse two rules at once.

        Raises:
            ValueError: there are two.
        """
        if self.separable and self.half_width is not None:
            raise ValueError(
                "stop_when_separable: expected one rule for stopping; got until_half_width too"
            )

    @property
    def confidence(self) -> float:
        """Of the run's intervals."""
        return 1 - (1 - CONFIDENCE) / LOOKS if self.separable else CONFIDENCE

    def looks(self, deals: int) -> list[int]:
        """Numbers of deals after which a run of at most `deals` may stop; none if it may not.

        >>> Stopping(separable=True).looks(400), Stopping().looks(400)
        ([100, 200, 300, 400], [])
        """
        if self.half_width is not None:
            return sequences.looks(deals)
        if self.separable:
            return sorted({max(2, deals * look // LOOKS) for look in range(1, LOOKS + 1)})
        return []

    def is_enough(self, found: Analysis) -> bool:
        """Whether the run stops with what it has found."""
        if self.half_width is not None:
            return found.is_narrow()
        return self.separable and found.is_separable()

    def facts(self, deals: int) -> dict[str, Any] | None:
        """The rule for `results.json`."""
        if self.half_width is not None:
            rule = (
                "look after each of the deals listed; stop if the interval of every pairing's "
                f"win share is at most {self.half_width:g} wide to both sides; intervals of win "
                "shares and differences, and p-values, are those of confidence sequences"
            )
        elif self.separable:
            rule = (
                "look after each of the deals listed; stop if every pair differs at "
                f"Holm-corrected {(1 - CONFIDENCE) / LOOKS:g}; intervals are of that level"
            )
        else:
            return None
        return {"rule": rule, "looks": self.looks(deals)}
