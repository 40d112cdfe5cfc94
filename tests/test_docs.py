import contextlib
import doctest
import io
import json
import re
import subprocess
import sys
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path

import pytest

import threeup_agents
import threeup_env
from docs import generated, pictures
from tests import markdown
from tests.markdown import PAGES, blocks, commands, table_rows
from threeup_agents import evaluation, merge
from threeup_agents.arena import ladder
from threeup_agents.exact import __main__ as exact
from threeup_agents.play import __main__ as play
from threeup_agents.replay import __main__ as replay
from threeup_agents.training.settings import Config
from threeup_env import ACTION_NAMES, observation_fields

ROOT = Path(__file__).parents[1]
README = PAGES["README.md"]
SETTINGS = {
    "evaluate": evaluation.Config,
    "train": Config,
    "merge": merge.Config,
    "play": play.Config,
    "page": replay.Config,
    "exact": exact.Config,
}
"""What reads the options of each command."""

each_page = pytest.mark.parametrize("page", PAGES)


def test_the_first_code_stands_by_line_12() -> None:
    assert README.splitlines().index("```python") < 12


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


@each_page
def test_python_blocks_run_and_print_what_is_quoted(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some save what they make
    scope: dict[str, object] = {}
    for block, following in zip_longest(blocks(page), blocks(page)[1:]):
        if block.kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, page, "exec"), scope)
        if following is not None and following.kind == "text":
            assert printed.getvalue() == following.code


@each_page
def test_every_block_is_of_a_kind_that_is_tested(page: str) -> None:
    known = {"python", "text", "bash", "sh", "{toctree}", "{include}", "{eval-rst}"}
    assert {block.kind for block in blocks(page)} <= known


@each_page
def test_generated_parts_are_as_the_code_and_the_measured_files_say(page: str) -> None:
    assert generated.filled(PAGES[page]) == PAGES[page], "run python -m docs.generated"


def test_the_examples_of_what_makes_the_parts_hold() -> None:
    found = doctest.testmod(generated)
    assert found.failed == 0 < found.attempted


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_as_drawn(name: str) -> None:
    path = pictures.FOLDER / f"{name}.svg"
    assert path.read_text() == pictures.PICTURES[name]() + "\n", "run python -m docs.pictures"
    assert path.stat().st_size < 200_000


def test_every_picture_is_shown() -> None:
    shown = {Path(link).stem for page in PAGES for link in markdown.links(page) if ".svg" in link}
    assert shown == set(pictures.PICTURES)
    assert {path.stem for path in pictures.FOLDER.iterdir()} == set(pictures.PICTURES)


@each_page
def test_links_lead_somewhere(page: str) -> None:
    for link in markdown.links(page):
        name, _, part = link.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), link
        if part:
            target = path.resolve().relative_to(ROOT).as_posix()
            assert part in markdown.anchors(target), link


def test_every_page_stands_in_the_contents_once() -> None:
    listed = [
        name
        for block in blocks("docs/index.md")
        if block.kind == "{toctree}"
        for name in block.code.splitlines()
        if name and not name.startswith(":")
    ]
    names = [Path(page).stem for page in PAGES if page.startswith("docs/")]
    assert sorted(listed) == sorted({*names, "self"} - {"index"})


def test_tests_named_in_the_pages_exist() -> None:
    named = {name for text in PAGES.values() for name in re.findall(r"tests/[\w/]+\.py::\w+", text)}
    assert len(named) > 40
    for name in named:
        path, test = name.split("::")
        assert f"def {test}(" in (ROOT / path).read_text(), name


def test_files_named_in_the_pages_exist() -> None:
    pattern = r"`((?:tests|docs|threeup_env|agents)/[\w/.]+)`"
    for page, text in PAGES.items():
        for name in re.findall(pattern, text):
            assert (ROOT / name).exists(), f"{page}: {name}"


def test_the_api_lists_every_public_name() -> None:
    page = PAGES["docs/api.md"]
    for package in (threeup_env, threeup_agents):
        part = page[page.index(f"currentmodule:: {package.__name__}\n") :]
        for name in package.__all__:
            assert re.search(rf":: {name}$", part, re.MULTILINE), name


def test_the_table_of_extras_is_pyprojects() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    section = text[text.index("[project.optional-dependencies]") :].split("\n\n[")[0]
    declared = re.findall(r"^(\w+) = \[", section, re.MULTILINE)
    assert sorted(generated.EXTRAS) == sorted(["(none)", *(f"[{name}]" for name in declared)])


def test_the_observation_table_is_the_layout() -> None:
    rows = table_rows("docs/observations.md", "field")
    listed = [(name.strip("`"), int(size)) for name, size, _ in rows]
    parts = {name: part.stop - part.start for name, part in observation_fields(2).items()}
    table = [(name, size) for name, size in parts.items() if "[" not in name]
    block = [(name.replace("0", "i"), size) for name, size in parts.items() if name[-2:] == "0]"]
    assert listed == table + block


def test_the_ladder_is_as_told() -> None:
    (told,) = re.findall(r"shipped ladder \((.+?)\)", PAGES["docs/evaluate.md"])
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
    assert [row[0] for row in table_rows("docs/rules.md", "id")] == [f"R{n}" for n in range(1, 23)]


def test_actions_named_in_the_pages_exist() -> None:
    text = PAGES["docs/observations.md"]
    paragraph = text[text.index("Actions are") :].split("\n\n")[0]
    assert f"Discrete({len(ACTION_NAMES)})" in paragraph
    named = re.findall(r"`((?:lay|play) [^`]+|draw|flip|pick up)`", paragraph)
    assert set(named) <= set(ACTION_NAMES)
    assert len(named) >= 7


def test_the_agents_table_names_every_spec() -> None:
    assert [row[0].strip("`") for row in table_rows("docs/agents.md", "spec")] == list(
        threeup_agents.SPECS
    )


def test_rules_cited_in_the_code_exist() -> None:
    for path in [*ROOT.glob("threeup_env/**/*.py"), *ROOT.glob("agents/**/*.py")]:
        cited = {int(number) for number in re.findall(r"\bR(\d+)\b", path.read_text())}
        assert cited <= set(range(1, 23)), path


@each_page
def test_options_named_in_commands_are_known(page: str) -> None:
    for line in commands(page, "bash", "sh"):
        words = line.split()
        if words[1] == "-m":
            continue  # a script of the tests, which reads its own options
        name = words[1].removesuffix(".py") if words[0] == "python" else words[1]
        used = {word for word in words if word.startswith("--")}
        assert used <= {f"--{field.name.replace('_', '-')}" for field in fields(SETTINGS[name])}


@pytest.mark.slow
@each_page
def test_commands_run_in_order(page: str, tmp_path: Path) -> None:
    for line in commands(page, "bash"):
        words = re.sub(r"\b(results|runs)/", rf"{tmp_path}/\1/", line).split()
        start = [] if words[0] == "python" else ["-m", "threeup_agents"]
        command = [sys.executable, *start, *words[1:]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    if page == "README.md":
        check_quick_run(tmp_path)


def check_quick_run(folder: Path) -> None:
    pairings = json.loads((folder / "results/quick/results.json").read_text())["pairings"]
    trained = {pair["against"]: pair for pair in pairings if pair["agent"].endswith("runs/quick")}
    assert trained["random"]["low"] > 0.5
    assert trained["greedy"]["low"] > 0.5
    assert (folder / "results/game-0.html").stat().st_size > 10_000
