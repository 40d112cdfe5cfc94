# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0", "minari[hdf5]==0.5.4"]
# ///
"""Games of an agent against itself as an offline dataset of Minari: one episode a seat.

    python minari_dataset.py --agent careful --games 3000
    python behaviour_cloning.py

An episode holds a seat's own decisions alone: what it saw and might do, what it did, and its own
outcome as the last reward. The last observation is that of the ended game, with an empty mask.
"""

from dataclasses import dataclass
from typing import Any

import minari
import numpy as np
import tyro
from minari.data_collector.episode_buffer import EpisodeBuffer

import threeup_agents
from threeup_env import Batch, ThreeUpEnv


@dataclass(frozen=True)
class Config:
    """Write a dataset."""

    agent: str = "careful"  # at all seats: any agent's spec
    num_players: int = 2  # seats at the table
    games: int = 3000
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals and choices
    name: str = "threeup/careful-v0"  # of the dataset; MINARI_DATASETS_PATH says where it lies


def episodes(config: Config) -> list[EpisodeBuffer]:
    """Play, and give each seat of each game an episode: game 0's seats, game 1's and so on."""
    agent = threeup_agents.make(config.agent, seed=config.seed)
    sizes = config.games, config.num_players, "standard", config.max_steps
    batch = Batch(*sizes, seed=config.seed, autoreset=False)
    batch.reset()
    rewards = np.zeros((config.games, config.num_players))
    was_cut_off = np.zeros(config.games, np.bool_)
    owners, seen, masks, taken = [], [], [], []  # by step, of the rows that still play
    while (playing := batch.action_masks.any(axis=1)).any():
        rows = np.flatnonzero(playing)
        owners.append(rows * config.num_players + batch.seats[rows])
        seen.append(batch.observations[rows])
        masks.append(batch.action_masks[rows])
        taken.append(agent.act(seen[-1], masks[-1]))
        batch.step(taken[-1], rows=rows)
        rewards += batch.rewards
        was_cut_off |= batch.truncations
    order = np.argsort(np.concatenate(owners), kind="stable")  # by seat, in the order of time
    columns = [np.concatenate(parts)[order] for parts in (seen, masks, taken)]
    counts = np.bincount(np.concatenate(owners), minlength=rewards.size)
    last = np.stack([batch.observe(np.full(config.games, s)) for s in range(config.num_players)], 1)
    parts = zip(*(np.split(column, counts.cumsum()[:-1]) for column in columns), strict=True)
    found = []
    for number, part in enumerate(parts):
        game, seat = divmod(number, config.num_players)
        end = last[game, seat], float(rewards[game, seat]), bool(was_cut_off[game])
        found.append(episode(number, part, *end))
    return found


def episode(
    number: int, columns: tuple[Any, ...], last: Any, reward: float, was_cut_off: bool
) -> EpisodeBuffer:
    """One seat's game, `[N]` decisions and `[N + 1]` observations."""
    seen, masks, actions = columns
    ends = np.arange(1, len(actions) + 1) == len(actions)
    legal = np.concatenate([masks, np.zeros_like(masks[:1])]).astype(np.int8)
    return EpisodeBuffer(
        id=number,
        observations={"observation": np.concatenate([seen, last[None]]), "action_mask": legal},
        actions=np.asarray(actions, np.int64),
        rewards=np.where(ends, reward, 0.0),
        terminations=ends & (not was_cut_off),
        truncations=ends & was_cut_off,
    )


def main(config: Config) -> Any:
    """Write the dataset and give it."""
    env = ThreeUpEnv(config.num_players, dict_observation=True)
    dataset = minari.create_dataset_from_buffers(
        config.name,
        episodes(config),
        observation_space=env.observation_space,
        action_space=env.action_space,
        algorithm_name=config.agent,
        description="3UP 3DOWN: one episode a seat, its own decisions and its own outcome.",
        requirements=["threeup"],
    )
    print(f"{dataset.total_episodes:,} episodes, {dataset.total_steps:,} decisions: {config.name}")
    return dataset


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
