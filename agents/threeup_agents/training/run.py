"""A training run from its settings to its folder."""

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from stable_baselines3.common import logger as sb3_logger

from threeup_agents.files import hold, write_text
from threeup_agents.training import checkpoint
from threeup_agents.training.callback import Watch
from threeup_agents.training.games import Games
from threeup_agents.training.interruption import StopRequest
from threeup_agents.training.lookahead import LookAhead
from threeup_agents.training.mirror_descent import MirrorDescent
from threeup_agents.training.selfplay import DivergedError, SelfPlayPPO, policy_of
from threeup_agents.training.settings import (
    LOOKAHEAD_OPPONENTS,
    LOOKAHEAD_SHARE,
    Config,
    check,
)
from threeup_env import Batch
from threeup_env.engine.rng import TRAINING


def build(config: Config) -> SelfPlayPPO:
    """Make the games and the learner."""
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=TRAINING))
    batch = Batch(
        config.num_games, config.num_players, config.variant, config.max_steps, config.seed
    )
    share, opponents = config.opponent_share, config.opponents
    if config.one_seat:
        share, opponents = 1.0, opponents or ("greedy",)
    elif config.lookahead and not opponents:
        share, opponents = LOOKAHEAD_SHARE, LOOKAHEAD_OPPONENTS
    learner: Callable[..., SelfPlayPPO] = LookAhead if config.lookahead else SelfPlayPPO
    if config.magnet:
        learner = partial(MirrorDescent, magnet=config.magnet, half_life=config.magnet_half_life)
    return learner(
        Games(batch, config.privileged_critic, share, rng),
        config.hidden,
        config.levels,
        rng,
        opponents,
        config.teacher,
        config.teacher_decisions,
        learning_rate=lambda remaining: config.learning_rate * max(remaining, 0.0),
        n_steps=config.rollout_steps,
        batch_size=config.minibatch,
        n_epochs=config.num_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip,
        ent_coef=config.entropy,
        seed=config.seed,
    )


def versions() -> dict[str, str]:
    """What the run depends on."""
    names = ("numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}


def run(config: Config, arguments: list[str] | None = None) -> Path:
    """Train, and leave the run's folder with its policy.

    Args:
        config: what to do.
        arguments: the command line's, for the record.

    Returns:
        The exported policy.

    Raises:
        ValueError: settings that can't work, a checkpoint that doesn't fit, a folder that
            another process trains in, or numbers that have ceased to be finite.
        OSError: the folder can't be written.
        StoppedError: as somebody has asked for; the run can go on.
    """
    check(config)
    folder = config.resume or config.folder()
    _check_new(config, folder)
    torch.set_num_threads(config.num_threads or torch.get_num_threads())
    model = build(config)
    console = Console(stderr=True)
    with hold(folder), StopRequest(console.print) as request:
        _check_new(config, folder)  # another run may have begun meanwhile
        watch = Watch(config, folder, console, request, write_facts)
        watch.commands.append(" ".join(["threeup train", *(arguments or [])]))
        _begin(config, folder, model, watch)
        formats = ["tensorboard"] if _has("tensorboard") else []
        model.set_logger(sb3_logger.configure(str(folder / "logs"), formats))
        try:
            with watch:
                model.learn(
                    config.decisions - model.num_timesteps,
                    callback=watch,
                    reset_num_timesteps=config.resume is None,
                )
        except DivergedError as error:
            last = checkpoint.decisions(folder / checkpoint.FILE)
            raise ValueError(
                f"{error}; --resume {folder} goes on from {last:,} decisions, "
                "a new run with a smaller --learning-rate may not diverge"
            ) from error
    return folder / "policy.safetensors"


def _check_new(config: Config, folder: Path) -> None:
    if config.resume is None and (folder / "config.json").exists():
        raise ValueError(f"run_dir: expected a new folder; {str(folder)!r} holds a run (--resume?)")


def _begin(config: Config, folder: Path, model: SelfPlayPPO, watch: Watch) -> None:
    """Start from a policy or go on from the folder's checkpoint."""
    if config.resume is None:
        if config.start_from is not None:
            start = policy_of(config.start_from)
            model.policy.load_actor(start)
            watch.started_from = dict(start.training)
        if config.snapshot_every:
            model.add_snapshot(config.pool_size)
        return
    watch.restore(checkpoint.load(folder / checkpoint.FILE, model))
    if model.num_timesteps >= config.decisions:
        raise ValueError(
            f"resume: expected a run with decisions to go; {str(folder)!r} has taken its "
            f"{config.decisions:,} (--decisions takes it further)"
        )


def write_facts(config: Config, folder: Path, commands: list[str]) -> None:
    """Write down what the run is: its settings, commands and versions.

    The file comes after the first checkpoint: where it is, there is a run to go on with.
    """
    kept = asdict(replace(config, resume=None))
    kept["run_dir"] = str(folder)
    facts = {"config": kept, "commands": commands, "versions": versions()}
    write_text(folder / "config.json", json.dumps(facts, indent=1) + "\n")


def _has(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
