"""Runs that are killed, terminated, or lose a worker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")


def wait_for(happened: Callable[[], bool]) -> bool:
    stop = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > stop:
            return False
        time.sleep(0.05)
    return True


def processes_of(out: Path) -> set[int]:
    """All processes that have the folder's path in their environment and are no zombies."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"RUN={out}\0".encode() in (folder / "environ").read_bytes()
            if is_ours and "State:\tZ" not in (folder / "status").read_text():
                found.add(int(folder.name))
        except OSError:  # ended in between, or another user's
            continue
    return found


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Children of the run that play, by what loky starts them with."""
    found = []
    for pid in processes_of(Path(process.args[-1])):  # type: ignore[index, arg-type]
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and b"popen_loky" in command.read_bytes():
            found.append(pid)
    return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A long run on two workers that has kept some games."""
    command = [sys.executable, "evaluate.py", "--agents", "random", "search:60", "--deals", "50000"]
    process = subprocess.Popen(
        [*command, "--workers", "2", "--out", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"RUN": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert wait_for(lambda: any(tmp_path.glob("games/*.npz")))
        assert len(workers_of(process)) == 2
        yield process
    finally:
        process.kill()
        process.communicate()
    assert wait_for(lambda: not processes_of(tmp_path))


def error_of(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=PATIENCE)[1]


@pytest.mark.slow
def test_a_killed_run_leaves_no_worker(run: subprocess.Popen[str], tmp_path: Path) -> None:
    assert len(processes_of(tmp_path)) >= 3
    run.kill()
    run.wait()
    start = time.monotonic()
    assert wait_for(lambda: not processes_of(tmp_path))
    assert time.monotonic() - start < 10


@pytest.mark.slow
def test_a_killed_worker_is_one_line(run: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(workers_of(run)[0], signal.SIGKILL)
    lines = error_of(run).strip().splitlines()
    assert run.returncode == 4
    assert lines[-1].startswith("evaluate.py: a worker process was killed or has crashed")
    assert lines[-1].endswith(f"the games played are in {tmp_path}, the same command goes on")
    assert not [line for line in lines if "Traceback" in line]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_run_that_is_told_to_stop_says_what_it_keeps(
    number: signal.Signals, code: int, run: subprocess.Popen[str], tmp_path: Path
) -> None:
    run.send_signal(number)
    lines = error_of(run).splitlines()
    assert run.returncode == code
    kept = f"the games played are in {tmp_path}, the same command goes on"
    assert f"evaluate.py: interrupted; {kept}" in lines
    assert not [line for line in lines if "Traceback" in line]
