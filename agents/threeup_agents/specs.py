"""Agents by name. Importing this loads none of them, nor what they need."""

import re
from pathlib import Path
from typing import Any, Final

from threeup_env.agent import Agent, MemoryAgent, check_plain

SPECS: Final = {
    "random": "every legal action with the same probability",
    "greedy": "lays its highest cards; plays the lowest playable rank, all copies",
    "careful": "a hand-written player that counts cards",
    "flat:N": "Monte Carlo over N worlds drawn to agree with what it sees",
    "search:N": "tree search of N iterations over such worlds",
    "ppo": "the shipped policy for the table size it sees, sampled at its temperature",
    "ppo:best": "as ppo, always the most probable action; also FOLDER:best",
    "FOLDER": "a training run's folder, or its policy.safetensors, likewise",
    "program:COMMAND": "a program in any language, by lines of JSON; e.g. program:node bot.js",
}
"""What `make` understands, and what each is."""
_BEST: Final = ":best"
_PROGRAM: Final = re.compile(r"(?:[^=:?/\\]+=)?program:(.*)", re.DOTALL)


def make(spec: str, seed: int = 0, num_threads: int | None = None) -> Agent:
    """Make an agent from its name.

    Args:
        spec: a name of `SPECS` ("search:200" for "search:N"), or the path of a policy
            file or of a run folder that holds `policy.safetensors`.
        seed: starts the agent's own random stream.
        num_threads: of an agent that searches; None means one for each core. Its choices
            are the same for any number.

    Raises:
        ValueError: no such agent, a number that isn't a positive integer, no such file, or an
            agent with memory, which plays in the arena only.

    Example:
        >>> make("greedy").name
        'greedy'
    """
    agent: Any = make_any(spec, seed, num_threads)
    check_plain(f"agent {spec!r}", agent)
    plain: Agent = agent
    return plain


def make_any(spec: str, seed: int = 0, num_threads: int | None = None) -> Agent | MemoryAgent:
    """Make an agent from its name, with memory or without; otherwise as `make`."""
    if is_program(spec):
        from threeup_agents.programs.program import Program

        return Program(spec.partition("program:")[2], seed)
    name, colon, number = spec.partition(":")
    if name in ("flat", "search"):
        return _make_search(name, _count(spec, number), seed, num_threads)
    if not colon and name in ("random", "greedy"):
        from threeup_agents.players import simple

        return simple.Random(seed) if name == "random" else simple.Greedy()
    if spec == "careful":
        from threeup_agents.players.careful import Careful

        return Careful(seed)
    return _load_policy(spec, seed)


def is_program(spec: str) -> bool:
    """Whether a spec is a command to run, with a name before it or not.

    >>> is_program("bot=program:python bot.py --depth=3"), is_program("ppo:best")
    (True, False)
    """
    return _PROGRAM.fullmatch(spec) is not None


def _make_search(name: str, count: int, seed: int, num_threads: int | None) -> Agent:
    from threeup_agents.search import searchers

    if name == "flat":
        return searchers.Flat(count, seed, num_threads)
    return searchers.Search(count, seed, num_threads)


def _count(spec: str, number: str) -> int:
    """Read the number of "search:200"."""
    if not (number.isascii() and number.isdigit() and int(number) > 0):
        name = spec.partition(":")[0]
        raise ValueError(
            f"agent {spec!r}: expected {name}:N with an integer N of at least 1, "
            f"e.g. '{name}:200'; got {number!r}"
        )
    return int(number)


def policy_file(spec: str) -> Path | None:
    """The policy file that a spec names by a path, there or not; None for other specs."""
    place = Path(spec.removesuffix(_BEST))
    if spec and place.is_dir():
        place = place / "policy.safetensors"
    return place if place.suffix == ".safetensors" else None


def about(spec: str) -> str:
    """What the agent of a spec does, with its way of choosing.

    >>> about("ppo:best")
    'always the most probable action of the policy'
    """
    name = spec.partition(":")[0]
    if is_program(spec):
        return "a program of its own"
    if name in ("flat", "search"):
        return SPECS[f"{name}:N"]
    if spec in SPECS and name != "ppo":
        return SPECS[spec]
    if spec.endswith(_BEST):
        return "always the most probable action of the policy"
    return "actions by the probabilities of the policy, at its temperature"


def _load_policy(spec: str, seed: int) -> Agent:
    path = None if spec.removesuffix(_BEST) == "ppo" else policy_file(spec)
    if path is None and spec.removesuffix(_BEST) != "ppo":
        known = ", ".join(SPECS)
        raise ValueError(f"agent: expected one of {known}; got {spec!r}")
    if path is not None and not path.is_file():
        raise ValueError(f"agent {spec!r}: expected the policy file {str(path)!r}; there is none")
    from threeup_agents.players import policy

    return policy.load(path, seed, best_action=spec.endswith(_BEST))
