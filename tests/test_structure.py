import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Who may import whom: each module of threeup_env, and what it may take from the package.
ENGINE = {"cards", "actions", "compiled", "rng", "state", "rules", "observation"}
ALLOWED = {
    "compiled": set(),
    "cards": set(),
    "rng": {"compiled"},
    "actions": {"cards"},
    "state": {"cards"},
    "rules": {"actions", "cards", "compiled", "state"},
    "observation": {"cards", "compiled", "state"},
    "privileged": {"cards", "compiled", "state"},
    "determinize": ENGINE,
    "batch": ENGINE,
    "render": {"actions", "cards", "observation", "rules", "state"},
    "table": ENGINE | {"batch", "render"},
    "card_art": {"cards"},
    "picture": ENGINE | {"batch", "card_art", "table"},
    "screen": set(),
    "order": set(),
    "aec": {"order"} | ENGINE | {"batch", "render", "picture", "screen", "table"},
    "learner": ENGINE | {"batch"},
    "vector_env": ENGINE | {"batch", "learner", "render", "picture", "screen", "table"},
    "gym_env": ENGINE | {"batch", "learner", "render", "picture", "screen", "table", "vector_env"},
}


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, lazily or not."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            found.add(node.module or "")
    return found


def test_every_module_of_the_environment_stands_in_the_import_table() -> None:
    modules = {path.stem for path in (ROOT / "threeup_env").glob("*.py")} - {"__init__"}
    assert modules == set(ALLOWED)


@pytest.mark.parametrize("module", ALLOWED)
def test_imports_point_one_way(module: str) -> None:
    path = ROOT / "threeup_env" / f"{module}.py"
    own = {name for name in imports_of(path) if name.split(".")[0] == "threeup_env"}
    assert own <= {f"threeup_env.{name}" for name in ALLOWED[module]}


def test_the_environment_never_imports_the_agents() -> None:
    for path in (ROOT / "threeup_env").glob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"agents", "torch", "stable_baselines3", "sb3_contrib", "train"}, path


@pytest.mark.parametrize("package", ["threeup_env", "agents"])
def test_importing_loads_no_heavy_library(package: str) -> None:
    heavy = ["torch", "stable_baselines3", "sb3_contrib", "matplotlib", "pygame", "rich", "pandas"]
    heavy += ["PIL", "resvg_py", "moviepy", "threeup_env.picture", "threeup_env.table"]
    heavy += ["agents"] if package == "threeup_env" else []
    code = f"import sys, {package}; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_files_stay_short() -> None:
    for path in [*ROOT.glob("threeup_env/*.py"), *ROOT.glob("agents/*.py"), *ROOT.glob("*.py")]:
        lines = path.read_text().splitlines()
        assert len(lines) <= 400, f"{path.name} has {len(lines)} lines: split it"


def test_the_project_stands_alone() -> None:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    outside = ["../" + "shared", "/" + "work/", "/" + "tmp/w"]
    for name in files:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".ipynb", ".txt", ""} and path.is_file():
            text = path.read_text(errors="ignore")
            assert not [word for word in outside if word in text], name


def test_a_change_in_what_a_file_imports_gives_its_compiled_code_a_new_cache_folder(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from threeup_env.compiled import cache_folder\n"
        "print(cache_folder(Path(sys.argv[1]) / 'threeup_env' / 'batch.py'))"
    )
    package = tmp_path / "threeup_env"
    package.mkdir()
    for path in (ROOT / "threeup_env").glob("*.py"):
        (package / path.name).write_bytes(path.read_bytes())

    def folder() -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    before = folder()
    with (package / "render.py").open("a") as source:  # which batch.py doesn't import
        source.write("CHANGED = True\n")
    assert folder() == before
    with (package / "cards.py").open("a") as source:  # which it imports by way of others
        source.write("CHANGED = True\n")
    assert folder() != before
