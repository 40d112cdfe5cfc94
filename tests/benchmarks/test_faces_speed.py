"""The vector face next to as many single environments, and what its masks cost."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.ratio import compare, speed
from threeup_agents import make
from threeup_env import ThreeUpEnv, ThreeUpVectorEnv
from threeup_env.envs.sb3 import ThreeUpVecEnv


def stepper(envs: ThreeUpVectorEnv | SyncVectorEnv, num_steps: int) -> Callable[[], None]:
    """Step on with random legal actions; the masks come from the infos."""
    agent = make("random", seed=1)
    observations, infos = envs.reset(seed=1)

    def run() -> None:
        nonlocal observations, infos
        for _ in range(num_steps):
            actions = agent.act(observations, infos["action_mask"].astype(np.bool_))
            observations, _, _, _, infos = envs.step(actions)

    return run


@pytest.mark.parametrize("num_envs", [64, 1024])
def test_vector_face(benchmark: BenchmarkFixture, num_envs: int) -> None:
    own = stepper(ThreeUpVectorEnv(num_envs), num_steps=50)
    single = [partial(ThreeUpEnv)] * num_envs
    theirs = stepper(SyncVectorEnv(single, autoreset_mode=AutoresetMode.SAME_STEP), num_steps=2)
    compare(
        benchmark,
        f"learner's steps, {num_envs} games / as many ThreeUpEnv",
        speed(50 * num_envs, own),
        speed(2 * num_envs, theirs),
        rounds=7,
        unit="M/s",
        target="",
    )


def test_masks_for_sb3(benchmark: BenchmarkFixture) -> None:
    vec_env = ThreeUpVecEnv(ThreeUpVectorEnv(64))
    agent = make("random", seed=1)
    observations = vec_env.reset()

    def step() -> None:
        nonlocal observations
        for _ in range(200):
            vec_env.step_async(agent.act(observations, vec_env.env.action_masks()))
            observations = vec_env.step_wait()[0]

    def masks() -> None:
        for _ in range(200):
            vec_env.env_method("action_masks")

    contest = compare(
        benchmark,
        "steps of 64 games / calls of their masks",
        speed(200, step),
        speed(200, masks),
        rounds=7,
        unit="M/s",
        target="at most 0.02",
    )
    assert contest.ratio < 0.1
