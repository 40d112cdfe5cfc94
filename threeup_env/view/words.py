"""What happens at a table, and how it stands, in words."""

from typing import Any

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import (
    ACTION_COPIES,
    ACTION_NAMES,
    ACTION_RANK,
    DRAW,
    FIRST_PLAY,
    FLIP,
    PICK_UP,
)
from threeup_env.engine.cards import CLEAR, CLEAR_1, CLEAR_2, RANK_NAMES, VARIANT_NAMES
from threeup_env.engine.checks import checked_observations
from threeup_env.engine.observation import MANY_STEPS, decode
from threeup_env.engine.rules import CLEARING_RUN
from threeup_env.engine.state import EMPTY, Record


def describe(observation: npt.NDArray[np.int8]) -> str:
    """Put one observation into words, a line a fact.

    Args:
        observation: int8 `[F]`.

    Raises:
        TypeError: another dtype.
        ValueError: what no seat can see; names the field.
    """
    decode(np.ascontiguousarray(observation))  # of the right dtype and size
    view = decode(checked_observations(observation[None]))[0]
    seats = view["seats"]
    num_players = len(seats)
    observer = int(view["seat"])
    acting = np.flatnonzero(seats["acting"])
    lines = [f"variant {VARIANT_NAMES[view['variant']]}, {num_players} players"]
    if len(acting):
        lines[0] += f", seat {(observer + acting[0]) % num_players} to act"
        if view["laying"]:
            lines.append(f"laying: {view['laying']} still to lay")
        if view["owed"]:
            lines.append(f"owed: {view['owed']}")
        if view["may_draw"]:
            lines.append("may draw")
    else:
        lines[0] += ", ended"
    if view["steps_left"] < MANY_STEPS:
        lines.append(f"steps left: {view['steps_left']}")
    lines += [
        f"pile: {card_names(view['pile']) or 'empty'}",
        f"draw pile: {view['draw_pile_size']}",
        f"out of play: {card_names(view['out_of_play']) or 'none'}",
        f"unseen: {card_names(view['unseen']) or 'none'}",
    ]
    lines += [_seat_words(view, i) for i in range(num_players)]
    return "\n".join(lines)


def _seat_words(view: Any, i: int) -> str:
    """One seat's cards, the i-th from the observer's."""
    seat, num_players = view["seats"][i], len(view["seats"])
    known = card_names(seat["hand"])
    below = bound_words(seat["bounds"])
    if i == 0:
        hand = f"hand {known or 'empty'}"
        if told := ", ".join(filter(None, (card_names(view["exposed"]), below))):
            hand += f" (the others know {told})"
    else:
        hand = f"hand {number_of_cards(seat['hand_size'])}{f' with {known}' if known else ''}"
        hand += f", {below}" if below else ""
    face_up = "hidden" if view["laying"] and i else card_names(seat["face_up"]) or "none"
    return (
        f"seat {(view['seat'] + i) % num_players}{' (you)' if i == 0 else ''}: {hand}; "
        f"face up {face_up}; face down {seat['face_down_size']}"
    )


def bound_words(bounds: npt.ArrayLike) -> str:
    """What all can infer of the cards of a hand that not all have seen; empty if nothing.

    >>> bound_words([7, 7, 13])
    '2 below 8'
    >>> bound_words([3, 10, 0])
    '1 below 4, 1 below C'
    """
    held = np.asarray(bounds)
    tight = held[(held > 0) & (held < len(RANK_NAMES))].tolist()
    return ", ".join(
        f"{tight.count(bound)} below {RANK_NAMES[bound]}" for bound in sorted(set(tight))
    )


def card_names(copies: npt.ArrayLike) -> str:
    """Write counts by rank as names.

    >>> card_names([0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    '2 2 C'
    """
    counts = enumerate(np.asarray(copies).tolist())
    return " ".join(RANK_NAMES[rank] for rank, count in counts for _ in range(count))


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
        return f"seat {seat} draws {number_of_cards(drawn)}"
    if action == PICK_UP:
        return f"seat {seat} can't play and picks up the pile of {number_of_cards(pile_size)}"
    if action == FLIP:
        rank = int(before["face_down"][seat, before["face_down_size"][seat] - 1])
        words = f"seat {seat} turns over {RANK_NAMES[rank]}"
        if rank < before["top"]:
            with_pile = f"with the pile of {number_of_cards(pile_size)}"
            return f"{words}, can't play it and picks it up {with_pile}"
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
            words.append(f"has no card for the {count_of(lapsed, 'discard')} still owed")
    if drawn:
        words.append(f"draws {number_of_cards(drawn)}")
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
        if left.min():
            return "cut off; nobody has won"
        return f"seat {(observer + int(left.argmin())) % num_players} has won"
    seat = (observer + int(acting[0])) % num_players
    words = f"seat {seat}{' (you)' * (seat == reader)} "
    if view["laying"]:
        words += f"lays {view['laying']} more {'card' if view['laying'] == 1 else 'cards'} face up"
    elif view["owed"]:
        words += f"owes {count_of(view['owed'], 'more discard')}"
    else:
        words += "is to discard"
    words += "; may draw first" * int(view["may_draw"])
    if view["steps_left"] < MANY_STEPS:
        words += f"; cut-off after {count_of(view['steps_left'], 'more action')}"
    return words


def pile_words(pile: npt.NDArray[np.int8]) -> str:
    """The pile from bottom to top, and what lies on top of it (R6, R9)."""
    if not pile.any():
        return "empty: anything may be played"
    return f"{card_names(pile)}  (bottom to top; {clearing_words(pile)})"


def clearing_words(pile: npt.ArrayLike) -> str:
    """How many cards are missing on top of a pile that isn't empty (R9).

    >>> clearing_words([0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    '2 more 7s would clear it'
    """
    copies = np.asarray(pile)
    top = int(np.flatnonzero(copies)[-1])
    missing = CLEARING_RUN - int(copies[top])
    return f"{count_of(missing, f'more {RANK_NAMES[top]}')} would clear it"


def number_of_cards(count: int) -> str:
    """Write so many cards.

    >>> number_of_cards(1), number_of_cards(2)
    ('1 card', '2 cards')
    """
    return count_of(count, "card")


def count_of(count: int, noun: str) -> str:
    """Write a number and what it counts.

    >>> count_of(2, "more discard")
    '2 more discards'
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
