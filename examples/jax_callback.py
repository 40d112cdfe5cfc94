# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "jax==0.10.2"]
# ///
"""`Batch` inside `jit` and `scan` of JAX, by a callback; here with random play.

    python jax_callback.py

What it can't do: the games stay in NumPy on the host, so `vmap` and `grad` can't see into a step,
a game can't be branched or replayed from a JAX value, each step waits for the host (and copies to
an accelerator, if there is one), and one set of games belongs to one running program.
"""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax.experimental import io_callback

from threeup_env import Batch


@dataclass(frozen=True)
class Config:
    """Random play at full speed, compiled by JAX."""

    num_players: int = 2  # seats at the table
    num_games: int = 4096  # played at once
    num_steps: int = 64  # actions of each game in one scan
    scans: int = 10  # measured ones
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals and choices


class Games:
    """Many games for JAX: `seen` is what the seats to act see, `step` the callback.

    A step gives observations int8 `[B, F]` and masks bool `[B, A]` of the seats to act, those seats
    int32 `[B]`, and the rewards float32 `[B, S]` of games that have ended, bool `[B]`.
    """

    def __init__(self, config: Config) -> None:
        sizes = config.num_games, config.num_players, "standard", config.max_steps
        self.batch = Batch(*sizes, seed=config.seed)
        self.batch.reset()
        self.shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), self.shown())

    def shown(self) -> tuple[Any, ...]:
        """Copies, since the next step overwrites what a batch shows."""
        batch = self.batch
        ends = batch.terminations | batch.truncations
        parts = batch.observations, batch.action_masks, batch.seats.astype(np.int32)
        return tuple(np.array(part) for part in (*parts, batch.rewards, ends))

    def _step(self, actions: Any) -> tuple[Any, ...]:
        self.batch.step(np.asarray(actions, np.int64))
        return self.shown()

    def step(self, actions: Any) -> Any:
        """Take one action in every game, inside compiled code; in order, and never left out."""
        return io_callback(self._step, self.shapes, actions, ordered=True)


def choose(key: Any, masks: Any) -> Any:
    """A legal action a row, all equally likely; put your network here."""
    return jax.random.categorical(key, jnp.where(masks, 0.0, -jnp.inf))


def scan(games: Games, num_steps: int) -> Any:
    """A compiled function: from a key and what is shown to what is shown then, and the record.

    The record holds actions, whether they were legal, the seats that took them, rewards and ends,
    each `[T, B, ...]`.
    """

    def step(shown: Any, key: Any) -> tuple[Any, Any]:
        _, masks, seats, _, _ = shown
        actions = choose(key, masks)
        after = games.step(actions)
        legal = jnp.take_along_axis(masks, actions[:, None], axis=1)[:, 0]
        return after, (actions, legal, seats, after[3], after[4])

    def run(key: Any, shown: Any) -> Any:
        return jax.lax.scan(step, shown, jax.random.split(key, num_steps))

    return jax.jit(run)


def main(config: Config) -> float:
    """Play, and print decisions a second."""
    games = Games(config)
    run = scan(games, config.num_steps)
    keys = jax.random.split(jax.random.key(config.seed), config.scans + 1)
    shown, _ = jax.block_until_ready(run(keys[0], games.shown()))  # compiles
    start = time.perf_counter()
    for key in keys[1:]:
        shown, _ = jax.block_until_ready(run(key, shown))
    speed = config.scans * config.num_steps * config.num_games / (time.perf_counter() - start)
    print(f"{speed:,.0f} decisions a second")
    return speed


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
