"""Fit a policy by self-play: every seat's decisions train it, and it ends as a file to play with.

python train.py --preset quick
python evaluate.py --agents greedy runs/2p-quick-0
python train.py --resume runs/2p-quick-0
"""

import argparse
import json
import platform
import sys
from dataclasses import asdict, dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import tyro
from rich.console import Console
from safetensors import SafetensorError

import agents
from agents import ppo
from agents.referee import AgentError
from threeup_env import Batch
from threeup_env.cards import check_variant

INTERRUPTED: Final = 130
USAGE_ERROR: Final = 2

try:
    import torch
    from stable_baselines3.common import logger as sb3_logger

    from agents import checkpoint
    from agents.lookahead import LookAhead
    from agents.selfplay import Games, SelfPlayPPO
    from agents.watch import Watch
except ModuleNotFoundError as error:
    package = (error.name or "").partition(".")[0]
    if __name__ != "__main__" or package not in ("torch", "stable_baselines3", "sb3_contrib"):
        raise
    print(f"train.py: training needs {package}: pip install 'threeup[train]'", file=sys.stderr)
    sys.exit(USAGE_ERROR)


@dataclass(frozen=True)
class Config:
    """Fit a policy by self-play.

    It is PPO with masked actions. Each seat's decisions in a game are one trajectory, from
    my turn to my next turn, and the end of the game pays every seat its own outcome.
    Moves without a choice are played by the engine.
    """

    preset: Literal["quick", "full"] = "quick"
    """Values for everything below: quick takes a few minutes on 2 cores, full about an hour."""
    num_players: int = 2
    """Seats at the table, 2 to 6. A policy plays the table size that it was trained for."""
    seed: int = 0
    """Starts deals, network, choices and opponents."""
    run_dir: Path | None = None
    """Folder of the run; without it runs/<players>p-<preset>-<seed>."""
    resume: Path | None = None
    """Folder of a run to go on with, by its own settings. The one option that goes with it is
    --decisions, for another end: the learning rate then falls to 0 there."""
    decisions: int = 4_000_000
    """Decisions to train on."""
    variant: str = "standard"
    """Deck and layout: standard, listed or mini."""
    max_steps: int = 300
    """The action that cuts a game off if it doesn't win it. Fewer than in matches: two players
    who have learnt to circle would fill the rollouts with it."""

    num_games: int = 1024
    """Games played at once."""
    rollout_steps: int = 32
    """Decisions of each game between two updates."""
    num_epochs: int = 2
    """Passes over a rollout in an update."""
    minibatch: int = 2048
    """Decisions in a minibatch."""
    learning_rate: float = 1.5e-3
    """Of Adam at the start; falls linearly to 0."""
    entropy: float = 0.005
    """Weight of the entropy bonus."""
    gamma: float = 1.0
    """Discount from my turn to my next turn."""
    gae_lambda: float = 0.95
    """Lambda of the advantage estimates."""
    clip: float = 0.2
    """How far a probability ratio may go before its gradient is cut."""
    hidden: tuple[int, ...] = (128, 128)
    """Sizes of the hidden layers of the two networks, actor and critic."""
    levels: int = 0
    """Show the actor which features are at least 1, 2 and so on up to this, beside the counts."""
    privileged_critic: bool = True
    """Show the critic all hands, the face-down cards and the next draws. The policy never
    sees them."""

    opponents: tuple[str, ...] = ()
    """Agents that take part as opponents, such as greedy or careful."""
    opponent_share: float = 0.0
    """Share of the games with an opponent, a named one or a snapshot, at all seats but one.
    The current policy plays all seats of the others."""
    snapshot_every: int = 0
    """Decisions between two snapshots of the policy for the opponent pool; 0 for none."""
    pool_size: int = 8
    """Snapshots kept; a new one replaces the oldest."""
    one_seat: bool = False
    """Train one seat of each game, drawn afresh, and let opponents play all others: as an
    opponent share of 1, and against greedy unless other opponents are given."""

    start_from: str | None = None
    """A policy to start from: ppo, the shipped one, or a run's folder or policy file."""
    teacher: str | None = None
    """An agent to learn from at first, such as careful: it plays the policy's seats."""
    teacher_decisions: int = 0
    """Decisions of the teacher to learn from; self-play goes on from there."""
    lookahead: bool = False
    """Not PPO: imitate the teacher while there is a draw pile, then learn what each action is
    worth when played on with the true cards. The policy never sees them."""

    num_threads: int = 0
    """Threads of the networks; 0 for all cores. Another number gives another run."""
    temperature: float = 0.5
    """Of the exported policy's sampled play."""
    ladder: tuple[str, ...] = ("greedy",)
    """Agents that the policy is measured against during training."""
    ladder_every: int = 1_000_000
    """Decisions between two measurements."""
    ladder_deals: int = 1000
    """Deals a measurement, each under every rotation of the seats."""
    checkpoint_every: int = 1_000_000
    """Decisions between two checkpoints; there is one at the end as well."""

    def folder(self) -> Path:
        """Where the run is kept."""
        name = f"{self.num_players}p-{self.preset}-{self.seed}"
        return self.run_dir or Path("runs") / name


