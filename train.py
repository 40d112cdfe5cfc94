"""Fit a policy by self-play: every seat's decisions train it, and it ends as a file to play with.

python train.py --preset quick
python evaluate.py --agents greedy runs/2p-quick-0
python train.py --resume runs/2p-quick-0
"""

import argparse
import json
import platform
import sys
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np
import tyro
from rich.console import Console
from safetensors import SafetensorError

from agents import ppo
from agents.files import write_text
from agents.referee import AgentError
from agents.settings import PRESETS, Config, check, read_config
from threeup_env import Batch

__all__ = ["PRESETS", "Config", "build", "check", "main", "parse", "run"]

INTERRUPTED: Final = 130
USAGE_ERROR: Final = 2

try:
    import torch
    from stable_baselines3.common import logger as sb3_logger

    from agents import checkpoint
    from agents.lookahead import LookAhead
    from agents.selfplay import SelfPlayPPO
    from agents.training_games import Games
    from agents.watch import Watch
except ModuleNotFoundError as error:
    package = (error.name or "").partition(".")[0]
    if __name__ != "__main__" or package not in ("torch", "stable_baselines3", "sb3_contrib"):
        raise
    print(f"train.py: training needs {package}: pip install 'threeup[train]'", file=sys.stderr)
    sys.exit(USAGE_ERROR)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    config = None
    try:
        config = parse(given)
        run(config, given)
    # A SafetensorError is a full disk, an AgentError an agent of the ladder that broke a rule.
    except (ValueError, OSError, SafetensorError, AgentError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        folder = None if config is None else config.resume or config.folder()
        goes_on = folder and (folder / "config.json").exists()
        hint = f"; --resume {folder} goes on" if goes_on else " before the run began"
        print(f"train.py: interrupted{hint}", file=sys.stderr)
        return INTERRUPTED
    return 0


def parse(arguments: list[str]) -> Config:
    """Read the options; those not given have the preset's values, or the resumed run's.

    Raises:
        ValueError: other options beside `--resume`, or a folder that holds no run.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--preset", choices=PRESETS, default="quick")
    first.add_argument("--decisions", type=int)
    known = first.parse_known_args(arguments)[0]
    config = tyro.cli(Config, args=arguments, default=PRESETS[known.preset], description=__doc__)
    if config.resume is None:
        return config
    changes: dict[str, Any] = {"resume": config.resume}
    if known.decisions is not None:
        changes["decisions"] = known.decisions
    if config != replace(PRESETS["quick"], **changes):
        raise ValueError(
            "--resume: expected no other option but --decisions; a run goes on by its own settings"
        )
    path = config.resume / "config.json"
    if not path.is_file():
        raise ValueError(f"--resume: expected a run folder; {str(path)!r} isn't there")
    return replace(read_config(path), **changes)


def build(config: Config) -> SelfPlayPPO:
    """Make the games and the learner."""
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(1,)))
    batch = Batch(
        config.num_games, config.num_players, config.variant, config.max_steps, config.seed
    )
    share, opponents = config.opponent_share, config.opponents
    if config.one_seat:
        share, opponents = 1.0, opponents or ("greedy",)
    learner = LookAhead if config.lookahead else SelfPlayPPO
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
        ValueError: settings that can't work, or a checkpoint that doesn't fit.
    """
    check(config)
    folder = config.resume or config.folder()
    if config.resume is None and (folder / "config.json").exists():
        raise ValueError(f"run_dir: expected a new folder; {str(folder)!r} holds a run (--resume?)")
    torch.set_num_threads(config.num_threads or torch.get_num_threads())
    model = build(config)
    watch = Watch(config, folder, Console(stderr=True), write_facts)
    watch.commands.append(" ".join(["train.py", *(arguments or [])]))
    if config.resume is None:
        if config.start_from is not None:
            start = ppo.policy_of(config.start_from, config.num_players)
            model.policy.load_actor(start)
            watch.started_from = dict(start.training)
        folder.mkdir(parents=True, exist_ok=True)
        if config.snapshot_every:
            model.add_snapshot(config.pool_size)
    else:
        watch.restore(checkpoint.load(folder / checkpoint.FILE, model))
        if model.num_timesteps >= config.decisions:
            raise ValueError(
                f"--resume: expected a run with decisions to go; {str(folder)!r} has taken its "
                f"{config.decisions:,} (--decisions takes it further)"
            )
    formats = ["tensorboard"] if _has("tensorboard") else []
    model.set_logger(sb3_logger.configure(str(folder / "logs"), formats))
    with watch:
        model.learn(
            config.decisions - model.num_timesteps,
            callback=watch,
            reset_num_timesteps=config.resume is None,
        )
    return folder / "policy.safetensors"


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


if __name__ == "__main__":
    sys.exit(main())
