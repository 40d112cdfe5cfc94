"""The games of one line-up as columns: what a match leaves behind."""

import tokenize
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from scipy import stats

from threeup_agents.files import atomic_write, checksum

_SUMMED: Final = ("seconds", "decisions")
_CHECKSUM: Final = "checksum"
_MADE_WITH: Final = "made_with"
DAMAGED: Final = (
    *(BadZipFile, zlib.error, tokenize.TokenError, RuntimeError, SyntaxError),
    *(EOFError, LookupError, ValueError, TypeError, OSError, MemoryError, OverflowError),
)
"""What reading a damaged `.npz` file may raise, by the byte that is wrong."""


@dataclass(frozen=True)
class Match:
    """The games of one line-up, sorted by deal and rotation; a row a game."""

    line_up: tuple[str, ...]
    """Names of the agents, `[S]`."""
    deal: npt.NDArray[np.int64]
    """Number of the deal, `[B]`."""
    rotation: npt.NDArray[np.int8]
    """How far the deal's first seating is turned, `[B]`."""
    seat: npt.NDArray[np.int8]
    """Seat of each line-up place, `[B, S]`."""
    deal_hash: npt.NDArray[np.int64]
    """Names the cards as dealt, `[B]`."""
    course: npt.NDArray[np.uint64]
    """Equal for games of the same deal and the same actions; 0: not kept; `[B]`."""
    win_share: npt.NDArray[np.float64]
    """By line-up place: 1 for the winner, 0 for the others, and for all if cut off; `[B, S]`."""
    cards_left: npt.NDArray[np.int8]
    """Cards that each line-up place has left, `[B, S]`."""
    length: npt.NDArray[np.int32]
    """Actions taken, `[B]`."""
    cut_off: npt.NDArray[np.bool_]
    """True where the step limit ended the game, `[B]`."""
    seconds: npt.NDArray[np.float64]
    """Time that an agent took, all its places together, at the first of them; `[S]`."""
    decisions: npt.NDArray[np.int64]
    """Actions that it chose, likewise; `[S]`."""

    @property
    def num_players(self) -> int:
        """Seats at the table, S."""
        return len(self.line_up)

    @property
    def num_deals(self) -> int:
        """Deals played, D; each under every rotation."""
        return len(self.deal) // self.num_players

    @property
    def place(self) -> npt.NDArray[np.float64]:
        """1 for the fewest cards left, equals sharing the mean of their places; `[B, S]`.

        In a game that was cut off all share one place: cards left order nobody (R21).
        """
        ordered = np.where(self.cut_off[:, None], 0, self.cards_left)
        places: npt.NDArray[np.float64] = stats.rankdata(ordered, axis=1)
        return places

    def by_deal(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The mean of a column over the rotations of each deal; `[D, ...]`."""
        shape = (-1, self.num_players, *values.shape[1:])
        means: npt.NDArray[np.float64] = values.reshape(shape).mean(axis=1)
        return means

    def by_seat(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Turn a column by line-up place into one by seat; `[B, S]`."""
        return np.take_along_axis(values, np.argsort(self.seat, axis=1), axis=1)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """A table with a row a game, by seat: `pandas.DataFrame(match.columns())`."""
        names = np.tile(np.array(self.line_up), (len(self.deal), 1))
        table: dict[str, npt.NDArray[Any]] = {
            "deal": self.deal,
            "rotation": self.rotation,
            "deal_hash": self.deal_hash,
        }
        for name, values in (
            ("agent", names),
            ("win_share", self.win_share),
            ("cards_left", self.cards_left),
        ):
            by_seat = self.by_seat(values)
            table |= {f"{name}_{seat}": by_seat[:, seat] for seat in range(self.num_players)}
        return table | {"length": self.length, "cut_off": self.cut_off, "course": self.course}

    @classmethod
    def concatenate(cls, parts: Sequence["Match"]) -> "Match":
        """Put parts of one line-up's games together, in the order given."""
        arrays = {}
        for field in fields(cls)[1:]:
            columns = [getattr(part, field.name) for part in parts]
            joined = np.sum(columns, axis=0) if field.name in _SUMMED else np.concatenate(columns)
            arrays[field.name] = joined
        return cls(parts[0].line_up, **arrays)

    def save(self, path: Path, made_with: str = "") -> None:
        """Write to an `.npz` file, whole or not at all.

        Args:
            path: the file.
            made_with: kept beside the games, see `load_made`.

        Raises:
            OSError: e.g. a full disk; then no file is left behind.
        """
        arrays: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        arrays["line_up"] = np.array(self.line_up)
        arrays[_MADE_WITH] = np.array(made_with)
        arrays[_CHECKSUM] = np.array(checksum(arrays))
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Match":
        """Read what `save` wrote; nothing in it is ever executed.

        Raises:
            ValueError: the file is damaged or not one of these.
        """
        return cls.load_made(path)[0]

    @classmethod
    def load_made(cls, path: Path) -> tuple["Match", str]:
        """As `load`; also what the games were made with."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as columns:
                names = (*(field.name for field in fields(cls)), _MADE_WITH)
                arrays = {name: columns[name] for name in names}
                kept = columns[_CHECKSUM].item()
            if kept != checksum(arrays):
                raise ValueError("its checksum is another")
            made_with = str(arrays.pop(_MADE_WITH))
            line_up = tuple(arrays.pop("line_up").tolist())
            match = cls(line_up, **arrays)
            match.check()
        except DAMAGED as error:
            raise ValueError(
                f"{path}: expected the games of a match; the file is damaged ({error}). "
                "Delete it and run the same command to play them again"
            ) from error
        return match, made_with

    def check(self) -> None:
        """Check that the columns agree with each other.

        Raises:
            ValueError: they don't, e.g. because places were swapped in one of them.
        """
        seats = self.num_players
        shapes = {self.win_share.shape, self.cards_left.shape}
        if shapes != {(len(self.deal), seats)} or len(self.deal) % seats:
            raise ValueError(f"expected {seats} places in {len(self.deal)} games; got {shapes}")
        if not np.array_equal(
            np.sort(self.seat, axis=1), np.tile(np.arange(seats), (len(self.deal), 1))
        ):
            raise ValueError("expected every place at a seat of its own")
        empty = self.cards_left == 0
        if not np.array_equal(self.win_share, empty):
            raise ValueError("expected the win where no cards are left")
        if (empty.sum(axis=1) != ~self.cut_off).any():
            raise ValueError("expected a winner without cards in games that were not cut off")
