"""Files that are written whole or not at all, and files that are read with a clear error."""

import hashlib
import json
import math
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

try:
    import fcntl
except ImportError:  # Windows: folders aren't locked there
    fcntl = None  # type: ignore[assignment]

LOCK: Final = ".lock"
"""The file in a folder by which a process holds it."""
_SHOWN: Final = 80


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which becomes `path` at the end.

    No two writers are given the same one. After an error, e.g. a full disk, the file that was
    there is still there. The file may be read by whom a plain `open` would let read it.

    Raises:
        OSError: it can't be written; names `path`.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        temporary.touch()
        mode = (path if path.is_file() else temporary).stat().st_mode & 0o777
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        raise _named(error, path) from error
    finally:
        temporary.unlink(missing_ok=True)


def _named(error: Exception, path: Path) -> OSError:
    """The same error about `path`; safetensors has one of its own for a full disk."""
    if isinstance(error, OSError) and error.errno is not None:
        return OSError(error.errno, error.strerror, str(path))
    return OSError(f"{path}: {error}")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: e.g. a full disk; the file that was there is still there.
    """
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def hold(folder: Path | None) -> Iterator[None]:
    """Hold a folder, made if need be, against other runs; None holds nothing.

    The operating system lets go when the process ends, however it ends. Processes that it
    starts don't ask for the folder. A file system or a system without locks holds nothing.

    Raises:
        ValueError: another run holds it; says which process.
        OSError: the folder can't be made or written.
    """
    if folder is None or fcntl is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(_SHOWN).strip() or "another process"
            raise ValueError(
                f"{folder}: expected a folder that no other run works in; {holder} has it"
            ) from None
        except OSError:  # a file system without locks
            pass
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):
                file.truncate(0)


class Field(NamedTuple):
    """What a value in a file must be."""

    words: str
    """In words, e.g. "a finite number"."""
    fits: Callable[[Any], bool]


def number(least: float = -math.inf, above: float = -math.inf) -> Field:
    """A finite number of at least `least` and above `above`."""
    bound = f" of at least {least:g}" if least > -math.inf else ""
    bound += f" above {above:g}" if above > -math.inf else ""
    return Field(
        f"a finite number{bound}",
        lambda value: (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and -_LARGEST <= value <= _LARGEST
            and value >= least
            and value > above
        ),
    )


def whole(least: int = 0, most: int = 2**63 - 1) -> Field:
    """An integer from `least` to `most`."""
    return Field(
        f"an integer from {least} to {most}",
        lambda value: type(value) is int and least <= value <= most,
    )


def one_of(*values: Any) -> Field:
    """One of these values."""
    return Field(f"one of {values}", lambda value: any(_equal(value, known) for known in values))


def list_of(kind: Field, least: int = 0) -> Field:
    """A list, each of its elements fitting."""
    size = f" of at least {least}" if least else ""
    return Field(
        f"a list{size}, each {kind.words}",
        lambda value: (
            isinstance(value, list) and len(value) >= least and all(map(kind.fits, value))
        ),
    )


def object_of(fields: Mapping[str, Field]) -> Field:
    """A JSON object that has these fields, and perhaps others."""
    return Field(
        f"an object with {', '.join(fields)}",
        lambda value: (
            isinstance(value, dict)
            and all(name in value and field.fits(value[name]) for name, field in fields.items())
        ),
    )


def optional(kind: Field) -> Field:
    """Null, or what fits."""
    return Field(f"null or {kind.words}", lambda value: value is None or kind.fits(value))


TEXT: Final = Field("a text", lambda value: isinstance(value, str))
OBJECT: Final = Field("an object", lambda value: isinstance(value, dict))
LIST: Final = Field("a list", lambda value: isinstance(value, list))
_LARGEST: Final = 1.7976931348623157e308


def _equal(value: Any, known: Any) -> bool:
    return type(value) is type(known) and bool(value == known)


def check_fields(where: str, found: Any, fields: Mapping[str, Field]) -> None:
    """Check what a file says; other fields than these may be there too.

    Args:
        where: the file, as an error is to name it.
        found: what it says.
        fields: what it must say, by name.

    Raises:
        ValueError: not an object, or a field is missing or something else; names both.
    """
    if not isinstance(found, dict):
        raise ValueError(f"{where}: expected a JSON object; got {type(found).__name__}")
    for name, field in fields.items():
        if name not in found:
            raise ValueError(f"{where}: expected {name}, {field.words}; got none")
        if not field.fits(found[name]):
            got = repr(found[name])
            got = got if len(got) <= _SHOWN else f"{got[:_SHOWN]}..."
            raise ValueError(f"{where}: expected {name}, {field.words}; got {got}")


def dict_of(kind: Field) -> Field:
    """A JSON object, each of its values fitting."""
    return Field(
        f"an object, each of it {kind.words}",
        lambda value: isinstance(value, dict) and all(map(kind.fits, value.values())),
    )


def checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Name the contents of arrays: SHA-256 over their names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is damaged, or has more brackets in each other than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too many brackets in each other") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: there is none, or it is damaged.
    """
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"{path}: expected a JSON file; got none") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a JSON file; {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object; got {type(found).__name__}")
    return found


def check_tensor(where: str, tensors: dict[str, Any], name: str, shape: tuple[int, ...]) -> None:
    """Check one of the tensors that `read_tensors` has given to NumPy.

    Args:
        where: what an error begins with.
        tensors: by name.
        name: the one to check.
        shape: that it must have, as float32.

    Raises:
        ValueError: there is none, another dtype or shape, or a number that isn't finite.
    """
    found = tensors.get(name)
    if found is None or found.shape != shape or found.dtype != np.float32:
        got = "none" if found is None else f"{found.dtype} of shape {found.shape}"
        raise ValueError(f"{where}: expected tensor {name!r}, float32 of shape {shape}; got {got}")
    if not np.isfinite(found).all():
        raise ValueError(f"{where}: expected finite numbers in tensor {name!r}")


def read_tensors(path: Path, what: str, framework: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Read a safetensors file whole; nothing in it is ever executed.

    Args:
        path: the file.
        what: what an error begins with: the file and what was expected of it.
        framework: "numpy" or "pt".

    Returns:
        What its header says, and its tensors by name.

    Raises:
        ValueError: no such file, a damaged one, or one of types that aren't known.
    """
    try:
        with safe_open(path, framework=framework) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
            return file.metadata() or {}, tensors
    except (SafetensorError, OSError, ValueError, TypeError, LookupError, MemoryError) as error:
        raise ValueError(f"{what}; got {error}") from error
