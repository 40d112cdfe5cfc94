"""The PettingZoo environment next to PettingZoo's own two smallest board games.

All are driven by the same loop. `pip install pygame-ce` for PettingZoo's games.
"""

import importlib
import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import threeup_env
from tests.benchmarks.ratio import compare


def play_episodes(env: Any, rng: np.random.Generator, num_actions: int) -> float:
    """Play whole episodes by picking at random from the mask.

    Returns:
        Thousand actions a second. Resets and dead steps take their time, but only
        actions count.
    """
    taken = 0
    start = time.process_time()
    while taken < num_actions:
        env.reset()
        for _ in env.agent_iter():
            observation, _, termination, truncation, _ = env.last()
            if termination or truncation:
                env.step(None)
                continue
            legal = np.flatnonzero(observation["action_mask"])
            env.step(int(legal[rng.integers(len(legal))]))
            taken += 1
    return taken / (time.process_time() - start) / 1e3


def classic_game(name: str) -> ModuleType:
    """The module of one of PettingZoo's games; `name_v3` is the same with a warning."""
    pytest.importorskip("pygame", reason="PettingZoo's games need it: pip install pygame-ce")
    return importlib.import_module(f"pettingzoo.classic.{name}.{name}")


@pytest.mark.parametrize(
    ("kind", "other", "target"),
    [
        ("raw_env", "connect_four", "1.5"),
        ("env", "connect_four", "1.2"),
        ("raw_env", "tictactoe", ""),
        ("env", "tictactoe", ""),
    ],
)
def test_aec_loop(benchmark: BenchmarkFixture, kind: str, other: str, target: str) -> None:
    ours = getattr(threeup_env, kind)()
    theirs = getattr(classic_game(other), kind)()
    rng = np.random.default_rng(1)
    ours.reset(seed=1)
    compare(
        benchmark,
        f"AEC {kind} / {other}_v3.{kind}",
        lambda: play_episodes(ours, rng, 2000),
        lambda: play_episodes(theirs, rng, 2000),
        rounds=20,
        unit="k actions/s",
        target=target,
    )