PRESETS: Final = {
    "quick": Config(),
    "full": Config(
        preset="full",
        decisions=60_000_000,
        ladder_every=4_000_000,
        checkpoint_every=2_000_000,
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        run(parse(given), given)
    # A SafetensorError is a full disk, an AgentError an agent of the ladder that broke a rule.
    except (ValueError, OSError, SafetensorError, AgentError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("train.py: interrupted; --resume goes on", file=sys.stderr)
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
    return from_json(json.loads(path.read_text())["config"], **changes)


def from_json(values: dict[str, Any], **changes: Any) -> Config:
    """A config from `config.json`, which knows no tuples and no paths."""
    known = {field.name for field in fields(Config)}
    kept: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known
    }
    return Config(**(kept | changes))


def check(config: Config) -> None:
    """Refuse settings that can't work before anything is written."""
    check_variant(config.variant, config.num_players)
    at_least_1 = ("decisions", "num_games", "rollout_steps", "num_epochs", "minibatch", "max_steps")
    for name in (*at_least_1, "pool_size", "ladder_every", "ladder_deals", "checkpoint_every"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name}: expected at least 1; got {getattr(config, name)}")
    for name in ("seed", "snapshot_every", "num_threads", "teacher_decisions", "levels"):
        if getattr(config, name) < 0:
            raise ValueError(f"{name}: expected at least 0; got {getattr(config, name)}")
    for name in ("learning_rate", "temperature"):
        if not getattr(config, name) > 0:
            raise ValueError(f"{name}: expected more than 0; got {getattr(config, name)}")
    if any(size < 1 for size in config.hidden):
        raise ValueError(f"hidden: expected sizes of at least 1; got {config.hidden}")
    if not 0 <= config.opponent_share <= 1:
        raise ValueError(f"opponent_share: expected 0 to 1; got {config.opponent_share}")
    if config.lookahead:
        if config.teacher is None or config.teacher_decisions:
            raise ValueError(
                "lookahead: expected a teacher for all of the run, such as careful; "
                f"got {config.teacher!r} and teacher_decisions {config.teacher_decisions}"
            )
    elif (config.teacher is None) != (config.teacher_decisions == 0):
        raise ValueError(
            "teacher: expected teacher_decisions above 0 beside it, or neither; "
            f"got {config.teacher!r} and {config.teacher_decisions}"
        )
    check_agents(config)
    if not config.one_seat:
        check_pool(config)


def check_agents(config: Config) -> None:
    """Refuse agents that don't exist, or that play another table."""
    game = Batch(1, config.num_players, config.variant)
    game.reset()
    single = [spec for spec in (config.teacher, config.start_from) if spec is not None]
    for spec in dict.fromkeys((*config.opponents, *config.ladder, *single)):
        agent = agents.make(spec)
        try:
            agent.act(game.observations, game.action_masks)
        except ValueError as error:  # e.g. a policy for another table size
            raise ValueError(f"agent {spec!r}: {error}") from error


def check_pool(config: Config) -> None:
    """Refuse opponents that would never play, and games with opponents that there aren't."""
    pool = bool(config.opponents or config.snapshot_every)
    if config.opponent_share > 0 and not pool:
        raise ValueError(
            "opponent_share: expected opponents or snapshot_every beside it; "
            f"got {config.opponent_share} alone"
        )
    if pool and config.opponent_share == 0:
        name = "opponents" if config.opponents else "snapshot_every"
        raise ValueError(
            f"{name}: expected one_seat or an opponent_share above 0 beside it; "
            f"got {getattr(config, name)!r} alone"
        )


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
    watch = Watch(config, folder, Console(stderr=True))
    watch.commands.append(" ".join(["train.py", *(arguments or [])]))
    if config.resume is None:
        if config.start_from is not None:
            model.policy.load_actor(ppo.policy_of(config.start_from, config.num_players))
        folder.mkdir(parents=True, exist_ok=True)
        if config.snapshot_every:
            model.add_snapshot(config.pool_size)
    else:
        watch.restore(checkpoint.load(folder / "checkpoint.safetensors", model))
        if model.num_timesteps >= config.decisions:
            raise ValueError(
                f"--resume: expected a run with decisions to go; {str(folder)!r} has taken its "
                f"{config.decisions:,} (--decisions takes it further)"
            )
    write_facts(config, folder, watch.commands)
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
    """Write down what the run is: its settings, commands and versions."""
    kept = asdict(replace(config, resume=None))
    kept["run_dir"] = str(folder)
    facts = {"config": kept, "commands": commands, "versions": versions()}
    temporary = folder / "config.json.part"
    temporary.write_text(json.dumps(facts, indent=1) + "\n")
    temporary.replace(folder / "config.json")


def _has(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
