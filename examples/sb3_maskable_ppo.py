# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0", "stable-baselines3==2.9.2", "sb3-contrib==2.9.2"]
# ///
"""MaskablePPO of sb3-contrib against a pool of its own past, greedy and random players.

    python sb3_maskable_ppo.py
    threeup evaluate --agents random greedy sb3_maskable_ppo.zip --trust

`ThreeUpVecEnv` holds all games at once and never reports a game that is cut off as one that a
value is still to be added to; games in a `DummyVecEnv` need `cut_off="termination"` for that.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tyro
from sb3_contrib import MaskablePPO

import threeup_agents
from threeup_env import ThreeUpVectorEnv
from threeup_env.agent import Agent
from threeup_env.envs.sb3 import ThreeUpVecEnv

HIDDEN = (128, 128)


@dataclass(frozen=True)
class Config:
    """MaskablePPO on 3UP 3DOWN."""

    num_players: int = 2  # seats at the table
    generations: int = 10  # each against one member of the pool, then one more
    decisions: int = 80_000  # of the learner, a generation
    num_envs: int = 64  # games played at once
    num_steps: int = 128  # decisions of each game between two updates
    learning_rate: float = 1e-3
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals, network, choices and the draws from the pool
    file: str = "sb3_maskable_ppo.zip"  # where the model goes


class Snapshot:
    """What the learner was: an agent that samples from a copy of its policy."""

    def __init__(self, model: MaskablePPO) -> None:
        spaces = model.observation_space, model.action_space
        self._policy = type(model.policy)(*spaces, lambda _: 0.0, net_arch=list(HIDDEN))
        self._policy.load_state_dict(model.policy.state_dict())

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Sample a legal action a row."""
        actions, _ = self._policy.predict(observations, action_masks=action_masks)
        return np.asarray(actions, np.int64)


class Pool:
    """The opponents, as one agent: whoever was drawn plays all seats but the learner's."""

    def __init__(self, members: list[Agent], seed: int) -> None:
        self.members = members
        self.drawn = members[0]
        self._rng = np.random.default_rng(seed)

    def draw(self) -> None:
        """Let another member play; the newest is as probable as all others together."""
        newest = self._rng.random() < 0.5
        number = -1 if newest else int(self._rng.integers(len(self.members)))
        self.drawn = self.members[number]

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """As the drawn member."""
        return self.drawn.act(observations, action_masks)


def train(config: Config, callback: Any = None) -> MaskablePPO:
    """Train a model and leave it in `config.file`."""
    pool = Pool([threeup_agents.make(spec) for spec in ("random", "greedy")], config.seed)
    games = ThreeUpVectorEnv(
        num_envs=config.num_envs,
        num_players=config.num_players,
        max_steps=config.max_steps,
        opponents=pool,
        skip_forced=True,
    )
    env = ThreeUpVecEnv(games)
    model = MaskablePPO(
        "MlpPolicy",
        env,
        learning_rate=config.learning_rate,
        n_steps=config.num_steps,
        batch_size=2048,
        n_epochs=4,
        gamma=1.0,
        ent_coef=0.01,
        policy_kwargs={"net_arch": list(HIDDEN)},
        seed=config.seed,
        device="cpu",
    )
    for generation in range(1, config.generations + 1):
        pool.draw()
        # All games are dealt anew: each ends against the opponent that it began with.
        model.set_env(env, force_reset=True)
        model.learn(config.decisions, callback=callback, reset_num_timesteps=False)
        won = [game["r"] > 0 for game in model.ep_info_buffer or ()]
        against = type(pool.drawn).__name__
        print(f"generation {generation}: {np.mean(won):.2f} of the last games won ({against})")
        pool.members.append(Snapshot(model))
    model.save(config.file)
    return model


if __name__ == "__main__":
    train(tyro.cli(Config, description=__doc__))
