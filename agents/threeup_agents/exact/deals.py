"""Every deal of a small variant, with its probability."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_agents.arena.deals import deal_hashes
from threeup_env.engine.cards import VARIANTS, check_variant

NUM_SEATS: Final = 2
MOST_ORDERS: Final = 1_000_000
"""Orders of a deck that are gone through."""


def all_deals(variant: str = "mini") -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
    """The deals at a table of two that differ, by `deal_hashes`.

    Returns:
        A deck for each, int8 `[D, deck size]`, and the probabilities, `[D]`.

    Raises:
        ValueError: an unknown variant, or one with too many orders of its deck.

    Example:
        >>> decks, chance = all_deals("mini")
        >>> len(decks), float(chance.sum().round(9))
        (3156, 1.0)
    """
    check_variant(variant, NUM_SEATS)
    copies = list(VARIANTS[variant].copies)
    orders = num_orders(variant)
    if orders > MOST_ORDERS:
        raise ValueError(
            f"variant: expected one with at most {MOST_ORDERS:,} orders of its deck, e.g. "
            f"'mini'; got {variant!r} with {orders:.1e}"
        )
    decks = np.array(list(_orders(copies)), np.int8)
    hashes = deal_hashes(decks, NUM_SEATS, variant)
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return decks[first], counts / orders


def num_orders(variant: str) -> int:
    """How many orders its deck has, equal cards not told apart.

    >>> num_orders("mini")  # 10! / (3! 3! 2!)
    50400
    """
    copies = VARIANTS[variant].copies
    return math.factorial(sum(copies)) // math.prod(map(math.factorial, copies))


def _orders(copies: list[int]) -> Iterator[tuple[int, ...]]:
    """All orders of a deck with so many copies of each rank."""
    if not any(copies):
        yield ()
    for rank in range(len(copies)):
        if copies[rank]:
            copies[rank] -= 1
            yield from ((rank, *rest) for rest in _orders(copies))
            copies[rank] += 1
