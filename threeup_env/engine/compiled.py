"""How this project compiles, so that numba's settings stand once.

numba's on-disk cache looks at the decorated function's own file only: after a
change in a module which that file imports, the old machine code would run, and
a kernel cached without bounds checks would be reused with them on. So the cache
folder is named after everything that matters.
"""

import ast
import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

numba_config: Any = numba.config

OURS: Final = ("threeup_env.", "threeup_agents.")
"""How the names of this project's modules start."""


@cache
def package_root(source: Path) -> Path:
    """The folder that `source`'s outermost package lies in: where its imports start."""
    folder = source.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


@cache
def imported(source: Path) -> frozenset[Path]:
    """The files of the project that `source` imports itself; whole modules only.

    They are looked for where `source`'s own package lies, and where this one does: in a
    clone the two packages lie in different folders, once installed in the same.
    """
    names: list[str] = []
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    roots = {package_root(source), package_root(Path(__file__))}
    paths = [name.replace(".", "/") + ".py" for name in names if name.startswith(OURS)]
    files = (root / path for root in roots for path in paths)
    return frozenset(file for file in files if file.is_file())


def reachable(source: Path) -> Iterator[Path]:
    """Give `source` and every file of the project that it imports, at any remove."""
    waiting, seen = [source], {source}
    while waiting:
        file = waiting.pop()
        yield file
        waiting += imported(file) - seen
        seen |= imported(file)


@cache
def cache_folder(source: Path) -> Path:
    """Name the cache folder of the compiled functions in one file.

    Args:
        source: the file.

    Returns:
        A folder below `NUMBA_CACHE_DIR` if that is set, else beside the sources, else
        (sources that the user may not write to) in the user's own cache. It is named
        after a hash of the file, of all that it imports, and of numba's bounds flag.
    """
    digest = hashlib.sha256(str(numba_config.BOUNDSCHECK).encode())
    for file in sorted(reachable(source)):
        digest.update(file.read_bytes())
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        parent = Path(base)
    elif os.access(source.parent, os.W_OK):
        parent = source.parent / "__pycache__"
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
    numba_config.CACHE_DIR = str(cache_folder(Path(function.__code__.co_filename)))
    try:
        return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))
    finally:
        numba_config.CACHE_DIR = previous


def compiled_part(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, for a function that only compiled ones call.

    It gets no way in from Python and no file in the cache: a first game compiles a
    second sooner.
    """
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("Callable[P, R]", numba.njit(nogil=True, **options)(function))
