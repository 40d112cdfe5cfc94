"""Agents by name. Importing this loads none of them, nor what they need."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from threeup_env.agent import Agent, MemoryAgent, check_plain

if TYPE_CHECKING:
    from threeup_agents.outside import code

SPECS: Final = {
    "random": "every legal action with the same probability",
    "greedy": "lays its highest cards; plays the lowest playable rank, all copies",
    "careful": "a hand-written player that counts cards",
    "flat:N": "Monte Carlo over N worlds drawn to agree with what it sees",
    "search:N": "tree search of N iterations over such worlds",
    "look:N": "careful while there is a draw pile; then each action played on in N such worlds",
    "policy": "the shipped network on the position after each action, with a look ahead",
    "policy:net": "the same network alone",
    "exact": "the solved variant mini at a table of two, from threeup exact; also exact:FILE",
    "FOLDER": "a training run's folder, or its policy.safetensors; also FOLDER:best, FOLDER:net",
    "FILE.py:NAME?depth=3": "what a class or function of a Python file gives, with arguments",
    "package.module:NAME": "likewise, of a module that can be imported",
    "FILE.onnx": "a network from observations to logits, sampled; FILE.onnx:best",
    "FILE.pt": "the same in TorchScript, with --trust: it holds a program",
    "FILE.zip": "PPO, A2C, DQN or MaskablePPO of Stable-Baselines3, with --trust: it holds pickles",
    "program:COMMAND": "a program in any language, by lines of JSON; e.g. program:node bot.js",
    "NAME=SPEC": "any of these, called NAME in results",
}
"""What `make` understands, and what each is."""
_BEST: Final = ":best"
_NET: Final = ":net"
_SHIPPED: Final = ("policy", "policy:net")
_PROGRAM: Final = "program:"
_EXACT: Final = "exact:"
_NAMED: Final = re.compile(r"([^=:?/\\]+)=(.+)", re.DOTALL)
_NETWORKS: Final = {".onnx": "onnx", ".pt": "torchscript", ".zip": "load"}
_DANGERS: Final = {
    ".zip": "it holds pickles, and loading a pickle runs whatever code is in it",
    ".pt": "it holds a program, whose operators can read and write files",
}


def make(spec: str, seed: int = 0, num_threads: int | None = None, trust: bool = False) -> Agent:
    """Make an agent from its name.

    Args:
        spec: a name of `SPECS` ("search:200" for "search:N"), or the path of a policy
            file or of a run folder that holds `policy.safetensors`, or a place in Python code,
            which is imported: that runs it.
        seed: starts the agent's own random stream.
        num_threads: of an agent that searches; None means one for each core. Its choices
            are the same for any number.
        trust: also load files that could run code of whoever wrote them.

    Raises:
        ValueError: no such agent, a number that isn't a positive integer, no such file, one that
            isn't trusted, or an agent with memory, which plays in the arena only.
        ImportError: a library that the file needs isn't installed.

    Example:
        >>> make("greedy").name
        'greedy'
    """
    agent: Any = make_any(spec, seed, num_threads, trust)
    check_plain(f"agent {spec!r}", agent)
    plain: Agent = agent
    return plain


def make_any(
    spec: str, seed: int = 0, num_threads: int | None = None, trust: bool = False
) -> Agent | MemoryAgent:
    """Make an agent from its name, with memory or without; otherwise as `make`."""
    if not isinstance(spec, str):
        raise ValueError(f"agent: expected a name, such as 'greedy'; got {spec!r}")
    _, spec = named(spec)
    if is_program(spec):
        from threeup_agents.programs.program import Program

        return Program(spec.removeprefix(_PROGRAM), seed)
    if spec == "exact" or spec.startswith(_EXACT):
        from threeup_agents.players import exact

        return exact.load(Path(spec.removeprefix(_EXACT)) if ":" in spec else None, seed)
    name, colon, number = spec.partition(":")
    if name in ("flat", "search", "look"):
        return _make_search(name, _count(spec, number), seed, num_threads)
    if not colon and name in ("random", "greedy"):
        from threeup_agents.players import simple

        return simple.Random(seed) if name == "random" else simple.Greedy()
    if spec == "careful":
        from threeup_agents.players.careful import Careful

        return Careful(seed)
    if network_file(spec) is not None:
        return _load_network(spec, seed, trust)
    if place := _place(spec):
        from threeup_agents.outside import code

        return code.make(place, seed)
    return _load_policy(spec, seed, num_threads)


def named(spec: str) -> tuple[str, str]:
    """Give what an agent is called in results, and its spec without that.

    A path that has a = before any slash is written with ./ before it.

    Raises:
        ValueError: the name is another agent's.

    Example:
        >>> named("best=mine.py:Mine?depth=3"), named("greedy")
        (('best', 'mine.py:Mine?depth=3'), ('greedy', 'greedy'))
    """
    found = _NAMED.fullmatch(spec)
    if found is None:
        return spec, spec
    name, rest = found.groups()
    if name in SPECS and name != rest:
        raise ValueError(f"agent {spec!r}: expected a name that isn't an agent's; got {name!r}")
    return name, rest


def network_file(spec: str) -> Path | None:
    """The file of another library's network that a spec names, there or not; None for others."""
    place = Path(named(spec)[1].removesuffix(_BEST))
    return place if place.suffix in _NETWORKS and not place.is_dir() else None


def is_code(spec: str) -> bool:
    """Whether a spec names a place in Python code."""
    return _place(spec) is not None


