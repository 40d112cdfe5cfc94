"""Time per frame: the drawing, and its pixels; median milliseconds of processor time."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from threeup_env import Batch
from threeup_env.view.picture import draw
from threeup_env.view.screen import pixels
from threeup_env.view.table import look


def measure(benchmark: BenchmarkFixture, run: Callable[[], object], rounds: int) -> None:
    def timed() -> float:
        start = time.process_time()
        run()
        return 1e3 * (time.process_time() - start)

    took = [timed() for _ in range(rounds)]
    benchmark.extra_info["milliseconds"] = float(np.median(took))
    benchmark.pedantic(run, rounds=rounds)  # type: ignore[no-untyped-call]
    print(f"\n{benchmark.name}: {np.median(took):.2f} ms of processor time")


def middle_of_a_game(num_players: int) -> Batch:
    batch = Batch(1, num_players, autoreset=False)
    batch.reset(seed=1)
    for _ in range(40):
        batch.step(batch.action_masks.argmax(axis=1))
    return batch


@pytest.mark.parametrize("num_players", [2, 6])
def test_drawing(benchmark: BenchmarkFixture, num_players: int) -> None:
    batch = middle_of_a_game(num_players)
    measure(benchmark, lambda: draw(look(batch, 0, 0)), rounds=50)


@pytest.mark.parametrize("num_players", [2, 6])
def test_rgb_array(benchmark: BenchmarkFixture, num_players: int) -> None:
    pytest.importorskip("resvg_py", reason="pip install 'threeup[render]'")
    svg = draw(look(middle_of_a_game(num_players), 0, 0))
    measure(benchmark, lambda: pixels(svg), rounds=20)
