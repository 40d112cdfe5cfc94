import ast
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebook_checks import CHECKS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MAX_CELLS = 25
MAX_SECONDS = 180
QUICK = {"01_rules_tour"}
# Notebooks call what the packages offer; what they would have to program belongs there.
LOGIC = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.If, ast.Try, ast.Assert)
AGENT = (ast.FunctionDef, ast.ClassDef)
"""What an agent is written in; 02 teaches that."""
PICTURES = {"image/svg+xml", "image/png", "text/html"}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call] # it has no types


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def code_of(path: Path) -> ast.Module:
    return ast.parse("\n".join(cell.source for cell in code_cells(read(path))))


def test_notebooks_are_numbered() -> None:
    assert [path.stem[:3] for path in NOTEBOOKS] == [f"{i + 1:02}_" for i in range(len(NOTEBOOKS))]
    assert len(NOTEBOOKS) == 5


@each_notebook
def test_a_notebook_is_short_and_only_calls(path: Path) -> None:
    assert len(read(path).cells) <= MAX_CELLS
    logic = [node for node in ast.walk(code_of(path)) if isinstance(node, LOGIC)]
    if path.stem == "02_first_agent":
        logic = [node for node in logic if not isinstance(node, AGENT)]
    assert not [ast.unparse(node) for node in logic]


def test_the_first_agent_is_written_in_ten_lines() -> None:
    (agent,) = [node for node in code_of(FOLDER / "02_first_agent.ipynb").body if is_class(node)]
    docstrings = [node for node in ast.walk(agent) if is_docstring(node)]
    lines = [line for line in ast.unparse(agent).splitlines() if line.strip()]
    assert len(lines) - len(docstrings) <= 10


def is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@each_notebook
def test_a_notebook_imports_public_names_only(path: Path) -> None:
    for node in ast.walk(code_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert not [name.name for name in node.names if name.name.startswith("_")]
        assert not (isinstance(node, ast.Attribute) and node.attr.startswith("_"))


@each_notebook
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    assert not [cell for cell in code_cells(read(path)) if cell.outputs or cell.execution_count]


@each_notebook
def test_links_between_notebooks_lead_somewhere(path: Path) -> None:
    words = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    for target in re.findall(r"\]\(([^)]+)\)", words):
        assert (FOLDER / target).is_file(), target


def insert_checks(notebook: Any, checks: list[tuple[str, str]]) -> None:
    """Put each check behind the next cell with its words."""
    at = 0
    for words, check in checks:
        is_next = (i for i in range(at, len(notebook.cells)) if has(notebook.cells[i], words))
        at = next(is_next) + 1
        cell = nbformat.v4.new_code_cell(textwrap.dedent(check))  # type: ignore[no-untyped-call]
        notebook.cells.insert(at, cell)
        at += 1


def has(cell: Any, words: str) -> bool:
    return cell.cell_type == "code" and words in cell.source


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in QUICK else pytest.mark.slow, id=path.stem)
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_and_ends_in_something_to_look_at(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREEUP_FAST", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "agents"))))
    notebook = read(path)
    cells = code_cells(notebook)
    insert_checks(notebook, CHECKS[path.stem])
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=MAX_SECONDS, resources=resources).execute()
    assert all(cell.execution_count for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert [output for output in cells[-1].outputs if PICTURES & set(output.get("data", {}))]
