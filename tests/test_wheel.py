"""What one gets who installs threeup: from the wheel and from the sdist, far from a clone."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OTHER = "openai-agents"
"""A package of the index that installs a top-level `agents` too."""


def call(*command: object, cwd: Path, code: int = 0) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call("git", "clone", "--quiet", str(ROOT), str(folder / "clone"), cwd=folder)
    call(sys.executable, "-m", "build", "--outdir", folder, folder / "clone", cwd=folder)
    return folder


@pytest.mark.slow
def test_the_index_would_take_what_is_built(built: Path) -> None:
    pytest.importorskip("twine")
    archives = sorted(path for path in built.iterdir() if path.is_file())
    assert [path.suffix for path in archives] == [".whl", ".gz"]
    told = call(sys.executable, "-m", "twine", "check", "--strict", *archives, cwd=built)
    assert told.count("PASSED") == 2
    with zipfile.ZipFile(archives[0]) as wheel:
        licences = [Path(name).name for name in wheel.namelist() if "/licenses/" in name]
    assert sorted(licences) == ["LICENSE", "LICENSES.md"]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_an_installed_threeup_is_whole(pattern: str, built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob(pattern)
    empty = tmp_path / "empty"
    empty.mkdir()
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    call(programs / "pip", "install", "--quiet", archive, cwd=empty)
    call(programs / "pip", "install", "--quiet", "--no-deps", OTHER, cwd=empty)
    threeup, python = programs / "threeup", programs / "python"

    everybody = ["random", "greedy", "search:50", "policy"]
    told = call(
        *(threeup, "evaluate", "--agents", *everybody, "--deals", "20", "--out", "run"), cwd=empty
    )
    assert all(name in told for name in everybody)
    assert (empty / "run" / "report.html").stat().st_size > 10_000
    assert "policy:net" in call(threeup, "evaluate", "--ladder", "--num-players", "4", cwd=empty)
    assert "--opponents" in call(threeup, "play", "--help", cwd=empty)
    call(threeup, "page", "run", "--game", "3", "--out", "game.html", cwd=empty)
    assert (empty / "game.html").stat().st_size > 10_000
    assert "pip install 'threeup[train]'" in call(threeup, "train", cwd=empty, code=2)
    assert "pip install 'threeup[play]'" in call(threeup, "play", cwd=empty, code=2)
    assert all(name in call(threeup, "--help", cwd=empty) for name in ("evaluate", "train"))

    # The extras come from this test's own environment, but not its threeup.
    (site,) = (tmp_path / "venv").glob("lib/*/site-packages")
    (site / "extras.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = (
        "import threeup_agents, threeup_env; from importlib.util import find_spec\n"
        "from threeup_env.envs.sb3 import ThreeUpVecEnv\n"
        "env = ThreeUpVecEnv(threeup_env.ThreeUpVectorEnv(num_envs=3))\n"
        "names = ('agents', 'threeup_agents', 'threeup_env')\n"
        "print(env.reset().shape, *(find_spec(name).origin for name in names))"
    )
    said = call(python, "-c", code, cwd=empty)
    assert said.startswith("(3, 136) ")
    assert said.count(str(site)) == 3
