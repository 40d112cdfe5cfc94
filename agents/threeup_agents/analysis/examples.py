"""Three games of each pairing that are worth a look."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.arena.line_ups import is_pair
from threeup_agents.arena.match import Match

KINDS: Final = ("typical", "longest", "closest")


def examples(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """Choose games of each pairing by their numbers in `games.csv`.

    Args:
        matches: of a run, in its order.

    Returns:
        A row a pairing: `agent`, `against` and `KINDS`, which are three different games if
        there are as many. At two players both rows of a pair name the same games.
    """
    rows = []
    first = 0
    for match in matches:
        if is_pair(match.line_up):
            one, other = match.line_up[:2]
            picked = {kind: first + game for kind, game in chosen(match).items()}
            rows.append({"agent": one, "against": other} | picked)
            if match.num_players == 2:
                rows.append({"agent": other, "against": one} | picked)
        first += len(match.deal)
    return rows


def chosen(match: Match) -> dict[str, int]:
    """Rows of a match by what they are; games that were cut off only if all were.

    Typical is the game nearest in length to the median of those that end as most do, won or
    lost by the agent in the first place; closest the one whose losers had the fewest cards
    left, first the nearest of them, then all. Of equals the first is taken.
    """
    won = match.win_share[:, 0] == 1
    usual = won == (won.mean() > 0.5)
    middle = np.median(match.length[usual])
    left = np.sort(match.cards_left, axis=1)
    keys: dict[str, Sequence[npt.NDArray[Any]]] = {
        "typical": (np.abs(match.length - middle), ~usual),
        "longest": (-match.length,),
        "closest": (left.sum(axis=1), left[:, 1]),
    }
    found: dict[str, int] = {}
    for kind in KINDS:
        taken = np.isin(np.arange(len(won)), list(found.values()))
        found[kind] = int(np.lexsort((*keys[kind], match.cut_off, taken))[0])
    return found
