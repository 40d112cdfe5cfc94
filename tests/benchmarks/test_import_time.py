"""What a user waits for: the import, and the first game while numba compiles.

Each measurement is a fresh process. Python's own bytecode is there in all of them (the first,
which doesn't count, writes it), as it is after `pip install`.
"""

import os
import subprocess
import sys
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.ratio import compare

ROOT = Path(__file__).parents[2]

IMPORT = """
import time
start = time.process_time()
import {modules}
print(time.process_time() - start)
"""
FIRST_GAME = """
import time
start = time.process_time()
import threeup_env
env = threeup_env.env()
env.reset(seed=1)
for agent in env.agent_iter():
    observation, reward, termination, truncation, info = env.last()
    over = termination or truncation
    env.step(None if over else int(info["action_mask"].argmax()))
print(time.process_time() - start)
"""


def seconds(code: str, **environment: str) -> float:
    """Run `code` in a fresh process; it prints its own seconds of processor time."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def test_import(benchmark: BenchmarkFixture) -> None:
    compare(
        benchmark,
        "import threeup_env / import of what it needs",
        lambda: seconds(IMPORT.format(modules="threeup_env")),
        lambda: seconds(IMPORT.format(modules="numba, gymnasium, pettingzoo")),
        rounds=7,
        unit="s",
        target="at most 1.2",
    )


def test_first_game(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """An episode of `env`, import included: compiled, and then from the cache."""
    folders = iter(range(100))
    compare(
        benchmark,
        "first game of a fresh install / first game from the cache",
        lambda: seconds(FIRST_GAME, NUMBA_CACHE_DIR=str(tmp_path / str(next(folders)))),
        lambda: seconds(FIRST_GAME, NUMBA_CACHE_DIR=str(tmp_path / "0")),
        rounds=3,
        unit="s",
        target="ours below 10 s",
    )
