import errno
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core.caching import IndexDataCacheFile

from threeup_env.engine import compiled

ROOT = Path(__file__).parents[2]
SOURCE = """
from threeup_env.engine.compiled import compiled

@compiled
def twice(number):
    return 2 * number
"""

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"
)


def forget() -> None:
    """What a new process knows of folders and warnings: nothing."""
    compiled.cache_folder.cache_clear()
    compiled._temporary_parent.cache_clear()
    compiled._warned.clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for caches and temporary files of this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "small.py").write_text(SOURCE)
    forget()
    yield tmp_path
    forget()


def double(folder: Path) -> Any:
    """Double 21 in a new process, as far as compiling goes; gives the function."""
    forget()
    spec = importlib.util.spec_from_file_location("small", folder / "small.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.twice(21) == 42
    return module.twice


def kept(folder: Path, suffix: str = "nbc") -> list[Path]:
    return sorted(folder.rglob(f"*.{suffix}"))


def is_loaded(function: Any) -> bool:
    """Whether the machine code came from the cache."""
    hits: int = sum(function.stats.cache_hits.values())
    return hits == 1


def test_compiled_code_is_kept_and_loaded(folder: Path) -> None:
    assert not is_loaded(double(folder))
    assert len(kept(folder / "cache")) == 1
    assert is_loaded(double(folder))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


@pytest.mark.parametrize("damage", [cut, empty, overwrite])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_file_is_replaced(
    folder: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    double(folder)
    (path,) = kept(folder, suffix)
    damage(path)
    with pytest.warns(RuntimeWarning, match=f"can't read compiled code in {folder}") as warned:
        assert not is_loaded(double(folder))
    assert len(warned) == 1
    assert is_loaded(double(folder))


def test_an_unwritable_folder_is_replaced_by_a_temporary_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "small.py" / "x"))  # below a file
    with pytest.warns(RuntimeWarning, match=r"can't keep compiled code in .*small\.py/x") as warned:
        double(folder)
    assert len(warned) == 1
    assert len(kept(folder)) == 1
    with pytest.warns(RuntimeWarning, match=f"it is kept in {folder}"):
        assert is_loaded(double(folder))


def test_where_neither_package_nor_home_is_writable_temporary_files_serve(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("HOME", str(folder / "small.py"))
    monkeypatch.setattr(os, "access", lambda *args, **options: False)
    with pytest.warns(RuntimeWarning, match=r"can't keep compiled code in .*\.cache/threeup"):
        double(folder)
    assert len(kept(folder)) == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="platform: users have no number here")
def test_a_temporary_folder_that_others_may_write_to_is_not_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / f"threeup-{os.getuid()}"
    theirs.mkdir()
    theirs.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "small.py" / "x"))
    with pytest.warns(RuntimeWarning, match="it is kept in"):
        double(folder)
    assert not kept(theirs)
    assert len(kept(folder)) == 1


def test_without_any_folder_code_is_compiled_at_each_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = str(folder / "small.py" / "x")
    monkeypatch.setenv("NUMBA_CACHE_DIR", nowhere)
    monkeypatch.setattr(tempfile, "tempdir", nowhere)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=f"{nowhere}: it is compiled at each start"):
            assert not is_loaded(double(folder))


def test_a_full_disk_keeps_nobody_from_playing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    with pytest.warns(RuntimeWarning, match=f"in {folder}.*: No space left on device") as warned:
        double(folder)
    assert len(warned) == 1
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "cache"))
    assert not is_loaded(double(folder))
    assert is_loaded(double(folder))


def test_the_package_is_imported_and_plays_without_a_writable_cache(tmp_path: Path) -> None:
    code = (
        "import numpy as np, threeup_env\n"
        "from threeup_env.engine.rng import random_below\n"
        "print(random_below(np.zeros(1, np.uint64), 5) in range(5))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{os.devnull}/x", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True"], done.stderr
    assert done.stderr.count("Warning") == 1
    assert f"{os.devnull}/x: it is kept in {tmp_path}" in done.stderr
