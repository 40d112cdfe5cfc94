"""Ranks, decks and layouts: what the cards are, before any rule of play."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.arguments import as_array, is_integer

MIN_SEATS: Final = 2
MAX_SEATS: Final = 6

RANK_NAMES: Final = (*(str(number) for number in range(1, 11)), "C", "C+1", "C+2")
"""Name of each rank, lowest first (R2, R3); a rank id is an index into it."""
NUM_RANKS: Final = len(RANK_NAMES)
CLEAR: Final = 10
CLEAR_1: Final = 11
CLEAR_2: Final = 12


@dataclass(frozen=True)
class Variant:
    """A deck and a layout of the table (R2, R4, R5)."""

    name: str
    copies: tuple[int, ...]
    """Copies of each rank in the deck, `[R]`."""
    hand_size: int
    """Cards in hand once all have laid; what a draw fills the hand to (R12, R15)."""
    num_face_up: int
    """Cards that a seat lays face up (R5)."""
    num_face_down: int
    """Cards that a seat is dealt face down (R4)."""

    @property
    def deck_size(self) -> int:
        """Cards in the deck."""
        return sum(self.copies)

    @property
    def num_dealt(self) -> int:
        """Cards dealt to a seat, the face-down ones included (R4)."""
        return self.num_face_down + self.num_face_up + self.hand_size

    @property
    def max_players(self) -> int:
        """The most seats that the deck can serve."""
        return min(MAX_SEATS, self.deck_size // self.num_dealt)


def _variants(*variants: Variant) -> dict[str, Variant]:
    return {variant.name: variant for variant in variants}


VARIANTS: Final = _variants(
    Variant("standard", (*[7] * 10, 6, 6, 2), hand_size=3, num_face_up=3, num_face_down=3),
    Variant("listed", (*[6] * 10, 6, 6, 2), hand_size=3, num_face_up=3, num_face_down=3),
    Variant("mini", (3, 3, *[0] * 8, 2, 1, 1), hand_size=2, num_face_up=1, num_face_down=1),
)
"""Every variant by name: the deck of 84, the published list's 74 cards (R2), and the
smallest deck and layout that still shows every rule. The order is the variant id."""

VARIANT_NAMES: Final = tuple(VARIANTS)
MAX_DECK_SIZE: Final = max(variant.deck_size for variant in VARIANTS.values())
MAX_COPIES: Final = tuple(max(n) for n in zip(*(v.copies for v in VARIANTS.values()), strict=True))
"""The most copies of each rank in any variant, `[R]`."""
MAX_FACE_DOWN: Final = max(variant.num_face_down for variant in VARIANTS.values())
MAX_HAND: Final = max(variant.hand_size for variant in VARIANTS.values())
"""The most cards in a hand whose rank nobody else knows, once all have laid: one draws up to
this many only (R15)."""
MAX_DRAW_PILE: Final = max(v.deck_size - MIN_SEATS * v.num_dealt for v in VARIANTS.values())
"""The most cards that a draw pile can hold after the deal."""

# The same as arrays, which compiled code can index by variant id.
VARIANT_COPIES: Final = np.array([v.copies for v in VARIANTS.values()], np.int8)
VARIANT_DECK_SIZE: Final = np.array([v.deck_size for v in VARIANTS.values()], np.int8)
VARIANT_HAND_SIZE: Final = np.array([v.hand_size for v in VARIANTS.values()], np.int8)
VARIANT_NUM_FACE_UP: Final = np.array([v.num_face_up for v in VARIANTS.values()], np.int8)
VARIANT_NUM_FACE_DOWN: Final = np.array([v.num_face_down for v in VARIANTS.values()], np.int8)


def check_variant(variant: str, num_players: int) -> Variant:
    """Look up a variant and check that it can seat `num_players`.

    Raises:
        ValueError: unknown name, or more or fewer seats than the deck serves.
    """
    if not isinstance(variant, str) or variant not in VARIANTS:
        names = ", ".join(map(repr, VARIANTS))
        raise ValueError(f"variant: expected one of {names}; got {variant!r}")
    found = VARIANTS[variant]
    if not is_integer(num_players) or num_players not in range(MIN_SEATS, found.max_players + 1):
        span = f"{MIN_SEATS} to {found.max_players}"
        raise ValueError(
            f"num_players: expected {span if found.max_players > MIN_SEATS else MIN_SEATS} "
            f"for variant {variant!r}; got {num_players!r}"
        )
    return found


def sorted_deck(variant: str) -> npt.NDArray[np.int8]:
    """The deck as rank ids, lowest first; int8 `[deck size]`.

    >>> len(sorted_deck("standard")), len(sorted_deck("listed"))
    (84, 74)
    """
    return np.repeat(np.arange(NUM_RANKS, dtype=np.int8), VARIANTS[variant].copies)


def check_decks(decks: npt.ArrayLike, variant: str) -> npt.NDArray[np.int8]:
    """Check that each row is a permutation of the variant's deck.

    Args:
        decks: rank ids, front first; int `[B, deck size]`.
        variant: a key of `VARIANTS`.

    Returns:
        A copy as int8 `[B, deck size]`.

    Raises:
        ValueError: a row is not a permutation of the deck; says which ranks are off.
    """
    given = as_array("decks", decks)
    deck = sorted_deck(variant)
    if given.ndim != 2 or given.shape[1] != len(deck) or given.dtype.kind not in "iu":
        raise ValueError(
            f"deck: expected {len(deck)} rank ids (integers 0..{NUM_RANKS - 1}) for variant "
            f"{variant!r}; got shape {given.shape[1:]} of {given.dtype}"
        )
    wrong = np.flatnonzero((np.sort(given, axis=1) != deck).any(axis=1))
    for game in wrong[:1]:
        ids = given[game]
        if ids.min() < 0 or ids.max() >= NUM_RANKS:
            bad = ids[(ids < 0) | (ids >= NUM_RANKS)][0]
            raise ValueError(f"deck of game {game}: expected rank ids 0..12; got {bad}")
        count = np.bincount(ids, minlength=NUM_RANKS)
        off = ", ".join(
            f"{RANK_NAMES[rank]} {copies} times, got {count[rank]}"
            for rank, copies in enumerate(VARIANTS[variant].copies)
            if count[rank] != copies
        )
        raise ValueError(
            f"deck of game {game}: expected a permutation of the {variant!r} deck with {off}"
        )
    return given.astype(np.int8)
