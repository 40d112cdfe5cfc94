"""Random numbers inside compiled code: splitmix64 streams, each in a uint64 array `[1]`."""

from typing import Final

import numpy as np
import numpy.typing as npt

from threeup_env.engine.arguments import is_integer
from threeup_env.engine.compiled import compiled

# uint64 with a plain int becomes a signed number in numba, so every constant is a uint64.
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_SHIFT_30: Final = np.uint64(30)
_SHIFT_27: Final = np.uint64(27)
_SHIFT_31: Final = np.uint64(31)
_SHIFT_32: Final = np.uint64(32)
_RANGE: Final = np.uint64(1 << 32)


@compiled
def next_uint64(stream: npt.NDArray[np.uint64]) -> np.uint64:
    """Draw 64 random bits: splitmix64 (Steele, Lea & Flood 2014).

    Args:
        stream: uint64 `[1]`; advanced.
    """
    stream[0] += _GAMMA
    bits: np.uint64 = stream[0]
    bits = (bits ^ (bits >> _SHIFT_30)) * _MIX_1
    bits = (bits ^ (bits >> _SHIFT_27)) * _MIX_2
    mixed: np.uint64 = bits ^ (bits >> _SHIFT_31)
    return mixed


@compiled
def random_below(stream: npt.NDArray[np.uint64], bound: int) -> int:
    """Draw an integer from 0..bound-1, all equally likely (Lemire 2019).

    Args:
        stream: uint64 `[1]`; advanced.
        bound: 1 to 2**32 - 1.
    """
    width = np.uint64(bound)
    product = (next_uint64(stream) >> _SHIFT_32) * width
    low = product % _RANGE
    if low < width:
        unfair = (_RANGE - width) % width
        while low < unfair:
            product = (next_uint64(stream) >> _SHIFT_32) * width
            low = product % _RANGE
    return int(np.int64(product >> _SHIFT_32))


@compiled
def shuffle(stream: npt.NDArray[np.uint64], cards: npt.NDArray[np.int8], size: int) -> None:
    """Shuffle the first `size` entries in place (Fisher & Yates, as Durstenfeld 1964).

    Args:
        stream: uint64 `[1]`; advanced.
        cards: int8 `[size]` or longer.
        size: how many entries take part.
    """
    for last in range(size - 1, 0, -1):
        other = random_below(stream, last + 1)
        card = cards[last]
        cards[last] = cards[other]
        cards[other] = card


DEALS: Final = ()
"""The shuffles of a batch."""
MATCH_DEALS: Final = (0,)
"""The deals of matches."""
MATCH_AGENTS: Final = (1,)
"""The seeds of a match's agents; name and block follow."""
AGENTS: Final = (2,)
"""An agent's choices."""
LEARNER: Final = (3,)
"""The seat of a learner, and random play at the others."""
TRAINING: Final = (4,)
"""The choices of a policy in training, and the order in which it learns from them."""
STATISTICS: Final = (5,)
"""Resampling in the analysis of a round robin; its use follows."""
WORLDS: Final = (6,)
"""Worlds that agree with what a seat knows."""
MATCH_SEATS: Final = (7,)
"""Who sits where at a mixed table; stream i is deal i's."""
PURPOSES: Final = (
    *(DEALS, MATCH_DEALS, MATCH_AGENTS, AGENTS),
    *(LEARNER, TRAINING, STATISTICS, WORLDS, MATCH_SEATS),
)
"""What streams are for. People give the same seed to a game, to its players and to a match,
and a player's stream must tell nothing of the deal, so each purpose has streams of its own."""


def streams(seed: int, count: int, purpose: tuple[int, ...] = DEALS) -> npt.NDArray[np.uint64]:
    """Start `count` independent streams from one seed; uint64 `[count]`.

    Stream i depends on the seed, the purpose and i alone, not on `count`.

    Raises:
        ValueError: a negative seed, or none that is an integer.

    Example:
        >>> bool((streams(7, 100)[:3] == streams(7, 3)).all())
        True
    """
    if not is_integer(seed) or seed < 0:
        raise ValueError(f"seed: expected an integer of at least 0; got {seed!r}")
    sequence = np.random.SeedSequence(seed, spawn_key=purpose)
    return sequence.generate_state(count, np.uint64).astype(np.uint64)
