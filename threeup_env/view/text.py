"""The table as text: what one seat sees.

All of it comes from the seat's observation, but for the line about the last action, which
the caller gives in words that the seat may read.
"""

import textwrap
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.cards import RANK_NAMES, VARIANT_NAMES
from threeup_env.engine.observation import decode
from threeup_env.view.words import (
    bound_words,
    card_names,
    number_of_cards,
    pile_words,
    turn_words,
)

WIDTH: Final = 80
"""Columns that every line fits into."""
_LABEL: Final = "{:<13}{}"
_ROW: Final = "{:1} {:<11}{:<41}  {:<14} {}"
_HAND_WIDTH: Final = 41
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"


def table_text(observation: npt.NDArray[np.int8], last_action: str = "") -> str:
    """Draw what a seat sees, one row a seat, at most `WIDTH` columns wide.

    Args:
        observation: int8 `[F]`, of any seat.
        last_action: what happened just before, in words, as `action_text` puts it.

    Example:
        >>> from threeup_env import Batch
        >>> batch = Batch(1, variant="mini")
        >>> batch.reset(decks=[[0, 1, 0, 1, 12, 0, 1, 10, 11, 10]])
        >>> print(table_text(batch.observations[0]))
        3UP 3DOWN    mini, 2 players, seen by seat 0
        Turn         seat 0 (you) lays 1 more card face up
        <BLANKLINE>
          Seat       Hand                                       Face up        Face down
        > 0 (you)    1 2 C+2                                    none           1
          1          3 cards                                    hidden         1
        <BLANKLINE>
        Pile         empty: anything may be played
        Draw pile    2 cards
        Out of play  none
        Unseen       1 x2, 2 x2, C x2, C+1
    """
    view = decode(np.ascontiguousarray(observation))
    observer = int(view["seat"])
    variant, num_players = VARIANT_NAMES[view["variant"]], len(view["seats"])
    lines = _labelled("3UP 3DOWN", f"{variant}, {num_players} players, seen by seat {observer}")
    label = "Turn" if view["seats"]["acting"].any() else "Result"
    lines += _labelled(label, turn_words(view, observer))
    if last_action:
        lines += _labelled("Last action", last_action)
    lines += ["", *_seat_lines(view), ""]
    lines += _labelled("Pile", pile_words(view["pile"]))
    lines += _labelled("Draw pile", number_of_cards(int(view["draw_pile_size"])))
    lines += _labelled("Out of play", _copies_words(view["out_of_play"]))
    lines += _labelled("Unseen", _copies_words(view["unseen"]))
    return "\n".join(lines)


def _seat_lines(view: Any) -> list[str]:
    """One row a seat, in the order of the seats; long hands go on below."""
    seats, observer = view["seats"], int(view["seat"])
    lines = [_ROW.format("", "Seat", "Hand", "Face up", "Face down")]
    for number in range(len(seats)):
        seat = seats[number - observer]
        you = number == observer
        hand = _hand_words(seat, view["exposed"] if you else None)
        first, *more = textwrap.wrap(hand, _HAND_WIDTH)
        face_up = "hidden" if view["laying"] and not you else card_names(seat["face_up"]) or "none"
        name = f"{number}{' (you)' * you}"
        mark = ">" if seat["acting"] else ""
        lines.append(_ROW.format(mark, name, first, face_up, seat["face_down_size"] or "none"))
        lines += [" " * 13 + line for line in more]
    return lines


def _hand_words(seat: Any, exposed: npt.NDArray[np.int8] | None) -> str:
    """A hand: the observer's own if it comes with what is exposed of it, else another's."""
    size = int(seat["hand_size"])
    if size == 0:
        return "empty"
    known, below = card_names(seat["hand"]), bound_words(seat["bounds"])
    if exposed is not None:
        seen = "all" if exposed.sum() == size else card_names(exposed)
        told = ", ".join(filter(None, (seen, below)))
        return f"{known}  (others know {told})" if told else known
    if not known:
        return f"{number_of_cards(size)}{f', {below}' if below else ''}"
    among = ":" if seat["hand"].sum() == size else ", among them"
    return f"{number_of_cards(size)}{among} {known}{f'; {below}' if below else ''}"


def _copies_words(copies: npt.NDArray[np.int8]) -> str:
    held = [(rank, int(count)) for rank, count in enumerate(copies) if count]
    return (
        ", ".join(
            RANK_NAMES[rank] + (f"{_NO_BREAK}x{count}" if count > 1 else "") for rank, count in held
        )
        or "none"
    )


def _labelled(label: str, words: str) -> list[str]:
    indent = _LABEL.format("", "")
    lines = textwrap.wrap(
        words, WIDTH, initial_indent=_LABEL.format(label, ""), subsequent_indent=indent
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
