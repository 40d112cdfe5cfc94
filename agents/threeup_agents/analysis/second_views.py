"""Two other views of a round robin, by OpenSpiel: alpha-rank and Nash averaging.

Both look at who beats whom and so see cycles, which one rating an agent can't.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents.analysis.statistics import CONFIDENCE, expanded

RESAMPLES: Final = 200
ALPHA: Final = 10.0
"""Strength of selection in alpha-rank. With none bounded (Rowland et al. 2019) any advantage,
however small, takes over the whole population, and the masses jump with the noise."""
POPULATION: Final = 50
"""Members of that population: an advantage of 0.01 takes over exp(4.9) times as often as it is
taken over; the exponent is alpha x 49 x 0.01."""


def check_installed() -> None:
    """Check that OpenSpiel is there.

    Raises:
        ImportError: it isn't; says how to install it.
    """
    try:
        import cvxpy  # noqa: F401 - what OpenSpiel's Nash averaging needs
        import networkx  # noqa: F401 - what its alpha-rank needs
        import pyspiel  # noqa: F401 - OpenSpiel itself
    except ImportError as error:
        raise ImportError(
            f"second views need OpenSpiel: pip install 'threeup[openspiel]' ({error})"
        ) from error


def second_views(
    names: tuple[str, ...],
    advantages: npt.NDArray[np.float64],
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> dict[str, Any]:
    """Both views of each agent, with intervals by bootstrap over deals.

    Args:
        names: of the agents.
        advantages: by deal, the share of an agent (row) at a table of another (column)
            less the share of the other at a table of the one; `[D, N, N]`.
        rng: for the resampling.
        confidence: of the intervals.

    Returns:
        `alpha` and `population`, and a row an agent: `alpha_rank`, its mass in the
        evolutionary dynamics (Omidshafiei et al. 2019), and `nash_value`, its advantage over
        the Nash mixture of all agents (Balduzzi et al. 2018), 0 for those in it.
    """
    num_deals = len(advantages)
    even = np.full(num_deals, 1 / num_deals)
    best = _views(advantages.mean(axis=0))
    flat = advantages.reshape(num_deals, -1)
    samples = np.array(
        [
            _views((rng.multinomial(num_deals, even) @ flat / num_deals).reshape(best.shape[1], -1))
            for _ in range(RESAMPLES)
        ]
    )
    tail = 100 * (1 - expanded(confidence, num_deals)) / 2
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0, method="weibull")
    rows = []
    for i, name in enumerate(names):
        row: dict[str, Any] = {"agent": name}
        for view, prefix in enumerate(("alpha_rank", "nash_value")):
            row[prefix] = float(best[view, i])
            row[f"{prefix}_low"] = float(low[view, i])
            row[f"{prefix}_high"] = float(high[view, i])
        rows.append(row)
    rows.sort(key=lambda row: (-row["nash_value"], -row["alpha_rank"]))
    return {"alpha": ALPHA, "population": POPULATION, "agents": rows}


def _views(advantage: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Alpha-rank's masses and the Nash values for one antisymmetric matrix; `[2, N]`."""
    import pyspiel
    from open_spiel.python.algorithms.nash_averaging import nash_averaging
    from open_spiel.python.egt import alpharank

    # OpenSpiel asks for exact antisymmetry.
    exact = np.triu(advantage, 1) - np.triu(advantage, 1).T
    masses = alpharank.compute([(1 + exact) / 2], m=POPULATION, alpha=ALPHA)[2]
    _, values = nash_averaging(pyspiel.create_matrix_game(exact, -exact))
    return np.array([masses, np.minimum(values.ravel(), 0)])
