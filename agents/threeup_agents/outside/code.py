"""Agents that a person's Python code gives: `mine.py:Mine?depth=3`, `package.module:make_agent`.

Naming a file or module runs it, as importing does.
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl

import cloudpickle

from threeup_agents.outside.functions import agent_of
from threeup_env.agent import Agent
from threeup_env.engine.compiled import OURS, package_root, reachable

_PRIVATE: Final = "threeup_agent_"
_INSTALLED: Final = ("site-packages", "dist-packages")
_siblings: Final[dict[str, dict[str, ModuleType]]] = {}
"""What files have imported from their own folder: two agents may both have a `model.py`."""
_digests: Final[dict[str, str]] = {}
"""Of the files of modules, when they were first asked for here."""


@dataclass(frozen=True)
class Code:
    """A place in Python code."""

    place: str
    """A file that ends in .py, or a module."""
    name: str
    """What is meant there."""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """Whether it is a file, there or not; else a module."""
        return self.place.endswith(".py")


def parse(spec: str) -> Code | None:
    """Read a spec of code; None for other specs.

    The values of arguments are integers, floats, true, false, or else texts.

    Raises:
        ValueError: arguments that can't be read, or one given twice.

    Example:
        >>> parse("mine.py:Mine?depth=3&name=x&greedy=true")
        Code(place='mine.py', name='Mine', arguments={'depth': 3, 'name': 'x', 'greedy': True})
        >>> parse("search:200") is None
        True
    """
    path, question, query = spec.partition("?")
    place, _, name = path.rpartition(":")
    is_module = all(part.isidentifier() for part in place.split("."))
    if not name.isidentifier() or not (place.endswith(".py") or is_module):
        return None
    arguments: dict[str, Any] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if question else []
    except ValueError:
        raise ValueError(
            f"agent {spec!r}: expected arguments such as ?depth=3&width=8; got {query!r}"
        ) from None
    for key, text in pairs:
        if key in arguments:
            raise ValueError(f"agent {spec!r}: expected each argument once; got {key!r} again")
        arguments[key] = _value(text)
    return Code(place, name, arguments)


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            if any(map(str.isdigit, text)):  # "inf" and "nan" are texts
                return kind(text)
    return text


def make(code: Code, seed: int) -> Agent:
    """Make the agent that a place in code gives, see `agent_of`.

    The folder of a file, for a module the current one, can be imported from while the code is
    imported and the agent made. A file that has changed is imported anew, a module can't be.

    Raises:
        ValueError: no such file, module or name; it raised; or it gives no agent.
    """
    where = f"agent '{code.place}:{code.name}'"
    with _imported(code, where) as module:
        if not hasattr(module, code.name):
            there = ", ".join(_offers(module)) or "nothing"
            raise ValueError(f"{where}: expected one of {there} in {code.place}; got {code.name!r}")
        try:
            return agent_of(getattr(module, code.name), seed, code.arguments)
        except Exception as error:
            raised = "" if type(error) is ValueError else f"{type(error).__name__}: "
            raise ValueError(f"{where}: {raised}{error}") from error


def source_files(code: Code) -> list[Path]:
    """The file, all that it imports from its own folder or package, and what of this project.

    An argument that is the path of a file counts too: it may hold weights.

    Raises:
        ValueError: no such file or module.
    """
    if code.is_file:
        own = own_files(Path(code.place).resolve(), Path(code.place).resolve().parent)
    else:
        with _imported(code, f"agent '{code.place}:{code.name}'") as module:
            own = own_files(Path(str(module.__file__)))
    named = {Path(value) for value in code.arguments.values() if isinstance(value, str) and value}
    return [*sorted(own), *sorted(file for file in named if file.is_file())]


def own_files(source: Path, root: Path | None = None) -> set[Path]:
    """A file, what it imports below `root`, at any remove, and what of this project.

    Without a root it is the folder that the file's package lies in, of which then that package
    alone counts; beside an installed module none does.
    """
    source = source.resolve()
    folder = package_root(source) if root is None else root
    package = "" if source.parent == folder else source.relative_to(folder).parts[0]
    waiting, seen = [source], {source}
    while waiting and not (folder.name in _INSTALLED and not package):
        file = waiting.pop()
        inner = {
            found
            for name in _imported_names(file, folder)
            if not package or name.partition(".")[0] == package
            for found in _files_of(name, folder)
        }
        waiting += inner - seen
        seen |= inner
    return seen | {file for one in seen for file in reachable(one)}


@contextmanager
def _imported(code: Code, where: str) -> Iterator[ModuleType]:
    """Import a file or module; while it is used, what lies beside it can be imported."""
    path = Path(code.place).resolve()
    if code.is_file and not path.is_file():
        raise ValueError(f"{where}: expected the Python file {code.place!r}; there is none")
    with ExitStack() as beside:
        try:
            if code.is_file:
                key = _digest(path, own_files(path, path.parent))
                beside.enter_context(_beside_file(path.parent, key))
                module = _from_file(path, key)
            else:
                beside.enter_context(_path_begins(Path.cwd()))
                module = importlib.import_module(code.place)
        except (Exception, SystemExit) as error:
            got = f"{type(error).__name__}: {error}"
            raise ValueError(f"{where}: expected {code.place} to import; got {got}") from error
        if not code.is_file:
            _check_unchanged(module, where)
        yield module


def _check_unchanged(module: ModuleType, where: str) -> None:
    """Refuse a module whose files are others now than when it was imported here."""
    source = Path(str(module.__file__))
    digest = _digest(source, own_files(source))
    if _digests.setdefault(module.__name__, digest) != digest:
        raise ValueError(
            f"{where}: expected the files of {module.__name__} as they were imported; "
            "they have changed since. Start Python anew"
        )


def _digest(path: Path, files: set[Path]) -> str:
    digest = hashlib.sha256(str(path).encode())
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _from_file(path: Path, key: str) -> ModuleType:
    """Import a file under a name that no other file or version of it has."""
    name = f"{_PRIVATE}{key}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    cloudpickle.register_pickle_by_value(module)  # other processes can't import it by its name
    return module


@contextmanager
def _path_begins(folder: Path) -> Iterator[None]:
    """Look for modules in a folder first."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _beside_file(folder: Path, key: str) -> Iterator[None]:
    """Let the modules of a folder be imported, as those of one file.

    Others by the same names are put aside meanwhile, and these afterwards.
    """
    names = {path.stem for path in folder.glob("*.py")}
    names |= {path.parent.name for path in folder.glob("*/__init__.py")}
    names -= set(sys.stdlib_module_names) | {ours.rstrip(".") for ours in OURS}
    aside = _take_out(names)
    sys.modules.update(_siblings.get(key, {}))
    try:
        with _path_begins(folder):
            yield
    finally:
        _siblings[key] = _take_out(names)
        sys.modules.update(aside)


def _take_out(names: set[str]) -> dict[str, ModuleType]:
    """Take modules and all below them out of those imported."""
    found = [name for name in sys.modules if name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in found}


def _offers(module: ModuleType) -> list[str]:
    """What of a module could be meant: its own public classes and functions, and agents."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (hasattr(value, "act") or callable(value))
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def _imported_names(file: Path, root: Path) -> list[str]:
    """Every module that a file may import, in full; `from a import b` may mean a.b."""
    names = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(file.relative_to(root).parts[: -node.level]) if node.level else []
            base += [node.module] if node.module else []
            names += [".".join([*base, *more]) for more in ([], *([a.name] for a in node.names))]
    return names


def _files_of(name: str, root: Path) -> Iterator[Path]:
    """The files that importing a module runs, as far as they lie below `root`."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:i])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if name and file.is_file():
                yield file.resolve()
