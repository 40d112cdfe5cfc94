"""The engine next to the same game in plain C, and `Batch` next to the bare engine.

All benchmarks, with a table of ratios at the end: `pytest -n 0 tests/benchmarks --benchmark-only`.
They assert nothing about time; the C program as a third implementation of the rules is
tested in every run. Set CC to use another compiler than `cc`.
"""

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.ratio import compare, speed
from threeup_agents.players.simple import choose_random
from threeup_env import STATE_DTYPE, Batch
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_DECK_SIZE
from threeup_env.engine.compiled import compiled
from threeup_env.engine.lockstep import deal_shuffled
from threeup_env.engine.rng import random_below, streams
from threeup_env.engine.rules import apply_action, write_legal_actions
from threeup_env.engine.state import EMPTY

_HASH = np.uint64(0x9E3779B97F4A7C15)
_TOP_BITS = np.uint64(58)

Play: TypeAlias = Callable[[int, int, int, int], tuple[int, int]]
"""From seed, seats, step limit and number of actions to games finished and checksum."""


@compiled
def play_games(
    states: npt.NDArray[np.void], picks: npt.NDArray[np.uint64], num_actions: int
) -> tuple[int, np.uint64]:
    """Play as `play` of yardstick.c does, on one record; gives games finished and checksum."""
    game = states[0]
    legal = np.empty(NUM_ACTIONS, np.int64)
    mask = np.zeros(NUM_ACTIONS, np.bool_)
    deck = np.empty(MAX_DECK_SIZE, np.int8)
    checksum = np.uint64(0)
    num_games = 0
    deal_shuffled(game, deck)
    for _ in range(num_actions):
        count = write_legal_actions(game, legal)
        for action in range(NUM_ACTIONS):
            mask[action] = False
        for i in range(count):
            mask[legal[i]] = True
        action = legal[random_below(picks, count)]
        seen = mask[np.int64(checksum >> _TOP_BITS)]
        checksum = checksum * _HASH + np.uint64(action + (256 if seen else 0))
        apply_action(game, action)
        if game.winner != EMPTY:
            num_games += 1
            checksum += np.uint64((int(game.winner) + 3) << 16)
            deal_shuffled(game, deck)
    return num_games, checksum


def play_engine(seed: int, num_seats: int, max_steps: int, num_actions: int) -> tuple[int, int]:
    """Play in the engine, compiled by numba."""
    shuffles, picks = streams(seed, 2)
    states = np.zeros(1, STATE_DTYPE)
    states["num_seats"] = num_seats
    states["max_steps"] = max_steps
    states["rng"] = shuffles
    num_games, checksum = play_games(states, np.array([picks]), num_actions)
    return num_games, int(checksum)


@pytest.fixture(scope="session")
def play_c(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Play in C, compiled here and now."""
    library = ctypes.CDLL(str(compile_yardstick(tmp_path_factory.mktemp("yardstick"))))
    library.play.restype = ctypes.c_int64

    def play(seed: int, num_seats: int, max_steps: int, num_actions: int) -> tuple[int, int]:
        both = (ctypes.c_uint64 * 2)(*streams(seed, 2).tolist())
        checksum = ctypes.c_uint64()
        num_games = library.play(
            both, num_seats, max_steps, ctypes.c_int64(num_actions), ctypes.byref(checksum)
        )
        return num_games, checksum.value

    return play


def compile_yardstick(folder: Path) -> Path:
    """Compile yardstick.c as a shared library, for this very processor where `cc` can."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler: install one, or name it in CC")
    library = folder / "yardstick.so"
    source = Path(__file__).with_name("yardstick.c")
    for flags in (["-march=native"], []):
        command = [compiler, "-std=c11", "-O3", *flags, "-shared", "-fPIC"]
        command += ["-o", str(library), str(source)]
        finished = subprocess.run(command, capture_output=True, text=True)
        if finished.returncode == 0:
            return library
    pytest.skip(f"the C compiler failed: {finished.stderr.strip()}")


@pytest.mark.parametrize("num_seats", range(2, 7))
@pytest.mark.parametrize("max_steps", [1000, 60])
def test_the_c_program_plays_the_same_games(play_c: Play, num_seats: int, max_steps: int) -> None:
    num_games, checksum = play_engine(5, num_seats, max_steps, 20_000)
    assert num_games > 10
    assert play_c(5, num_seats, max_steps, 20_000) == (num_games, checksum)


NUM_ACTIONS_TIMED = 200_000


@pytest.mark.parametrize("num_seats", [2, 4])
def test_compiled_loop_next_to_c(benchmark: BenchmarkFixture, play_c: Play, num_seats: int) -> None:
    arguments = (1, num_seats, 1000, NUM_ACTIONS_TIMED)
    compare(
        benchmark,
        f"compiled loop / C, {num_seats} seats",
        speed(NUM_ACTIONS_TIMED, lambda: play_engine(*arguments)),
        speed(NUM_ACTIONS_TIMED, lambda: play_c(*arguments)),
        rounds=40,
        unit="M actions/s",
        target="8 M/s where C does 12: 0.67",
    )


@pytest.mark.parametrize("num_games", [64, 4096])
def test_batch_on_two_threads(benchmark: BenchmarkFixture, num_games: int) -> None:
    """By the clock, since two threads spend the processor time of both; on 64 it starts none."""

    def by_the_clock(num_threads: int) -> Callable[[], float]:
        batch = Batch(num_games, seed=1, num_threads=num_threads)
        batch.reset()
        picks = streams(2, 1)
        actions = np.empty(num_games, np.int64)
        num_steps = 200_000 // num_games

        def measure() -> float:
            seconds = 0.0
            for _ in range(num_steps):
                choose_random(picks, batch.action_masks, actions)
                start = time.perf_counter()
                batch.step(actions)
                seconds += time.perf_counter() - start
            return num_steps * num_games / seconds / 1e6

        return measure

    compare(
        benchmark,
        f"Batch.step of {num_games:,} games, two threads / one thread, by the clock",
        by_the_clock(2),
        by_the_clock(1),
        rounds=20,
        unit="M actions/s",
        target="1.8" if num_games > 64 else "1",
    )


@pytest.mark.parametrize("num_seats", [2, 4])
def test_batch_next_to_the_compiled_loop(benchmark: BenchmarkFixture, num_seats: int) -> None:
    """Observations and masks are written, the picking (compiled) is not timed."""
    batch = Batch(num_games=1024, num_players=num_seats, seed=1)
    batch.reset()
    picks = streams(2, 1)
    actions = np.empty(batch.num_games, np.int64)
    num_steps = 100

    def batch_speed() -> float:
        seconds = 0.0
        for _ in range(num_steps):
            choose_random(picks, batch.action_masks, actions)
            start = time.process_time()
            batch.step(actions)
            seconds += time.process_time() - start
        return num_steps * batch.num_games / seconds / 1e6

    arguments = (1, num_seats, 1000, NUM_ACTIONS_TIMED)
    compare(
        benchmark,
        f"Batch.step of 1,024 games / compiled loop, {num_seats} seats",
        batch_speed,
        speed(NUM_ACTIONS_TIMED, lambda: play_engine(*arguments)),
        rounds=40,
        unit="M actions/s",
        target="Batch 2 M/s",
    )
