import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_CELLS = 25
QUICK = {"01_rules_tour"}
# Notebooks call what the packages offer; what they would have to program belongs there.
LOGIC = (
    ast.FunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.For,
    ast.While,
    ast.If,
    ast.Try,
)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call] # it has no types


def code_of(path: Path) -> ast.Module:
    return ast.parse(
        "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    )


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_only_calls(path: Path) -> None:
    assert len(read(path).cells) <= MAX_CELLS
    assert not [node.lineno for node in ast.walk(code_of(path)) if isinstance(node, LOGIC)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_imports_public_names_only(path: Path) -> None:
    for node in ast.walk(code_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert not [name.name for name in node.names if name.name.startswith("_")]
        assert not (isinstance(node, ast.Attribute) and node.attr.startswith("_"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_kept_only_where_they_are_the_point(path: Path) -> None:
    outputs = [cell for cell in read(path).cells if cell.cell_type == "code" and cell.outputs]
    assert not outputs or path.stem == "03_results"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in QUICK else pytest.mark.slow, id=path.stem)
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs(path: Path) -> None:
    resources = {"metadata": {"path": str(ROOT)}}
    notebook = read(path)
    NotebookClient(notebook, timeout=180, kernel_name="python3", resources=resources).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
