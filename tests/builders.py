"""Games at a given position, and what lies where, in the words of the table."""

from collections import Counter
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from threeup_env import ACTION_NAMES, RANK_NAMES, VARIANTS, Batch, action_id
from threeup_env.engine.cards import MAX_HAND
from threeup_env.engine.state import EMPTY


class Cards(TypedDict, total=False):
    """What `position` puts on the table, for the cases of a parametrised test."""

    hand: str
    pile: str
    draw_pile: str
    face_up: str
    face_down: str
    other_hand: str


def ranks(cards: str) -> list[int]:
    """The rank ids of cards by name: `"7 7 C+1"`."""
    return [RANK_NAMES.index(card) for card in cards.split()]


def counts(cards: str) -> npt.NDArray[np.int8]:
    """Copies of each rank, int8 `[R]`."""
    return np.bincount(ranks(cards), minlength=len(RANK_NAMES)).astype(np.int8)


def names(copies: npt.NDArray[np.int8]) -> str:
    """The cards of an int8 `[R]` of copies by name, ascending: `"7 7 C+1"`."""
    return " ".join(RANK_NAMES[rank] for rank in np.repeat(np.arange(len(copies)), copies))


def dealt(deck: str, variant: str = "standard") -> Batch:
    """One game of two dealt from a deck that begins with these cards, its front first."""
    rest = Counter(dict(enumerate(VARIANTS[variant].copies))) - Counter(ranks(deck))
    batch = Batch(1, variant=variant, autoreset=False)
    batch.reset(decks=np.array([[*ranks(deck), *rest.elements()]]))
    return batch


def position(
    hand: str = "",
    *,
    pile: str = "",
    draw_pile: str = "",
    face_up: str = "",
    face_down: str = "",
    other_hand: str = "8 9 10",
    max_steps: int = 1000,
) -> Batch:
    """One game of two in which seat 0 begins a turn; cards not named are out of play.

    `hand`, `face_up` and `face_down` are those of seat 0. `draw_pile` is written front
    first, `face_down` in the order of turning, `pile` bottom to top.
    """
    batch = Batch(1, max_steps=max_steps, autoreset=False)
    batch.reset(seed=0)
    states = batch.states.copy()
    game = states[0]
    for name in ("hand", "face_up", "hand_size", "face_up_size", "face_down", "face_down_size"):
        game[name][:] = 0
    game["bounds"][:] = 0
    game["draw_pile"][:] = 0
    game["laying"] = 0

    # Seats
    for seat, cards in enumerate((hand, other_hand)):
        game["hand"][seat] = counts(cards)
        game["hand_size"][seat] = len(cards.split())
        # Of a larger hand all have seen all but the last three cards (R22).
        game["known"][seat] = counts(" ".join(cards.split()[:-MAX_HAND]))
    game["face_up"][0] = counts(face_up)
    game["face_up_size"][0] = len(face_up.split())
    game["face_down"][0, : len(face_down.split())] = ranks(face_down)[::-1]
    game["face_down_size"][0] = len(face_down.split())

    # Table
    game["draw_pile"][: len(draw_pile.split())] = ranks(draw_pile)[::-1]
    game["draw_pile_size"] = len(draw_pile.split())
    game["pile"] = counts(pile)
    game["top"] = ranks(pile)[-1] if pile else EMPTY
    named = counts(" ".join((hand, other_hand, face_up, face_down, draw_pile, pile)))
    game["out_of_play"] = np.asarray(VARIANTS["standard"].copies) - named
    assert (game["out_of_play"] >= 0).all(), "more copies of a rank than the deck has"
    batch.load(states)
    return batch


def legal(batch: Batch) -> list[str]:
    """The names of the actions open to the seat to act, in the order of their ids."""
    return [ACTION_NAMES[action] for action in np.flatnonzero(batch.action_masks[0])]


def play(batch: Batch, *actions: str) -> Batch:
    """Take these actions one after the other; gives the same batch back."""
    for action in actions:
        batch.step(np.array([action_id(action)]))
    return batch


def table(batch: Batch) -> dict[str, str | int]:
    """What lies where, seat 0's cards first, written as in `position`."""
    game = batch.states[0]
    face_down = game["face_down"][0, : game["face_down_size"][0]][::-1]
    draw_pile = game["draw_pile"][: game["draw_pile_size"]][::-1]
    return {
        "hand": names(game["hand"][0]),
        "other_hand": names(game["hand"][1]),
        "face_up": names(game["face_up"][0]),
        "face_down": " ".join(RANK_NAMES[rank] for rank in face_down),
        "draw_pile": " ".join(RANK_NAMES[rank] for rank in draw_pile),
        "pile": names(game["pile"]),
        "out_of_play": names(game["out_of_play"]),
        "seat": int(batch.seats[0]),
        "owed": int(game["owed"]),
        "legal": ", ".join(legal(batch)),
    }
