"""Decisions trained on a second, next to what PettingZoo's own tutorial does."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from sb3_contrib import MaskablePPO
from stable_baselines3.common import logger
from stable_baselines3.common.vec_env import DummyVecEnv

import threeup_env
from tests.benchmarks.ratio import compare
from threeup_agents.training import run
from threeup_agents.training.settings import Config

NUM_DECISIONS = 2048
ROLLOUTS = 3


class TutorialEnv(gymnasium.Env[Any, int]):
    """An AEC env as a Gymnasium env of whoever is to act, as PettingZoo's SB3 tutorial has it."""

    def __init__(self) -> None:
        self.aec: Any = threeup_env.env(num_players=2)
        agent = self.aec.possible_agents[0]
        self.observation_space = self.aec.observation_space(agent)["observation"]
        self.action_space = self.aec.action_space(agent)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Deal."""
        self.aec.reset(seed, options)
        return self.aec.observe(self.aec.agent_selection)["observation"], {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action of whoever is to act; the next one's observation comes back."""
        self.aec.step(action)
        observation, reward, terminated, truncated, info = self.aec.last()
        return observation["observation"], float(reward), terminated, truncated, info

    def action_masks(self) -> Any:
        """What sb3-contrib asks for."""
        return self.aec.observe(self.aec.agent_selection)["action_mask"]


def tutorial(num_envs: int) -> Callable[[], float]:
    """Thousands of decisions a second of MaskablePPO with the tutorial's settings."""
    model = MaskablePPO(
        "MlpPolicy",
        DummyVecEnv([TutorialEnv] * num_envs),
        n_steps=NUM_DECISIONS // num_envs,
        policy_kwargs={"net_arch": [128, 128]},
        device="cpu",
    )
    model.set_logger(logger.configure(None, []))
    return trained(model, NUM_DECISIONS)


def ours() -> Callable[[], float]:
    """Thousands of decisions a second with this project's defaults."""
    config = Config()
    model = run.build(config)
    model.set_logger(logger.configure(None, []))
    return trained(model, ROLLOUTS * config.num_games * config.rollout_steps)


def trained(model: MaskablePPO, decisions: int) -> Callable[[], float]:
    def measure() -> float:
        before, start = model.num_timesteps, time.process_time()
        model.learn(decisions, reset_num_timesteps=before == 0)
        return (model.num_timesteps - before) / (time.process_time() - start) / 1e3

    return measure


@pytest.mark.parametrize("num_envs", [1, 8])
def test_training_next_to_the_tutorial(benchmark: BenchmarkFixture, num_envs: int) -> None:
    torch.set_num_threads(1)
    compare(
        benchmark,
        f"train.py, 1 thread / MaskablePPO as in PettingZoo's tutorial, {num_envs} env(s)",
        ours(),
        tutorial(num_envs),
        rounds=3,
        unit="k decisions/s",
        target="30" if num_envs == 1 else "",
    )


@pytest.mark.parametrize("num_players", [2, 3])
def test_looking_ahead_on_two_threads(benchmark: BenchmarkFixture, num_players: int) -> None:
    """By the clock: collecting and learning, each on both threads."""

    def by_the_clock(num_threads: int) -> Callable[[], float]:
        options: dict[str, Any] = {"hidden": (256, 64), "minibatch": 512}
        model = run.build(Config(num_players=num_players, lookahead=True, **options))
        model.set_logger(logger.configure(None, []))

        def measure() -> float:
            torch.set_num_threads(num_threads)
            before, start = model.num_timesteps, time.perf_counter()
            model.learn(32 * 1024, reset_num_timesteps=before == 0)
            seconds = time.perf_counter() - start
            torch.set_num_threads(1)
            return (model.num_timesteps - before) / seconds / 1e3

        return measure

    compare(
        benchmark,
        f"train.py --lookahead, {num_players} players, two threads / one thread, by the clock",
        by_the_clock(2),
        by_the_clock(1),
        rounds=5,
        unit="k decisions/s",
        target="1.6",
    )
