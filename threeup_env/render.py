"""The table as text: what one seat sees, drawn from its observation alone.

So a picture can't show what its seat must not know.
"""

import textwrap
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_env.actions import (
    ACTION_COPIES,
    ACTION_NAMES,
    ACTION_RANK,
    DRAW,
    FIRST_PLAY,
    FLIP,
    PICK_UP,
)
from threeup_env.cards import CLEAR, CLEAR_1, CLEAR_2, RANK_NAMES, VARIANT_NAMES
from threeup_env.observation import MANY_STEPS, card_names, decode
from threeup_env.rules import CLEARING_RUN
from threeup_env.state import EMPTY, Record

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
    lines += _labelled("Pile", _pile_words(view["pile"]))
    lines += _labelled("Draw pile", _cards(int(view["draw_pile_size"])))
    lines += _labelled("Out of play", _copies_words(view["out_of_play"]))
    lines += _labelled("Unseen", _copies_words(view["unseen"]))
    return "\n".join(lines)


def action_text(before: Record, after: Record, action: int, observer: int | None) -> str:
    """Put one action and what followed from it into words that `observer` may read.

    Args:
        before: the record before the action.
        after: the record after it.
        action: the action's id.
        observer: a seat; what others lay stays hidden from it (R5). None sees no seat's secrets.
    """
    seat = int(before["seat"])
    if action < FIRST_PLAY:
        card = ACTION_NAMES[action].removeprefix("lay ") if seat == observer else "a card"
        return f"seat {seat} lays {card}"
    pile_size = int(before["pile"].sum())
    drawn = int(before["draw_pile_size"]) - int(after["draw_pile_size"])
    if action == DRAW:
        return f"seat {seat} draws {_cards(drawn)}"
    if action == PICK_UP:
        return f"seat {seat} can't play and picks up the pile of {_cards(pile_size)}"
    if action == FLIP:
        rank = int(before["face_down"][seat, before["face_down_size"][seat] - 1])
        words = f"seat {seat} turns over {RANK_NAMES[rank]}"
        if rank < before["top"]:
            return f"{words}, can't play it and picks it up with the pile of {_cards(pile_size)}"
        copies = 1
    else:
        rank, copies = int(ACTION_RANK[action]), int(ACTION_COPIES[action])
        words = f"seat {seat} plays {ACTION_NAMES[action].removeprefix('play ')}"
    return words + _effects_words(before, after, rank, copies, drawn)


def _effects_words(before: Record, after: Record, rank: int, copies: int, drawn: int) -> str:
    """What a discard has led to: clearing, winning, extra discards lost, the draw."""
    words = []
    if after["top"] == EMPTY and (rank < CLEAR or before["pile"].any()):
        words.append("clears the pile")
    if after["winner"] >= 0:
        words.append("has shed all cards")
    elif after["seat"] != before["seat"]:
        earned = {CLEAR_1: 1, CLEAR_2: 2}.get(rank, 0)
        if lapsed := max(int(before["owed"]) - 1, 0) + earned:
            words.append(f"has no card for the {_count(lapsed, 'discard')} still owed")
    if drawn:
        words.append(f"draws {_cards(drawn)}")
    *first, last = words or [""]
    return "".join(f", {part}" for part in first) + (f" and {last}" if last else "")


def turn_words(view: Any, reader: int | None) -> str:
    """Who has to do what, or how the game has ended.

    Args:
        view: a decoded observation, of any seat.
        reader: the seat that the words call "you"; None calls nobody so.
    """
    seats, num_players, observer = view["seats"], len(view["seats"]), int(view["seat"])
    acting = np.flatnonzero(seats["acting"])
    if not len(acting):
        left = seats["hand_size"] + seats["face_down_size"] + seats["face_up"].sum(axis=1)
        first = sorted(
            (observer + int(i)) % num_players for i in np.flatnonzero(left == left.min())
        )
        if not left.min():
            return f"seat {first[0]} has won"
        names = " and ".join(map(str, first))
        sharing = (
            f"seats {names} share the win" if len(first) > 1 else f"seat {names} takes the win"
        )
        return f"cut off; {sharing} with {_cards(int(left.min()))} left"
    seat = (observer + int(acting[0])) % num_players
    words = f"seat {seat}{' (you)' * (seat == reader)} "
    if view["laying"]:
        words += f"lays {view['laying']} more {'card' if view['laying'] == 1 else 'cards'} face up"
    elif view["owed"]:
        words += f"owes {_count(view['owed'], 'more discard')}"
    else:
        words += "is to discard"
    words += "; may draw first" * int(view["may_draw"])
    if view["steps_left"] < MANY_STEPS:
        words += f"; cut-off after {_count(view['steps_left'], 'more action')}"
    return words


def _seat_lines(view: Any) -> list[str]:
    """One row a seat, in the order of the seats; long hands go on below."""
    seats, observer = view["seats"], int(view["seat"])
    lines = [_ROW.format("", "Seat", "Hand", "Face up", "Face down")]
    for number in range(len(seats)):
        seat = seats[number - observer]
        you = number == observer
        hand = _hand_words(seat["hand"], int(seat["hand_size"]), view["exposed"] if you else None)
        first, *more = textwrap.wrap(hand, _HAND_WIDTH)
        face_up = "hidden" if view["laying"] and not you else card_names(seat["face_up"]) or "none"
        name = f"{number}{' (you)' * you}"
        mark = ">" if seat["acting"] else ""
        lines.append(_ROW.format(mark, name, first, face_up, seat["face_down_size"] or "none"))
        lines += [" " * 13 + line for line in more]
    return lines


def _hand_words(
    cards: npt.NDArray[np.int8], size: int, exposed: npt.NDArray[np.int8] | None
) -> str:
    """A hand: the observer's own if it comes with what is exposed of it, else another's."""
    if size == 0:
        return "empty"
    known = card_names(cards)
    if exposed is not None:
        if not exposed.any():
            return known
        seen = "all" if exposed.sum() == size else card_names(exposed)
        return f"{known}  (others know {seen})"
    if not known:
        return _cards(size)
    return f"{_cards(size)}{':' if cards.sum() == size else ', among them'} {known}"


def _pile_words(pile: npt.NDArray[np.int8]) -> str:
    """The pile from bottom to top, and what lies on top of it (R6, R9)."""
    if not pile.any():
        return "empty: anything may be played"
    top = int(np.flatnonzero(pile)[-1])
    missing = CLEARING_RUN - int(pile[top])
    clears = f"{_count(missing, f'more {RANK_NAMES[top]}')} would clear it"
    return f"{card_names(pile)}  (bottom to top; {clears})"


def _copies_words(copies: npt.NDArray[np.int8]) -> str:
    held = [(rank, int(count)) for rank, count in enumerate(copies) if count]
    return (
        ", ".join(
            RANK_NAMES[rank] + (f"{_NO_BREAK}x{count}" if count > 1 else "") for rank, count in held
        )
        or "none"
    )


def _cards(count: int) -> str:
    return _count(count, "card")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _labelled(label: str, words: str) -> list[str]:
    indent = _LABEL.format("", "")
    lines = textwrap.wrap(
        words, WIDTH, initial_indent=_LABEL.format(label, ""), subsequent_indent=indent
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
