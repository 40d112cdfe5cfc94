"""What all commands do alike: read their options, and refuse what is wrong with them.

A refusal is one line, *command: where: expected X; got Y*, and the exit code `USAGE_ERROR`.
"""

import difflib
import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import MISSING, fields
from itertools import repeat
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro

USAGE_ERROR: Final = 2
_Config = TypeVar("_Config")


def read(
    config: type[_Config],
    arguments: Sequence[str],
    prog: str,
    description: str | None,
    default: _Config | None = None,
) -> _Config:
    """Read a command's options into its dataclass.

    Args:
        config: the dataclass.
        arguments: what follows the command's name.
        prog: what refusals and `--help` call the command.
        description: what `--help` begins with; its indented lines stay lines of their own.
        default: values of the options that aren't given.

    Raises:
        SystemExit: 0 after `--help`, `USAGE_ERROR` after a refusal.
    """
    given: dict[str, Any] = {} if default is None else {"default": default}
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            options: _Config = tyro.cli(
                config, args=list(arguments), description=description, prog=prog, **given
            )
    except SystemExit as end:
        if not end.code:
            raise
        wrong = _wrong(config, arguments) or _unframed(said.getvalue())
        raise SystemExit(refuse(prog, wrong)) from None
    sys.stderr.write(said.getvalue())  # warnings
    return options


def refuse(prog: str, error: object) -> int:
    """Say on standard error what is wrong; gives `USAGE_ERROR`."""
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        error = f"{error.filename}: expected a file or folder; got none"
    print(f"{prog}: {error}", file=sys.stderr)
    return USAGE_ERROR


def _wrong(config: Any, arguments: Sequence[str]) -> str | None:
    """What is wrong with options that were refused; None if only their parser can tell."""
    hints = get_type_hints(config, include_extras=True)
    kinds = get_type_hints(config)
    places = [name for name in hints if tyro.conf.Positional in get_args(hints[name])]
    kinds |= {f"no_{name}": bool for name, kind in kinds.items() if kind is bool}
    (_, free), *options = _options(arguments)
    for name, values in options:
        if name not in kinds or name in places:
            near = difflib.get_close_matches(name, set(kinds) - set(places), n=1)
            hint = "".join(f" such as {_option(one)}" for one in near)
            return f"options: expected those of --help{hint}; got {_option(name)!r}"
        taken = _taken(kinds[name])
        wanted = repeat(kinds[name]) if taken is None else taken
        for kind, value in zip(wanted, values, strict=False):
            if not _fits(kind, value):
                return f"{name}: expected {_kind_words(kind)}; got {value!r}"
        size = len(values) if taken is None else len(taken)
        if len(values) < size:
            needed = _kind_words(kinds[name]) if size == 1 else f"{size} values"
            return f"{name}: expected {needed}; got {len(values) or 'none'}"
        free += values[size:]
    return _wrong_places(config, places, free, [name for name, _ in options])


def _wrong_places(
    config: Any, places: Sequence[str], free: Sequence[str], named: Sequence[str]
) -> str | None:
    """What is wrong with the words that belong to no option, and which option is missing."""
    kinds = get_type_hints(config)
    if len(free) > len(places) and all(_taken(kinds[name]) for name in places):
        return f"options: expected --NAME before each value; got {free[len(places)]!r}"
    for field in fields(config):
        is_given = bool(free) if field.name in places else field.name in named
        if field.default is field.default_factory is MISSING and not is_given:
            return f"{field.name}: expected a value; got none"
    return None


def _options(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each option's field and the words up to the next one; the first are before any option."""
    options: list[tuple[str, list[str]]] = [("", [])]
    for word in arguments:
        if word.startswith("--"):
            name, is_joined, value = word[2:].partition("=")
            options.append((name.replace("-", "_"), [value] if is_joined else []))
        else:
            options[-1][1].append(word)
    return options


def _option(name: str) -> str:
    """How an option is written."""
    return f"--{name.replace('_', '-')}"


def _taken(kind: Any) -> list[Any] | None:
    """The type of each word that an option takes; None for any number of words."""
    parts = get_args(kind)
    if get_origin(kind) is tuple:
        return None if ... in parts else list(parts)
    if get_origin(kind) in (Union, UnionType):
        several = [found for found in map(_taken, parts) if found is None or len(found) != 1]
        return several[0] if several else [kind]
    return [] if kind is bool else [kind]


def _fits(kind: Any, value: str) -> bool:
    """Whether a word can be read as a type, or as one of those that it is made of."""
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if parts := get_args(kind):
        return any(_fits(part, value) for part in parts)
    if kind is type(None):
        return value == "None"
    try:
        kind(value)
    except (TypeError, ValueError):
        return False
    return True


def _kind_words(kind: Any) -> str:
    """What a type is to whoever writes an option."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    words = {int: "an integer", float: "a number"}
    known = [words[part] for part in (kind, *get_args(kind)) if part in words]
    return known[0] if known else "a value"


def _unframed(said: str) -> str:
    """The parser's own words in one line, without the frame and what stands below its rule."""
    lines = [line.strip("│ ") for line in said.splitlines() if not line.startswith(("╭", "╰"))]
    kept = next((i for i, line in enumerate(lines) if line and not line.strip("─")), len(lines))
    return " ".join(lines[:kept])
