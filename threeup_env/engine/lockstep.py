"""What `Batch` does to its rows, compiled. Actions have been checked when they come here."""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import (
    MAX_DECK_SIZE,
    VARIANT_DECK_SIZE,
    VARIANT_NAMES,
    sorted_deck,
)
from threeup_env.engine.compiled import compiled, compiled_part
from threeup_env.engine.observation import observation_size, write_observation
from threeup_env.engine.rng import shuffle
from threeup_env.engine.rules import (
    apply_action,
    cards_left,
    deal,
    win_share,
    write_legal_actions,
)
from threeup_env.engine.state import CUT_OFF, EMPTY, Record

DEAL: Final = -1
"""What `run_games` does in a row instead of an action: deal it anew."""
KEEP: Final = -2
"""Likewise: leave it as it is and show it."""


SHOWN: Final = (
    *("seats", "observations", "action_masks", "rewards"),
    *("terminations", "truncations", "cards_left", "lengths"),
)
"""The arrays that `Batch` shows; their meaning stands there."""
Shown: TypeAlias = tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.int8],
    npt.NDArray[np.bool_],
    npt.NDArray[np.float32],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.int8],
    npt.NDArray[np.int32],
]
"""Those arrays in that order. A plain tuple: a named one slows a single game by a quarter."""


def new_shown(num_games: int, num_players: int) -> Shown:
    """Allocate them, all zero."""
    return (
        np.zeros(num_games, np.int64),
        np.zeros((num_games, observation_size(num_players)), np.int8),
        np.zeros((num_games, NUM_ACTIONS), np.bool_),
        np.zeros((num_games, num_players), np.float32),
        np.zeros(num_games, np.bool_),
        np.zeros(num_games, np.bool_),
        np.zeros((num_games, num_players), np.int8),
        np.zeros(num_games, np.int32),
    )


@compiled
def all_legal(
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
    action_masks: npt.NDArray[np.bool_],
) -> bool:
    """Tell whether each action is one of its row's legal ones; any integer may be asked.

    Compiled, since NumPy takes longer over a single game than the whole step does.
    """
    for i in range(len(rows)):
        action = actions[i]
        if action < 0 or action >= NUM_ACTIONS or not action_masks[rows[i], action]:
            return False
    return True


@compiled_part
def deal_shuffled(game: Record, deck: npt.NDArray[np.int8]) -> None:
    """Shuffle the variant's deck from the game's own stream and deal it; `deck` is scratch."""
    size = VARIANT_DECK_SIZE[game.variant]
    for position in range(size):
        deck[position] = _DECKS[game.variant, position]
    stream = np.empty(1, np.uint64)
    stream[0] = game.rng
    shuffle(stream, deck, size)
    game.rng = stream[0]
    deal(game, deck)


@compiled
def deal_given(
    states: npt.NDArray[np.void], rows: npt.NDArray[np.int64], decks: npt.NDArray[np.int8]
) -> None:
    """Deal the i-th of the rows from deck i."""
    for i in range(len(rows)):
        deal(states[rows[i]], decks[i])


@compiled_part
def write_decision(
    game: Record,
    row: int,
    legal: npt.NDArray[np.int64],
    seats: npt.NDArray[np.int64],
    observations: npt.NDArray[np.int8],
    action_masks: npt.NDArray[np.bool_],
) -> None:
    """Write one game's seat to act, its observation and its mask; `legal` is scratch."""
    seats[row] = game.seat
    write_observation(game, int(np.int64(game.seat)), observations[row])
    for action in range(NUM_ACTIONS):
        action_masks[row, action] = False
    for i in range(write_legal_actions(game, legal)):
        action_masks[row, legal[i]] = True


@compiled
def write_observations(
    states: npt.NDArray[np.void],
    observers: npt.NDArray[np.int64],
    observations: npt.NDArray[np.int8],
) -> None:
    """Write what one seat of each game may know."""
    for row in range(len(states)):
        write_observation(states[row], observers[row], observations[row])


@compiled
def run_games(
    states: npt.NDArray[np.void],
    rows: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int64],
    autoreset: bool,
    shown: Shown,
) -> None:
    """Apply one legal action (or DEAL or KEEP) in each of the rows; write all that is shown.

    One kernel for dealing and playing, since each kernel costs seconds to compile. It
    touches its own rows only, so threads may share the arrays if no two have a row in common.
    """
    seats, observations, action_masks, rewards, terminations, truncations, left, lengths = shown
    num_seats = rewards.shape[1]
    legal = np.empty(NUM_ACTIONS, np.int64)
    deck = np.empty(MAX_DECK_SIZE, np.int8)
    for i in range(len(rows)):
        row = rows[i]
        action = actions[i]
        game = states[row]
        if action >= 0:
            apply_action(game, action)
        elif action == DEAL:
            deal_shuffled(game, deck)
        lengths[row] = game.steps
        terminations[row] = False
        truncations[row] = False
        for seat in range(num_seats):
            rewards[row, seat] = 0
            left[row, seat] = cards_left(game, seat)
        if action >= 0 and game.winner != EMPTY:
            terminations[row] = game.winner != CUT_OFF
            truncations[row] = game.winner == CUT_OFF
            for seat in range(num_seats):
                share = win_share(game, seat)
                rewards[row, seat] = (num_seats * share - 1) / (num_seats - 1)
            if autoreset:
                deal_shuffled(game, deck)
        write_decision(game, row, legal, seats, observations, action_masks)


# The sorted decks by variant id, padded; compiled code reads it.
_DECKS: Final = np.zeros((len(VARIANT_NAMES), MAX_DECK_SIZE), np.int8)
for _id, _name in enumerate(VARIANT_NAMES):
    _deck = sorted_deck(_name)
    _DECKS[_id, : len(_deck)] = _deck
