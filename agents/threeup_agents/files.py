"""Files that are written whole or not at all, and JSON that is read with a clear error."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which becomes `path` at the end.

    After an error, e.g. a full disk, the file that was there is still there.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: e.g. a full disk; the file that was there is still there.
    """
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: there is none, or it is damaged.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a JSON file; {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object; got {type(found).__name__}")
    return found
