import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import threeup_agents
from threeup_agents import evaluation
from threeup_agents.arena import ladder
from threeup_agents.players import policy as ppo
from threeup_agents.training.settings import Config
from threeup_env import ACTION_NAMES, observation_fields

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def table_rows(header: str) -> list[list[str]]:
    """The cells of the README table whose first line starts with `header`."""
    lines = README[README.index(f"\n| {header} |") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_first_code_stands_by_line_12() -> None:
    assert README.splitlines().index("```python") < 12


def test_python_blocks_run_and_print_what_is_quoted() -> None:
    scope: dict[str, object] = {}
    for (kind, code), following in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), scope)
        if following[0] == "text":
            assert printed.getvalue() == following[1]


def test_the_observation_table_is_the_layout() -> None:
    listed = [(name.strip("`"), int(size)) for name, size, _ in table_rows("field")]
    parts = {name: part.stop - part.start for name, part in observation_fields(2).items()}
    table = [(name, size) for name, size in parts.items() if "[" not in name]
    block = [(name.replace("0", "i"), size) for name, size in parts.items() if name[-2:] == "0]"]
    assert listed == table + block


def test_the_ladder_is_as_told() -> None:
    (told,) = re.findall(r"ladder alone \((.+?)\)", README)
    everywhere, at_some = told.split(", at ")
    assert tuple(re.findall(r"`([^`]+)`", everywhere)) == ladder.FAST
    sizes, last, deals = re.fullmatch(
        r"2 and 3 players `search:50`; (\d, \d, \d) or (\d) players, ([\d,]+) public deals", at_some
    ).groups()  # type: ignore[union-attr]
    assert [*map(int, sizes.split(", ")), int(last)] == list(ladder.AGENTS)
    beyond = {size: agents[len(ladder.FAST) :] for size, agents in ladder.AGENTS.items()}
    assert beyond == {2: ("search:50",), 3: ("search:50",), 4: (), 6: ()}
    assert int(deals.replace(",", "")) == ladder.DEALS


def test_the_rules_table_has_every_rule_once() -> None:
    assert [row[0] for row in table_rows("id")] == [f"R{n}" for n in range(1, 23)]


def test_actions_named_in_the_readme_exist() -> None:
    paragraph = README[README.index("Actions are") :].split("\n\n")[0]
    assert f"Discrete({len(ACTION_NAMES)})" in paragraph
    named = re.findall(r"`((?:lay|play) [^`]+|draw|flip|pick up)`", paragraph)
    assert set(named) <= set(ACTION_NAMES)
    assert len(named) >= 7


def test_the_agents_table_names_every_spec() -> None:
    assert [row[0].strip("`") for row in table_rows("spec")] == list(threeup_agents.SPECS)


def test_the_temperatures_of_the_shipped_policies_are_stated() -> None:
    (stated,) = re.findall(r"sampled at a temperature of ([\d.]+),", README)
    assert [ppo.shipped(n).temperature for n in range(2, 7)] == [float(stated)] * 5


def test_rules_cited_in_the_code_exist() -> None:
    for path in [*ROOT.glob("threeup_env/**/*.py"), *ROOT.glob("agents/**/*.py")]:
        cited = {int(number) for number in re.findall(r"\bR(\d+)\b", path.read_text())}
        assert cited <= set(range(1, 23)), path


def commands() -> list[str]:
    lines = [line for kind, code in BLOCKS if kind == "bash" for line in code.splitlines()]
    return [line for line in lines if line.startswith(("python ", "threeup "))]


def test_every_option_named_in_the_readme_is_known_to_its_script() -> None:
    for script, config in (("evaluate.py", evaluation.Config), ("train.py", Config)):
        lines = [line for line in commands() if line.split()[1] == script]
        used = {word for line in lines for word in line.split() if word.startswith("--")}
        assert used <= {f"--{field.name.replace('_', '-')}" for field in fields(config)}, script
        assert used


@pytest.mark.slow
def test_the_commands_of_the_readme_run_in_order(tmp_path: Path) -> None:
    for line in commands():
        words = re.sub(r"\b(results|runs)/", rf"{tmp_path}/\1/", line).split()
        start = [] if words[0] == "python" else ["-m", "threeup_agents"]
        command = [sys.executable, *start, *words[1:]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    pairings = json.loads((tmp_path / "results/quick/results.json").read_text())["pairings"]
    trained = {pair["against"]: pair for pair in pairings if pair["agent"].endswith("runs/quick")}
    assert trained["random"]["low"] > 0.5
    assert trained["greedy"]["low"] > 0.5
    assert (tmp_path / "results/game-0.html").stat().st_size > 10_000
