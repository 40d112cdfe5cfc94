"""One game as one fixed-size record: everything that the rules read or write."""

from typing import Any, Final, TypeAlias

import numpy as np

from threeup_env.engine.cards import (
    MAX_DRAW_PILE,
    MAX_FACE_DOWN,
    MAX_HAND,
    MAX_SEATS,
    NUM_RANKS,
)

ENV_ID: Final = "threeup-v1"
"""The environment's id. Its version grows when the same seed and actions give another mask,
observation, reward or end; what was made for an older one is refused."""

EMPTY: Final = -1
"""`top` of an empty pile; `winner` while the game runs."""
CUT_OFF: Final = -2
"""`winner` of a game that the step limit ended (R21)."""

STATE_DTYPE: Final = np.dtype(
    (
        np.record,
        [
            ("rng", np.uint64),  # splitmix64 counter; the game's only source of chance
            ("steps", np.int32),  # actions taken
            ("max_steps", np.int32),  # the action that ends the game if it doesn't win it (R21)
            ("variant", np.int8),  # index into VARIANT_NAMES
            ("num_seats", np.int8),  # 2..MAX_SEATS; seats beyond it are all zero
            ("seat", np.int8),  # whose decision it is; of no meaning once the game has ended
            ("laying", np.int8),  # cards that this seat still has to lay; 0 once play has begun
            ("owed", np.int8),  # extra discards owed (R13); 0 in an ordinary turn
            ("may_draw", np.int8),  # 1 exactly when `draw` is legal (R12)
            ("winner", np.int8),  # EMPTY, CUT_OFF, or the seat that has won (R20)
            ("top", np.int8),  # rank on top of the pile, EMPTY if none
            ("pile", np.int8, NUM_RANKS),  # copies of each rank: the pile never decreases (R6)
            ("out_of_play", np.int8, NUM_RANKS),  # copies that have left play (R9, R10)
            ("hand", np.int8, (MAX_SEATS, NUM_RANKS)),  # copies in hand
            ("face_up", np.int8, (MAX_SEATS, NUM_RANKS)),  # copies face up
            ("known", np.int8, (MAX_SEATS, NUM_RANKS)),  # of the hand, what all have seen (R22)
            ("bounds", np.int8, (MAX_SEATS, MAX_HAND)),  # of the rest of the hand, see below
            ("hand_size", np.int8, MAX_SEATS),  # cards in hand
            ("face_up_size", np.int8, MAX_SEATS),  # cards face up
            ("face_down", np.int8, (MAX_SEATS, MAX_FACE_DOWN)),  # ranks; the last is turned first
            ("face_down_size", np.int8, MAX_SEATS),  # cards face down; 0 behind them
            ("draw_pile", np.int8, MAX_DRAW_PILE),  # ranks; the last is drawn first
            ("draw_pile_size", np.int8),  # cards in the draw pile; 0 behind them
        ],
    ),
    align=True,
)
"""Everything of one game. Equal positions are equal records.

`bounds` holds what all may infer of the cards in a seat's hand that not all have seen (R14,
R22): exclusive upper bounds, the tightest first, then 0. The lowest of those cards lies below
the first bound, the next one below the next, and so on; of the others nothing is known.
"""

Record: TypeAlias = Any
"""One `STATE_DTYPE` record: a view into an array of them (NumPy's stubs can't describe it)."""
