"""The settings of a training run: what `threeup train` documents, reads and refuses."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from threeup_agents import specs
from threeup_agents.files import read_json
from threeup_env import Batch
from threeup_env.engine.cards import check_variant


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
    """Deck and layout: standard, listed or mini. While a policy learns mini in at most 40
    steps, its NashConv is measured too: what best responses gain against it."""
    max_steps: int = 1000
    """The action that cuts a game off if it doesn't win it; nobody has won then. With --variant
    mini 40, unless given."""

    num_games: int = 1024
    """Games played at once."""
    rollout_steps: int = 32
    """Decisions of each game between two updates."""
    num_epochs: int = 2
    """Passes over a rollout in an update."""
    minibatch: int = 2048
    """Decisions in a minibatch, at most those of a rollout."""
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
    """A policy to start from: a run's folder or policy file."""
    teacher: str | None = None
    """An agent to learn from at first, such as careful: it plays the policy's seats."""
    teacher_decisions: int = 0
    """Decisions of the teacher to learn from; self-play goes on from there."""
    magnet: float = 0.0
    """For a policy that is hard to exploit: magnetic mirror descent in place of PPO's clip and
    entropy bonus. The weight of the pull to a policy that follows slowly, such as 0.1; 0: PPO."""
    magnet_half_life: int = 200_000
    """Decisions in which the magnet goes half of the way to where the policy stands; with 0 it
    stays where it began, near the uniform policy."""
    lookahead: bool = False
    """Not PPO: learn what each action gains over the one of careful, by the position after it, when
    played on in drawn worlds: between two always, at larger tables once the draw pile is gone;
    elsewhere careful plays. These are the decisions that count. Half of the games are against
    greedy and careful unless opponents are given. hidden takes two sizes, such as 256 64."""

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


LOOKAHEAD_OPPONENTS: Final = ("greedy", "careful")
LOOKAHEAD_SHARE: Final = 0.5
"""With lookahead, who sits at the other seats in how many of the games, unless told otherwise."""
PRESETS: Final = {
    "quick": Config(),
    "full": Config(
        preset="full",
        decisions=60_000_000,
        ladder=("greedy", "careful"),
        ladder_every=4_000_000,
        checkpoint_every=2_000_000,
    ),
}


def read_config(path: Path) -> Config:
    """Read the settings of a run; those that came later than the run have their defaults.

    Raises:
        ValueError: a damaged file, or one that isn't a run's.
    """
    values = read_json(path).get("config")
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected the settings of a run under 'config'; got {values!r}")
    if unknown := sorted(values.keys() - {field.name for field in fields(Config)}):
        raise ValueError(
            f"{path}: expected settings of a training run; got {', '.join(unknown)} too"
        )
    kept: dict[str, Any] = {}
    for name, value in values.items():
        kept[name] = tuple(value) if isinstance(value, list) else value  # JSON knows no tuples
        default = getattr(PRESETS["quick"], name)
        if not _is_like(kept[name], default):
            raise ValueError(f"{path}: expected {name} like {default!r}; got {value!r}")
    return Config(**(kept | {"run_dir": path.parent}))


def _is_like(value: Any, default: Any) -> bool:
    """Whether a setting in a file has the type of its default; no bool is a number."""
    if isinstance(default, tuple):
        kind = type(default[0]) if default else str  # opponents: none by default
        return isinstance(value, tuple) and all(type(element) is kind for element in value)
    kinds = {float: (float, int), type(None): (str, type(None))}  # others: the default's own
    return type(value) in kinds.get(type(default), (type(default),))


def check(config: Config) -> None:
    """Refuse settings that can't work before anything is written."""
    check_variant(config.variant, config.num_players)
    check_ranges(config)
    if config.lookahead:
        check_lookahead(config)
    if (config.teacher is None) != (config.teacher_decisions == 0):
        raise ValueError(
            "teacher: expected teacher_decisions above 0 beside it, or neither; "
            f"got {config.teacher!r} and {config.teacher_decisions}"
        )
    check_agents(config)
    if not config.one_seat:
        check_pool(config)


def check_lookahead(config: Config) -> None:
    """Refuse what looking ahead can't use."""
    if len(config.hidden) != 2:  # the network that plays has two
        raise ValueError(f"lookahead: expected two hidden sizes; got {config.hidden}")
    unused: dict[str, Any] = {"teacher": None, "start_from": None}
    unused |= {"levels": 0, "snapshot_every": 0, "magnet": 0}
    for name, nothing in unused.items():
        if getattr(config, name) != nothing:
            raise ValueError(f"lookahead: expected no {name}; got {getattr(config, name)!r}")


def check_ranges(config: Config) -> None:
    """Refuse numbers that can't work."""
    at_least_1 = ("decisions", "num_games", "rollout_steps", "num_epochs", "max_steps")
    at_least_0 = (
        "seed",
        "snapshot_every",
        "num_threads",
        "teacher_decisions",
        "levels",
        "magnet_half_life",
    )
    lowest = dict.fromkeys((*at_least_0, "entropy", "magnet"), 0) | {"minibatch": 2}
    for name in (*at_least_1, "pool_size", "ladder_every", "ladder_deals", "checkpoint_every"):
        lowest[name] = 1
    for name, low in lowest.items():
        if not getattr(config, name) >= low:
            raise ValueError(f"{name}: expected at least {low}; got {getattr(config, name)}")
    for name in ("learning_rate", "temperature", "clip", "entropy", "magnet"):
        if math.isinf(getattr(config, name)):
            raise ValueError(f"{name}: expected a finite number; got {getattr(config, name)}")
    for name in ("learning_rate", "temperature", "clip"):
        if not getattr(config, name) > 0:
            raise ValueError(f"{name}: expected more than 0; got {getattr(config, name)}")
    for name in ("opponent_share", "gamma", "gae_lambda"):
        if not 0 <= getattr(config, name) <= 1:
            raise ValueError(f"{name}: expected 0 to 1; got {getattr(config, name)}")
    rollout = config.num_games * config.rollout_steps
    if config.resume is None and config.minibatch > max(rollout, lowest["minibatch"]):
        raise ValueError(
            f"minibatch: expected at most the {rollout:,} decisions of a rollout, num_games "
            f"{config.num_games} times rollout_steps {config.rollout_steps}; "
            f"got {config.minibatch:,}"
        )
    if any(size < 1 for size in config.hidden):
        raise ValueError(f"hidden: expected sizes of at least 1; got {config.hidden}")


def check_agents(config: Config) -> None:
    """Refuse agents that don't exist, or that play another table."""
    game = Batch(1, config.num_players, config.variant)
    game.reset()
    start = None if config.resume else config.start_from  # a run that goes on has started
    single = [spec for spec in (config.teacher, start) if spec is not None]
    wanted = dict.fromkeys((*config.opponents, *config.ladder, *single))
    for spec in wanted:
        # A run that goes on takes them from its folder, which is data.
        if specs.runs_code(spec):
            raise ValueError(f"agents: expected some that run no code of others; got {spec!r}")
        agent = specs.make(spec)
        try:
            agent.act(game.observations.copy(), game.action_masks.copy())
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