def source_files(spec: str) -> list[Path] | None:
    """The files of a place in Python code, see `threeup_agents.outside.code`; None for others.

    Raises:
        ValueError: no such file or module.
    """
    place = _place(spec)
    if place is None:
        return None
    from threeup_agents.outside import code

    return code.source_files(place)


def without_path(spec: str) -> str:
    """What a spec says beside the place of a file: it stays the same where that is moved.

    >>> without_path("best=runs/mine.py:Mine?depth=3"), without_path("a/b.onnx:best")
    (':Mine?depth=3', ':best')
    """
    _, spec = named(spec)
    if network_file(spec) or policy_file(spec):
        return next((ending for ending in (_BEST, _NET) if spec.endswith(ending)), "")
    place = _place(spec)
    return spec if place is None or not place.is_file else spec.removeprefix(place.place)


def runs_code(spec: str) -> bool:
    """Whether making the agent could run code that isn't of this project."""
    path = network_file(spec)
    return is_code(spec) or is_program(spec) or (path is not None and path.suffix in _DANGERS)


def check_trusted(found: Iterable[str], where: str, trust: bool = False) -> None:
    """Refuse specs that a file names and that would run code, unless the file is trusted.

    Args:
        found: the specs.
        where: what an error begins with.
        trust: whether a person has said so.

    Raises:
        ValueError: names the spec.
    """
    for spec in found:
        if runs_code(spec) and not trust:
            raise ValueError(
                f"{where}: expected agents that run no code of others, or --trust (in Python "
                f"trust=True); got {spec!r}"
            )


def is_program(spec: str) -> bool:
    """Whether a spec is a command to run, with a name before it or not.

    >>> is_program("bot=program:python bot.py --depth=3"), is_program("policy:net")
    (True, False)
    """
    return named(spec)[1].startswith(_PROGRAM)


def _make_search(name: str, count: int, seed: int, num_threads: int | None) -> Agent:
    from threeup_agents.search import searchers

    kinds = {"flat": searchers.Flat, "search": searchers.Search, "look": searchers.Look}
    agent: Agent = kinds[name](count, seed, num_threads)
    return agent


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
    _, spec = named(spec)
    if spec in _SHIPPED:
        return None  # though a folder may be called so
    place = Path(spec.removesuffix(_BEST).removesuffix(_NET))
    if spec and place.is_dir():
        place = place / "policy.safetensors"
    return place if place.suffix == ".safetensors" else None


def about(spec: str) -> str:
    """What the agent of a spec does, with its way of choosing.

    >>> about("runs/a:best")
    'always the most probable action of the policy'
    """
    _, spec = named(spec)
    name = spec.partition(":")[0]
    if is_program(spec):
        return "a program of its own"
    if name in ("flat", "search", "look"):
        return SPECS[f"{name}:N"]
    if name == "exact":
        return "a solved game's strategy"
    if is_code(spec):
        return "what Python code of its own says"
    if spec in SPECS:
        return SPECS[spec]
    if (path := policy_file(spec)) and _is_positional(path):
        return SPECS["policy:net" if spec.endswith(_NET) else "policy"].replace("shipped ", "")
    if spec.endswith(_BEST):
        return "always the most probable action of the policy"
    return "actions by the probabilities of the policy, at its temperature"


def _load_policy(spec: str, seed: int, num_threads: int | None) -> Agent:
    path = policy_file(spec)
    if path is None and spec not in _SHIPPED:
        known = ", ".join(SPECS)
        raise ValueError(f"agent: expected one of {known}; got {spec!r}")
    if path is not None and not path.is_file():
        raise ValueError(f"agent {spec!r}: expected the policy file {str(path)!r}; there is none")
    if path is None or _is_positional(path):
        from threeup_agents.search import positional

        if spec.endswith(_BEST):
            raise ValueError(f"agent {spec!r}: expected no {_BEST}, it takes the best anyway")
        return positional.load(path, seed, not spec.endswith(_NET), num_threads)
    from threeup_agents.players import policy

    if spec.endswith(_NET):
        raise ValueError(f"agent {spec!r}: expected no {_NET}; this policy never looks ahead")
    return policy.load(path, seed, best_action=spec.endswith(_BEST))


def _is_positional(path: Path) -> bool:
    """Whether a policy is a network on positions after actions, not on observations."""
    from threeup_agents.search import positional

    return positional.is_positional(path)


def _place(spec: str) -> "code.Code | None":
    """The place in Python code that a spec names; None for others."""
    _, spec = named(spec)
    if ":" not in spec or spec.partition(":")[0] in SPECS or policy_file(spec) or is_program(spec):
        return None
    from threeup_agents.outside import code

    return code.parse(spec)


def _load_network(spec: str, seed: int, trust: bool) -> Agent:
    path = network_file(spec)
    assert path is not None
    if not path.is_file():
        raise ValueError(f"agent {spec!r}: expected the policy file {str(path)!r}; there is none")
    if path.suffix in _DANGERS and not trust:
        raise ValueError(
            f"agent {spec!r}: expected trust (threeup evaluate --trust, in Python trust=True) "
            f"for a {path.suffix} file: {_DANGERS[path.suffix]}. Give it if you trust who made it"
        )
    from threeup_agents.outside import networks, sb3_zip

    module = sb3_zip if path.suffix == ".zip" else networks
    agent: Agent = getattr(module, _NETWORKS[path.suffix])(path, seed, spec.endswith(_BEST))
    return agent
