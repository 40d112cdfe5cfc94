"""The house as it stands: who imports whom, in both packages."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from threeup_agents.arena import provenance
from threeup_agents.players import careful
from threeup_agents.search import positional, searchers, value
from threeup_env.engine import batch, compiled

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "threeup_env", ROOT / "agents" / "threeup_agents")

# The rooms, lowest first: whom each may import, itself aside. A room is a folder, or a
# single file that lies between folders. CONTRIBUTING.md draws this table.
ALLOWED: dict[str, str] = {
    "threeup_env.engine": "",
    "threeup_env.agent": "",
    "threeup_env.view": "engine",
    "threeup_env.envs": "engine view agent",
    "threeup_env": "engine envs view",
    "threeup_agents.commands": "",
    "threeup_agents.files": "",
    "threeup_agents.pages": "",
    "threeup_agents.plots": "",
    "threeup_agents.players": "files engine",
    "threeup_agents.search": "files pages players engine",
    "threeup_agents.outside": "engine agent",
    "threeup_agents.programs": "files engine",
    "threeup_agents.specs": "players search outside programs agent",
    "threeup_agents.arena": "files outside programs specs engine agent env",
    "threeup_agents.analysis": "files pages plots specs arena engine",
    "threeup_agents.replay": "commands files pages plots specs search arena engine view agent",
    "threeup_agents.play": "commands specs arena replay engine view",
    "threeup_agents.exact": "commands files specs players arena engine agent",
    "threeup_agents.training": (
        "commands files plots specs players search arena analysis exact engine agent env"
    ),
    "threeup_agents.competition": "files arena analysis replay engine",
    "threeup_agents.evaluation": "commands files specs arena analysis replay competition",
    "threeup_agents.merge": "commands files arena competition evaluation",
    "threeup_agents.contest": "specs arena analysis competition",
    "threeup_agents": "specs contest agent",
    "threeup_agents.__main__": "commands evaluation exact merge training play replay",
}
LONG_NAMES = {name.rpartition(".")[2]: name for name in ALLOWED} | {"env": "threeup_env"}


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in package.rglob("*.py"))


def module_of(path: Path) -> str:
    package = next(package for package in PACKAGES if package in path.parents)
    name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def room_of(module: str) -> str:
    """The longest room that a module's name begins with."""
    rooms = [room for room in ALLOWED if f"{module}.".startswith(f"{room}.")]
    return max(rooms, key=len)


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module of this project or another's that a file imports, lazily or not."""
    modules = {module_of(source) for source in sources()}
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            name = node.module or ""
            parts = {f"{name}.{alias.name}" for alias in node.names}
            found |= parts & modules
            if not parts <= modules:
                found.add(name)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("threeup_agents."):
            found |= {str(node.value)} & modules  # what the command loads by name
    return frozenset(found)


def is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("threeup_env", "threeup_agents")


def room_imports() -> Iterator[tuple[Path, str, str]]:
    """Each import of another room: the file, its room, the other's."""
    for path in sources():
        room = room_of(module_of(path))
        others = {room_of(name) for name in imports_of(path) if is_ours(name)} - {room}
        yield from ((path, room, other) for other in sorted(others))


def test_the_table_of_rooms_is_what_the_folders_are() -> None:
    rooms = {
        module_of(path.parent / "__init__.py") if path.parent not in PACKAGES else module_of(path)
        for path in sources()
    }
    assert rooms == set(ALLOWED)


def test_rooms_import_only_what_the_table_allows_and_all_that_it_does() -> None:
    found: dict[str, set[str]] = {room: set() for room in ALLOWED}
    for _, room, other in room_imports():
        found[room].add(other)
    assert found == {
        room: {LONG_NAMES[name] for name in names.split()} for room, names in ALLOWED.items()
    }


def test_every_room_imports_only_rooms_above_it_in_the_table() -> None:
    order = list(ALLOWED)
    for path, room, other in room_imports():
        assert order.index(other) < order.index(room), f"{path}: {other}"


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {
        module_of(path): {name for name in imports_of(path) if is_ours(name)} for path in sources()
    }
    floors = list(TopologicalSorter(graph).static_order())
    assert len(floors) == len(sources()) > 80


