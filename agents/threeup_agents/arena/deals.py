"""Deals for matches: one random stream of their own, no deal twice in a run."""

import hashlib
from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import check_variant, sorted_deck
from threeup_env.engine.rng import MATCH_DEALS, shuffle, streams

PUBLIC_SEED: Final = 3303
"""Seed of the public deals. They are frozen: the stream and the shuffle are this
project's own, and a test holds their hash."""
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
    stream = streams(seed, 1, MATCH_DEALS)
    deck = sorted_deck(variant)
    decks = np.empty((count, len(deck)), np.int8)
    seen: set[int] = set()
    repeats = 0
    while len(seen) < count:
        # Draw as many as are missing, then leave out those that have been seen.
        drawn = np.tile(deck, (count - len(seen), 1))
        for row in drawn:
            shuffle(stream, row, len(row))
        for row, key in zip(drawn, deal_hashes(drawn, num_players, variant).tolist(), strict=True):
            if key in seen:
                repeats += 1
                continue
            decks[len(seen)] = row
            seen.add(key)
            repeats = 0
        if repeats > _MOST_REPEATS:
            raise ValueError(
                f"deals: expected fewer for variant {variant!r}, which has hardly more than "
                f"{len(seen)} different ones; got {count}"
            )
    return decks


def deal_hashes(
    decks: npt.NDArray[np.int8], num_players: int, variant: str
) -> npt.NDArray[np.int64]:
    """Name deals by 63 bits: equal for decks that put the same cards in the same places.

    The order of a seat's hand cards makes no difference to a deal; all else does.

    Args:
        decks: int8 `[D, deck size]`.
        num_players: seats at the table.
        variant: a key of `VARIANTS`.

    Returns:
        int64 `[D]`.
    """
    layout = check_variant(variant, num_players)
    size = layout.num_face_up + layout.hand_size
    start = num_players * layout.num_face_down
    stop = start + num_players * size
    dealt = decks.copy()
    hands = decks[:, start:stop].reshape(len(decks), num_players, size)
    dealt[:, start:stop] = np.sort(hands, axis=2).reshape(len(decks), -1)
    key = f"{variant} {num_players}".encode()
    digests = (hashlib.blake2b(row.tobytes(), digest_size=8, key=key) for row in dealt)
    return np.array([int.from_bytes(d.digest(), "big") >> 1 for d in digests], np.int64)
