"""How this project compiles, so that numba's settings stand once.

numba's on-disk cache looks at the decorated function's own file only: after a
change in a module which that file imports, the old machine code would run, and
a kernel cached without bounds checks would be reused with them on. So the cache
folder is named after everything that matters. A cache is a convenience: where none
can be kept or read, the code is compiled anew and a warning names the folder.
"""

import ast
import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
from numba.core import caching

P = ParamSpec("P")
R = TypeVar("R")

numba_config: Any = numba.config
numba_cache: Any = caching.FunctionCache

OURS: Final = ("threeup_env.", "threeup_agents.")
"""How the names of this project's modules start."""

_warned: Final[set[str]] = set()


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
def cache_folder(source: Path) -> Path | None:
    """Find a folder that the compiled functions of one file can be kept in.

    Args:
        source: the file.

    Returns:
        A folder below `NUMBA_CACHE_DIR` if that is set, else beside the sources, else
        (sources that the user may not write to) in the user's own cache; if there is no
        writing there, below the system's temporary files, and None without those. It is
        named after a hash of the file, of all that it imports, and of numba's bounds flag.
    """
    digest = hashlib.sha256(str(numba_config.BOUNDSCHECK).encode())
    for file in sorted(reachable(source)):
        digest.update(file.read_bytes())
    name = f"numba-{digest.hexdigest()[:16]}"
    wanted = _wanted_parents(source)
    for parent in wanted:
        if _can_write(parent / name):
            return parent / name
    instead = _temporary_parent()
    if instead is None or not _can_write(instead / name):
        _warn_once("keep", wanted[-1], "it is compiled at each start")
        return None
    _warn_once("keep", wanted[-1], f"it is kept in {instead}")
    return instead / name


def _wanted_parents(source: Path) -> list[Path]:
    if base := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(base)]
    beside = [source.parent / "__pycache__"] if os.access(source.parent, os.W_OK) else []
    return [*beside, Path(os.path.expanduser("~")) / ".cache" / "threeup"]


@cache
def _temporary_parent() -> Path | None:
    """A folder that nobody else may write to: what lies in a cache is run."""
    try:
        if not hasattr(os, "getuid"):  # Windows gives each user a place of his own
            return Path(tempfile.gettempdir()) / "threeup"
        folder = Path(tempfile.gettempdir()) / f"threeup-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if status.st_uid == os.getuid() and status.st_mode & 0o777 == 0o700 and folder.is_dir():
            return folder
        return Path(tempfile.mkdtemp(prefix="threeup-"))
    except OSError:
        return None


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _warn_once(call: str, folder: Path, outcome: str) -> None:
    """Warn a process once, however many functions are concerned."""
    if call not in _warned:
        _warned.add(call)
        message = f"can't {call} compiled code in {folder}: {outcome}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


# numba has no types.
class ForgivingCache(numba_cache):  # type: ignore[misc]
    """numba's cache of one function, which never keeps the function from being compiled.

    What can't be read (a file cut short, say) is thrown away, and compiled and kept anew;
    what can't be kept (on a full disk, say) is compiled in the next process again.
    """

    def load_overload(self, *args: Any) -> Any:
        """Load compiled code; None if there is none, or none that can be read."""
        try:
            return super().load_overload(*args)
        except Exception:  # a damaged pickle may raise anything
            _warn_once("read", Path(self.cache_path), "it is compiled anew")
            try:
                Path(self._cache_file._index_path).unlink(missing_ok=True)
            except OSError:
                self.disable()
            return None

    def save_overload(self, *args: Any) -> None:
        """Keep compiled code, if that is possible."""
        try:
            super().save_overload(*args)
        except OSError as error:
            _warn_once("keep", Path(self.cache_path), error.strerror or str(error))
            self.disable()


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` at its first call, or load it from the cache.

    The function trusts its arguments: indices are not checked (unless
    `NUMBA_BOUNDSCHECK=1`) and it runs without the interpreter lock, so callers
    check first and never share an array between threads that write to it.
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    folder = cache_folder(Path(function.__code__.co_filename))
    if folder is not None and dispatcher is not function:  # as with NUMBA_DISABLE_JIT
        previous = numba_config.CACHE_DIR
        numba_config.CACHE_DIR = str(folder)
        try:
            dispatcher._cache = ForgivingCache(function)
        finally:
            numba_config.CACHE_DIR = previous
    return cast("Callable[P, R]", dispatcher)


def compiled_part(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, for a function that only compiled ones call.

    It gets no way in from Python and no file in the cache: a first game compiles a
    second sooner.
    """
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("Callable[P, R]", numba.njit(nogil=True, **options)(function))
