import re
import shlex
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from threeup_agents import __main__ as threeup
from threeup_agents import specs
from threeup_agents.commands import USAGE_ERROR, read, refuse

PARTS: dict[str, Any] = {
    name: import_module(module) for name, (module, _) in threeup.COMMANDS.items()
}
SCRIPTS = {"evaluate.py": "evaluate", "train.py": "train"}
TEXTS = {name: part.__doc__ for name, part in PARTS.items()} | {"threeup": threeup.HELP}


def examples(text: str) -> list[str]:
    """The lines of a text that call the command."""
    return re.findall(r"^ +(threeup (?:play|[a-z]+ .*[^.\n]))$", text, re.MULTILINE)


def main(command: str, *arguments: str) -> int:
    """What a command or a script ends with."""
    try:
        if command in SCRIPTS:
            return int(PARTS[SCRIPTS[command]].main(list(arguments), prog=command))
        return threeup.main([*command.split()[1:], *arguments])
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("width", ["80", "120"])
@pytest.mark.parametrize("command", ["threeup", *(f"threeup {name}" for name in PARTS), *SCRIPTS])
def test_help_keeps_each_example_on_a_line_of_its_own(
    command: str, width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(command, "--help") == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    calls = examples(TEXTS[SCRIPTS.get(command, command.split()[-1])])
    assert len(calls) >= 3
    assert set(calls) <= set(lines)


@pytest.mark.parametrize("call", [call for text in TEXTS.values() for call in examples(text)])
def test_an_example_has_options_that_its_command_reads(call: str) -> None:
    _, command, *arguments = shlex.split(call)
    assert read(PARTS[command].Config, arguments, command, None)


KNOWN = ", ".join(specs.SPECS)
REFUSED = [
    ("threeup", "nope", "command: expected one of " + ", ".join(PARTS) + "; got 'nope'"),
    ("threeup evaluate", "--bogus 1", "options: expected those of --help; got '--bogus'"),
    (
        "threeup evaluate",
        "--deal 5",
        "options: expected those of --help such as --deals; got '--deal'",
    ),
    ("threeup evaluate", "--deals x", "deals: expected an integer; got 'x'"),
    ("threeup evaluate", "--deals=x", "deals: expected an integer; got 'x'"),
    ("threeup evaluate", "--deals --seed 1", "deals: expected an integer; got none"),
    ("threeup evaluate", "--deals 1", "deals: expected an integer of at least 2; got 1"),
    ("threeup evaluate", "--patience long", "patience: expected a number; got 'long'"),
    ("threeup evaluate", "--deal-set own", "deal_set: expected one of fresh, public; got 'own'"),
    ("threeup evaluate", "greedy", "options: expected --NAME before each value; got 'greedy'"),
    ("threeup evaluate", "--no-mixed 3", "options: expected --NAME before each value; got '3'"),
    ("threeup evaluate", "--deals 3 4", "options: expected --NAME before each value; got '4'"),
    ("threeup evaluate", "--replay none", "replay: expected 2 values; got 1"),
    ("threeup evaluate", "--replay none x", "replay: expected an integer; got 'x'"),
    ("threeup evaluate", "--replay none 3", "none/results.json: expected a JSON file; got none"),
    ("threeup evaluate", "--agents me greedy", f"agent: expected one of {KNOWN}; got 'me'"),
    ("evaluate.py", "--out", "out: expected a value; got none"),
    ("threeup merge", "one two", "out: expected a value; got none"),
    ("threeup merge", "--out both", "folders: expected a value; got none"),
    ("threeup merge", "one two --out both", "one/settings.json: expected a JSON file; got none"),
    ("threeup train", "--bogus", "options: expected those of --help; got '--bogus'"),
    ("threeup train", "--preset slow", "preset: expected one of quick, full; got 'slow'"),
    ("threeup train", "--decisions many", "decisions: expected an integer; got 'many'"),
    ("threeup train", "--decisions", "decisions: expected an integer; got none"),
    ("threeup train", "--hidden 64 x", "hidden: expected an integer; got 'x'"),
    ("threeup train", "--seed -1", "seed: expected at least 0; got -1"),
    ("threeup train", "--resume none", "resume: expected a run folder; got 'none'"),
    ("train.py", "--learning-rate high", "learning_rate: expected a number; got 'high'"),
    ("threeup play", "--seat x", "seat: expected an integer; got 'x'"),
    ("threeup play", "--opponents me", f"agent: expected one of {KNOWN}; got 'me'"),
    ("threeup play", "--resume none", "none: expected a file or folder; got none"),
    ("threeup exact", "--iterations 1.5", "iterations: expected an integer; got '1.5'"),
    ("threeup exact", "--agents me", f"agent: expected one of {KNOWN}; got 'me'"),
    ("threeup page", "", "source: expected a value; got none"),
    ("threeup page", "one two", "options: expected --NAME before each value; got 'two'"),
    ("threeup page", "--explain one --game x", "game: expected an integer; got 'x'"),
    ("threeup page", "none.json", "none.json: expected a file or folder; got none"),
]


@pytest.mark.parametrize(
    ("command", "arguments", "expected"),
    [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in REFUSED],
)
def test_every_command_refuses_in_one_line(
    command: str,
    arguments: str,
    expected: str,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command, *arguments.split()) == USAGE_ERROR == 2
    assert capsys.readouterr().err == f"{command}: {expected}\n"


@dataclass(frozen=True)
class Odd:
    """Options of a kind that only their parser knows."""

    pairs: dict[str, int]


def test_what_only_the_parser_knows_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        read(Odd, ["--pairs", "one"], "odd", None)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"odd: [^│─]*--pairs[^│─]*", line)


def test_an_error_of_the_system_is_told_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert refuse("odd", PermissionError(13, "Permission denied", "kept")) == USAGE_ERROR
    assert capsys.readouterr().err == "odd: [Errno 13] Permission denied: 'kept'\n"
