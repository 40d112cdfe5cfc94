"""Checks of the arguments that people give; each error names the argument."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt


def is_integer(value: object) -> bool:
    """Tell whether it is a whole number of Python or NumPy; truth values are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(name: str, value: int, most: int = sys.maxsize, least: int = 1) -> None:
    """Check a number of things.

    Raises:
        ValueError: it isn't an integer of `least`..`most`.
    """
    if not is_integer(value) or value < least:
        raise ValueError(f"{name}: expected an integer of at least {least}; got {value!r}")
    if value > most:
        raise ValueError(f"{name}: expected at most {most}; got {value!r}")


def check_positive(name: str, value: float) -> None:
    """Check a number that has to be finite and above 0.

    Raises:
        ValueError: it is something else.
    """
    number = is_integer(value) or isinstance(value, float | np.floating)
    if not number or not 0 < value < float("inf"):
        raise ValueError(f"{name}: expected a finite number above 0; got {value!r}")


def check_index(name: str, value: int, size: int) -> None:
    """Check the number of one of `size` things.

    Raises:
        ValueError: it isn't an integer of 0..`size - 1`.
    """
    if not is_integer(value) or not 0 <= value < size:
        raise ValueError(f"{name}: expected an integer in 0..{size - 1}; got {value!r}")


def check_flag(name: str, value: bool) -> None:
    """Check a truth value.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}: expected True or False; got {value!r}")


def as_array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Make an array of what may be one.

    Raises:
        ValueError: it is ragged.
    """
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected rows of one length; got {values!r}") from None


def check_rows(rows: npt.NDArray[np.int64], num_games: int) -> npt.NDArray[np.int64]:
    """Check numbers of games; gives them as int64 `[K]`.

    Raises:
        ValueError: they don't ascend, or there are no such games.
    """
    given = as_array("rows", rows)
    integers = given.ndim == 1 and (given.dtype.kind in "iu" or not len(given))
    checked: npt.NDArray[np.int64] = given.astype(np.int64) if integers else np.zeros(0, np.int64)
    inside = not len(checked) or (checked[0] >= 0 and checked[-1] < num_games)
    if not integers or not inside or not (np.diff(checked) > 0).all():
        raise ValueError(
            f"rows: expected ascending game numbers in 0..{num_games - 1}; got {rows!r}"
        )
    return checked


def check_int64(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Check integers and how many they are; gives them as int64, the same memory if they were.

    Raises:
        ValueError: another shape, or something else than integers.
    """
    given = as_array(name, values)
    if given.shape == shape and given.dtype == np.int64:
        return given
    if given.shape != shape or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(
            f"{name}: expected integers of shape {shape}; got {given.dtype} of shape {given.shape}"
        )
    return given.astype(np.int64)
