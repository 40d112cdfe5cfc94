"""What a release says of itself: the same version, date and files everywhere."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import threeup_env

ROOT = Path(__file__).parents[1]
PACKAGES = {"threeup_env": ROOT, "threeup_agents": ROOT / "agents"}
"""The folder of each."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_names_the_latest_release_of_the_changelog() -> None:
    found = re.search(r"^## (\S+) \((\S+)\)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert found is not None
    assert found[1] == threeup_env.__version__
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert (citation["version"], citation["date-released"]) == found.groups()
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= set(citation)
    assert f'license = "{citation["license"]}"' in text_of("pyproject.toml")


def test_the_pages_name_the_wheel_as_it_is_built() -> None:
    named = re.findall(r"threeup-([\d.]+)-py3-none-any\.whl", text_of("docs/index.md"))
    assert set(named) == {threeup_env.__version__}


def test_every_file_that_is_no_source_code_is_named_with_its_licence() -> None:
    patterns = re.findall(r"^\| `(\S+)` \|", text_of("LICENSES.md"), re.MULTILINE)
    shipped = [
        path.relative_to(folder).as_posix()
        for name, folder in PACKAGES.items()
        for path in (folder / name).rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    ]
    assert len(shipped) > 15
    named = {pattern: [path for path in shipped if fnmatch(path, pattern)] for pattern in patterns}
    assert all(named.values()), named
    assert sorted(shipped) == sorted(path for found in named.values() for path in found)
    assert not [path for path in shipped if path.endswith((".ttf", ".otf", ".woff", ".woff2"))]


def test_the_pythons_of_the_classifiers_follow_each_other_from_the_lowest() -> None:
    text = text_of("pyproject.toml")
    named = [int(minor) for minor in re.findall(r"Python :: 3\.(\d+)\"", text)]
    lowest = re.search(r'requires-python = ">=3\.(\d+)"', text)
    assert lowest is not None
    assert named == list(range(int(lowest[1]), int(lowest[1]) + len(named)))


def test_the_workflow_runs_what_a_person_runs() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(text_of(".github/workflows/ci.yml"))["jobs"]
    run = {
        (job["runs-on"], step["run"])
        for job in jobs.values()
        for step in job["steps"]
        if "run" in step
    }
    set_up = 'pip install -e ".[dev]" && pytest'
    assert set_up in text_of("README.md").splitlines()
    assert (ROOT / ".ci" / "run").is_file()
    assert run == {("ubuntu-latest", "bash .ci/run"), ("${{ matrix.os }}", set_up)}
    systems = jobs["quick-tests"]["strategy"]["matrix"]["os"]
    assert systems == ["macos-latest", "windows-latest"]
    assert "bash .ci/run" in text_of("CONTRIBUTING.md")
