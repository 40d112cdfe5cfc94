"""How this project compiles: one decorator, so that numba's settings stand once.

numba's on-disk cache looks at the decorated function's own file only: after a
change in a module which that file imports, the old machine code would run, and
a kernel cached without bounds checks would be reused with them on. So the cache
folder is named after everything that matters.
"""

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

numba_config: Any = numba.config


@lru_cache
def cache_folder(directory: Path) -> Path:
    """Name the cache folder of the compiled functions in `directory`.

    Args:
        directory: the folder of the source file.

    Returns:
        A folder below `NUMBA_CACHE_DIR` if that is set, else beside the sources,
        else (sources that the user may not write to) in the user's own cache. It is
        named after a hash of the sources here and in `directory`, and of the bounds flag.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256(str(numba_config.BOUNDSCHECK).encode())
    for source in sorted({*here.glob("*.py"), *directory.glob("*.py")}):
        digest.update(source.read_bytes())
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        parent = Path(base)
    elif os.access(directory, os.W_OK):
        parent = directory / "__pycache__"
    else:
        parent = Path.home() / ".cache" / "threeup"
    return parent / f"numba-{digest.hexdigest()[:16]}"


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` at its first call, or load it from the cache.

    The function trusts its arguments: indices are not checked (unless
    `NUMBA_BOUNDSCHECK=1`) and it runs without the interpreter lock, so callers
    check first and never share an array between threads that write to it.
    """
    previous = numba_config.CACHE_DIR
    numba_config.CACHE_DIR = str(cache_folder(Path(function.__code__.co_filename).parent))
    try:
        return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))
    finally:
        numba_config.CACHE_DIR = previous
