"""What one looker sees of the table, ready to be drawn.

A seat's view and a spectator's are made from an observation, so they can't hold a card that
must stay hidden; `look` adds the last action in words that the looker may read.
"""

import operator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_env.engine.batch import Batch
from threeup_env.engine.cards import NUM_RANKS, VARIANT_NAMES, VARIANTS
from threeup_env.engine.observation import decode
from threeup_env.engine.state import Record
from threeup_env.view.words import action_text, turn_words

SPECTATOR: Final = "spectator"
OPEN: Final = "open"
Viewer: TypeAlias = int | Literal["spectator", "open"]
"""A seat; a spectator, who sees what all may know; or one who sees every card."""

Copies: TypeAlias = tuple[int, ...]
"""Copies of each rank, `[R]`."""
NO_CARDS: Final = (0,) * NUM_RANKS


@dataclass(frozen=True)
class Place:
    """One seat's cards, as a looker sees them."""

    seat: int
    is_acting: bool
    hand: Copies
    """The cards in hand that the looker knows."""
    hidden: int
    """How many more it holds."""
    exposed: Copies
    """Of `hand`, what all know, where that is less than the looker knows."""
    below: tuple[int, ...]
    """What all can infer of its other cards: an exclusive upper bound for each (R14, R22)."""
    face_up: Copies
    laid: int
    """Face-up cards not shown yet (R5)."""
    face_down: tuple[int | None, ...]
    """The card that is turned first comes first; None is a back."""

    @property
    def hand_size(self) -> int:
        """Cards in hand."""
        return sum(self.hand) + self.hidden

    @property
    def cards_left(self) -> int:
        """Cards to shed."""
        return self.hand_size + sum(self.face_up) + self.laid + len(self.face_down)


@dataclass(frozen=True)
class Table:
    """Everything that a picture of the table shows."""

    viewer: Viewer
    variant: str
    turn: str
    """Who has to do what, or how the game has ended."""
    last_action: str
    places: tuple[Place, ...]
    """In the order of the seats."""
    pile: Copies
    draw_pile_size: int
    next_draw: int | None
    """Rank of the card drawn next, for one who sees every card."""
    out_of_play: Copies
    unseen: Copies
    """Copies whose place the looker doesn't know."""


def seen_by_seat(observation: npt.NDArray[np.int8], last_action: str = "") -> Table:
    """What a seat sees, from its observation.

    Args:
        observation: int8 `[F]`, of any seat.
        last_action: what happened just before, in words that this seat may read.
    """
    view = decode(np.ascontiguousarray(observation))
    seat = int(view["seat"])
    return _table(view, seat, last_action)


def seen_by_spectator(observation: npt.NDArray[np.int8], last_action: str = "") -> Table:
    """What all may know: an observation without what its own seat alone knows.

    Args:
        observation: int8 `[F]`; any seat's gives the same table.
        last_action: what happened just before, in words that anybody may read.
    """
    view = decode(np.array(observation))
    own = view["seats"][0]
    view["unseen"] += own["hand"] - view["exposed"]
    own["hand"] = view["exposed"]
    view["exposed"] = 0
    if view["laying"]:
        view["unseen"] += own["face_up"]
        own["face_up"] = 0
    return _table(view, SPECTATOR, last_action)


def seen_open(observation: npt.NDArray[np.int8], game: Record, last_action: str = "") -> Table:
    """Every card.

    Args:
        observation: int8 `[F]`, of any seat.
        game: the record; read only.
        last_action: what happened just before, in words.
    """
    table = seen_by_spectator(observation, last_action)
    places = []
    for place in table.places:
        seat = place.seat
        turned_last = game["face_down"][seat, : game["face_down_size"][seat]]
        places.append(
            replace(
                place,
                hand=_copies(game["hand"][seat]),
                hidden=0,
                exposed=_copies(game["known"][seat]),
                face_up=_copies(game["face_up"][seat]),
                laid=0,
                face_down=tuple(turned_last[::-1].tolist()),
            )
        )
    size = int(game["draw_pile_size"])
    return replace(
        table,
        viewer=OPEN,
        places=tuple(places),
        next_draw=int(game["draw_pile"][size - 1]) if size else None,
        unseen=NO_CARDS,
    )


def look(
    batch: Batch, row: int = 0, viewer: Viewer = OPEN, last: tuple[Record, int] | None = None
) -> Table:
    """What somebody sees of one game of a batch.

    Args:
        batch: dealt.
        row: the game.
        viewer: who looks.
        last: the record before the last action, and the action.

    Raises:
        ValueError: no such viewer.
    """
    viewer = _checked(viewer, batch.num_players)
    game = batch.states[row]
    reader = viewer if isinstance(viewer, int) else 0
    observation = batch.observe(np.full(batch.num_games, reader))[row]
    words = "" if last is None else action_text(last[0], game, last[1], _reader(viewer, last[0]))
    if viewer == OPEN:
        return seen_open(observation, game, words)
    if viewer == SPECTATOR:
        return seen_by_spectator(observation, words)
    return seen_by_seat(observation, words)


def _checked(viewer: Viewer, num_players: int) -> Viewer:
    """The viewer, a seat of any integer type as a Python int."""
    if viewer in (SPECTATOR, OPEN):
        return viewer
    try:
        seat = -1 if isinstance(viewer, bool | np.bool_ | str) else operator.index(viewer)
    except TypeError:
        seat = -1
    if seat not in range(num_players):
        raise ValueError(
            f"viewer: expected a seat in 0..{num_players - 1}, {SPECTATOR!r} or {OPEN!r}; "
            f"got {viewer!r}"
        )
    return seat


def _reader(viewer: Viewer, before: Record) -> int | None:
    """The seat whose secrets the words about an action may tell; None for nobody's."""
    if viewer == OPEN:
        return int(before["seat"])
    return viewer if isinstance(viewer, int) else None


def _table(view: Any, viewer: Viewer, last_action: str) -> Table:
    observer, num_players = int(view["seat"]), len(view["seats"])
    variant = VARIANTS[VARIANT_NAMES[view["variant"]]]
    places = []
    for seat in range(num_players):
        block = view["seats"][seat - observer]
        laid = 0
        if view["laying"] and viewer != seat:
            laid = variant.hand_size + variant.num_face_up - int(block["hand_size"])
        places.append(
            Place(
                seat=seat,
                is_acting=bool(block["acting"]),
                hand=_copies(block["hand"]),
                hidden=int(block["hand_size"]) - int(block["hand"].sum()),
                exposed=_copies(view["exposed"]) if viewer == seat else NO_CARDS,
                below=tuple(block["bounds"].tolist()),
                face_up=_copies(block["face_up"]),
                laid=laid,
                face_down=(None,) * int(block["face_down_size"]),
            )
        )
    return Table(
        viewer=viewer,
        variant=variant.name,
        turn=turn_words(view, viewer if isinstance(viewer, int) else None),
        last_action=last_action,
        places=tuple(places),
        pile=_copies(view["pile"]),
        draw_pile_size=int(view["draw_pile_size"]),
        next_draw=None,
        out_of_play=_copies(view["out_of_play"]),
        unseen=_copies(view["unseen"]),
    )


def _copies(counts: npt.NDArray[np.int8]) -> Copies:
    return tuple(counts.tolist())
