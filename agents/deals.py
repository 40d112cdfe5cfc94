"""Deals for matches: one random stream of their own, no deal twice in a run."""

import hashlib
from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.cards import check_variant, sorted_deck

DEALS: Final = 0
"""First spawn key of the stream of deals; an agent's streams start with another."""
_MOST_REPEATS: Final = 1000


def draw_deals(
    count: int, num_players: int = 2, variant: str = "standard", seed: int = 0
) -> npt.NDArray[np.int8]:
    """Draw shuffled decks, all different as deals.

    The first k of them are the same for every `count`.

    Returns:
        Rank ids, front first, for `Batch.reset(decks=...)`; int8 `[count, deck size]`.

    Raises:
        ValueError: an unknown variant or table size, or more deals than there are.
    """
    if count < 1:
        raise ValueError(f"deals: expected at least 1; got {count!r}")
    check_variant(variant, num_players)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(DEALS,)))
    deck = sorted_deck(variant)
    decks = np.empty((count, len(deck)), np.int8)
    seen: set[int] = set()
    repeats = 0
    while len(seen) < count:
        decks[len(seen)] = rng.permutation(deck)
        key = deal_hash(decks[len(seen)], num_players, variant)
        repeats = repeats + 1 if key in seen else 0
        seen.add(key)
        if repeats > _MOST_REPEATS:
            raise ValueError(
                f"deals: expected fewer for variant {variant!r}, which has hardly more than "
                f"{len(seen)} different ones; got {count}"
            )
    return decks


def deal_hash(deck: npt.NDArray[np.int8], num_players: int, variant: str) -> int:
    """Name a deal by 63 bits: equal for decks that put the same cards in the same places.

    The order of a seat's hand cards makes no difference to a deal; all else does.
    """
    layout = check_variant(variant, num_players)
    size = layout.num_face_up + layout.hand_size
    start = num_players * layout.num_face_down
    stop = start + num_players * size
    dealt = deck.copy()
    dealt[start:stop] = np.sort(deck[start:stop].reshape(num_players, size), axis=1).ravel()
    label = f"{variant} {num_players} ".encode()
    digest = hashlib.blake2b(label + dealt.tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