def test_the_contributors_see_the_table() -> None:
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    drawn = {row[0]: row[1] for row in rows if row[0] in ALLOWED}
    assert list(drawn.items()) == [(room, names or "nothing") for room, names in ALLOWED.items()]


def test_the_environment_never_imports_the_agents() -> None:
    sb3 = ROOT / "threeup_env" / "envs" / "sb3.py"  # loaded by who asks for it
    for path in (ROOT / "threeup_env").rglob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"agents", "threeup_agents", "train", "evaluate"}, path
        assert path == sb3 or not roots & {"torch", "stable_baselines3", "sb3_contrib"}, path


@pytest.mark.parametrize("package", ["threeup_env", "threeup_agents"])
def test_importing_loads_no_heavy_library(package: str) -> None:
    heavy = ["torch", "stable_baselines3", "sb3_contrib", "matplotlib", "pygame", "rich", "pandas"]
    heavy += ["PIL", "resvg_py", "moviepy", "threeup_env.view.picture", "threeup_env.view.table"]
    heavy += ["threeup_agents"] if package == "threeup_env" else []
    code = f"import sys, {package}; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_files_stay_short() -> None:
    for path in [*sources(), *ROOT.glob("*.py")]:
        lines = path.read_text().splitlines()
        assert len(lines) <= 350, f"{path.name} has {len(lines)} lines: split it"


def test_functions_stay_short_and_flat() -> None:
    deepest = 5
    blocks = (ast.For, ast.While, ast.If, ast.With, ast.Try)

    def depth(node: ast.AST) -> int:
        inner = max((depth(child) for child in ast.iter_child_nodes(node)), default=0)
        return inner + isinstance(node, blocks)

    for path in [*sources(), *ROOT.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                words = ast.get_docstring(node, clean=False) or ""
                body = (node.end_lineno or 0) - node.body[0].lineno + 1
                code = body - (len(words.splitlines()) if words else 0)
                assert code <= 40, f"{path.name}: {node.name} has {code} lines of code"
                assert depth(node) < deepest, f"{path.name}: {node.name} is nested too deep"


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
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/agents']\n"
        "from pathlib import Path\n"
        "from threeup_env.engine.compiled import cache_folder\n"
        "for name in sys.argv[2:]: print(cache_folder(Path(sys.argv[1]) / name))"
    )
    for path in sources():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())

    def folders() -> list[str]:
        names = ["threeup_env/engine/batch.py", "agents/threeup_agents/search/halving.py"]
        command = [sys.executable, "-c", code, str(tmp_path), *names]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def change(name: str) -> None:
        with (tmp_path / name).open("a") as source:
            source.write("CHANGED = True\n")

    before = folders()
    change("threeup_env/view/text.py")  # which neither imports
    assert folders() == before
    change("agents/threeup_agents/players/careful.py")  # which the search imports
    halfway = folders()
    assert halfway[0] == before[0]
    assert halfway[1] != before[1]
    change("threeup_env/engine/cards.py")  # which both import, by way of others
    assert all(old != new for old, new in zip(halfway, folders(), strict=True))


def test_the_hash_of_the_engine_covers_the_rules_and_an_agents_hash_its_networks() -> None:
    engine = {path.stem for path in compiled.reachable(Path(batch.__file__))}
    assert engine >= {"batch", "rules", "state", "cards", "actions", "observation", "rng"}
    search = set(compiled.reachable(Path(searchers.__file__)))
    assert search >= {Path(careful.__file__), Path(batch.__file__).with_name("rules.py")}
    names = ("policy", "policy:net", "search:10")
    assert all(provenance.agent_hash(name, 2) != provenance.agent_hash(name, 3) for name in names)


@pytest.mark.parametrize("num_players", range(2, 7))
def test_the_shipped_networks_lie_where_they_are_looked_for(num_players: int) -> None:
    assert positional.shipped_file(num_players).is_file()
    assert value.shipped_file(num_players).is_file()


def test_no_record_outlives_its_array() -> None:
    """In compiled code a record keeps no array alive: the array needs a name of its own."""
    sources = [*ROOT.glob("threeup_env/**/*.py"), *ROOT.glob("agents/**/*.py")]
    assert len(sources) > 100
    for path in sources:
        nameless = re.findall(r"np\.(?:empty|zeros)\(1, [\w.]*DTYPE\)\[0\]", path.read_text())
        assert not nameless, path.name
