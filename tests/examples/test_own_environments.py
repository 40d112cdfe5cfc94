"""Each recipe is tested in an environment of its own, with the versions that its head pins.

The environments are kept in THREEUP_EXAMPLES, or in the user's cache; where the running one
already has what a recipe pins, it is taken. `python -m tests.examples.test_own_environments`
runs them too, all or those named, and writes what they note, for the table of the recipes.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = sorted(path for path in (ROOT / "examples").glob("*.py"))
TOOLS = ("hypothesis", "pandas", "pytest", "pytest-benchmark", "pytest-timeout", "pytest-xdist")
"""What the tests need anywhere."""
ROWS = ROOT / "docs" / "results" / "recipes.json"
STEM = Path(__file__).stem


def pins(recipe: Path) -> list[str]:
    """The requirements at its head (PEP 723), this project left out."""
    found = re.search(r"^# dependencies = \[(.*)\]$", recipe.read_text(), re.MULTILINE)
    assert found is not None, recipe.name
    return [each for each in re.findall(r'"([^"]+)"', found[1]) if each != "threeup"]


def its_tests(recipe: Path) -> str:
    """Its test file."""
    return f"tests/examples/test_{recipe.name}"


def is_here(pin: str) -> bool:
    """Whether the running environment has a requirement."""
    name, _, wanted = pin.partition("==")
    try:
        return version(name.partition("[")[0]).partition("+")[0] == wanted
    except PackageNotFoundError:
        return False


def python_with(requirements: list[str]) -> Path:
    """The Python of an environment that has these requirements; skips where there is none."""
    if all(map(is_here, requirements)):
        return Path(sys.executable)
    cache = os.environ.get("THREEUP_EXAMPLES") or Path.home() / ".cache" / "threeup" / "examples"
    key = hashlib.sha256(repr((sys.version, TOOLS, requirements)).encode()).hexdigest()[:12]
    folder = Path(cache) / key
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # PyTorch alone first: whoever has set pip up for its CPU build gets that one.
        first = [each for each in requirements if each.startswith("torch==")]
        for step in filter(None, (first, [*requirements, *TOOLS, "-e", str(ROOT)])):
            done = subprocess.run([*pip, *step], capture_output=True, text=True)
            if done.returncode:
                reason = (done.stderr.strip() or "?").splitlines()[-1]
                pytest.skip(f"platform: can't install {' '.join(requirements)}: {reason}")
        (folder / "complete").touch()
    return python


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_pinned_and_tested(recipe: Path) -> None:
    assert len(recipe.read_text().splitlines()) <= 150
    assert all("==" in pin for pin in pins(recipe))
    assert (ROOT / its_tests(recipe)).is_file()


def test_the_table_of_figures_is_of_every_recipe_with_what_its_head_pins() -> None:
    rows = json.loads(ROWS.read_text())
    assert [row["recipe"] for row in rows] == [recipe.name for recipe in RECIPES]
    for row, recipe in zip(rows, RECIPES, strict=True):
        for pin in pins(recipe):
            name, _, wanted = pin.partition("==")
            found = row["versions"][name.partition("[")[0]].partition("+")[0]
            assert found == wanted, f"{recipe.name}: run python -m tests.examples.{STEM}"


def run(recipe: Path) -> dict[str, Any]:
    """What its tests have noted, where they pass: a row of `docs/results/recipes.json`."""
    python = python_with(pins(recipe))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "agents")])
    # One thread: small networks are slower on several.
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    environment["PATH"] = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-n", "0", "-q", "-m", "slow", "-W", "default", "-p", "no:cacheprovider"]
        options += ["--timeout", "0"]  # a training takes longer than other tests
        done = subprocess.run(
            [str(python), "-m", "pytest", *options, f"--junitxml={report}", its_tests(recipe)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        return row(recipe, versions_of(python, recipe), ElementTree.parse(report))


def versions_of(python: Path, recipe: Path) -> dict[str, str]:
    """What a recipe was run with: Python, what this project needs, what its head pins."""
    names = ["numpy", "numba", "gymnasium", "pettingzoo"]
    names += [re.split(r"\[|==", pin)[0] for pin in pins(recipe)]
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    told = subprocess.check_output([str(python), "-c", code, *names], text=True).split()
    return {"python": platform.python_version(), **dict(zip(names, told, strict=True))}


def row(recipe: Path, versions: dict[str, str], report: Any) -> dict[str, Any]:
    """A recipe's row from pytest's report; a test that was skipped is a failure."""
    (suite,) = report.iter("testsuite")
    assert suite.get("skipped") == "0", recipe.name
    noted = [(each.get("name"), each.get("value")) for each in suite.iter("property")]
    return {
        "recipe": recipe.name,
        "date": suite.get("timestamp")[:10],
        "versions": versions,
        "tests": int(suite.get("tests")),
        "seconds": round(float(suite.get("time"))),
        "noted": noted,
    }


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.part  # gigabytes of libraries, and minutes of training each: by hand
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_does_what_it_says_with_the_versions_at_its_head(recipe: Path) -> None:
    assert run(recipe)["tests"] > 0


def main(names: Sequence[str]) -> None:
    """Run recipes, all unless some are named, and write their rows."""
    rows = {each["recipe"]: each for each in json.loads(ROWS.read_text())}
    for recipe in RECIPES:
        if not names or recipe.name in names:
            rows[recipe.name] = run(recipe)
            written = [rows[name] for name in sorted(rows)]
            ROWS.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
