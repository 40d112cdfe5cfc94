"""Drawing actions by their chances."""

import numpy as np
import numpy.typing as npt


def sample(chances: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw one column a row, in proportion to the chances; never one of 0.

    Args:
        chances: float64 `[B, A]`; each row has one above 0.
        rng: advanced by B numbers.

    Returns:
        int64 `[B]`.
    """
    # The first column whose cumulative chance exceeds a uniform number below the total.
    cumulative = chances.cumsum(axis=1)
    drawn = rng.random((len(cumulative), 1)) * cumulative[:, -1:]
    chosen: npt.NDArray[np.int64] = (cumulative > drawn).argmax(axis=1)
    return chosen
