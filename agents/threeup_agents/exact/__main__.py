"""Solve a small variant exactly, and say how exploitable agents are in it.

    threeup exact --out runs/exact
    threeup exact --out runs/exact --agents greedy careful policy search:50
    threeup evaluate --agents exact greedy --variant mini --max-steps 40

The same command goes on with a run that was stopped.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from safetensors.numpy import save_file

from threeup_agents import specs
from threeup_agents.arena.progress import Bar
from threeup_agents.commands import read, refuse
from threeup_agents.exact import cfr
from threeup_agents.exact.exploitability import (
    SAMPLES,
    as_played,
    as_strategy,
    strategy_of,
    whole_tree,
)
from threeup_agents.exact.tree import MAX_STEPS, NUM_SEATS, Tree
from threeup_agents.files import atomic_write, hold, read_tensors, write_text
from threeup_env.engine.arguments import check_count
from threeup_env.engine.state import ENV_ID

STATE: Final = "state.safetensors"
STRATEGY: Final = "strategy.safetensors"
RESULTS: Final = "results.json"
INTERRUPTED: Final = 130
_STATED: Final = 25
"""Iterations between two times that the exploitability is worked out and the state kept."""


@dataclass(frozen=True)
class Config:
    """Find an equilibrium of a small variant at a table of two."""

    out: Path = Path("runs/exact")
    """Folder: strategy.safetensors, which is an agent; results.json; what a run goes on from."""
    iterations: int = 400
    """Of CFR+; a tenth of them is enough for a NashConv below 0.005."""
    variant: str = "mini"
    """Deck and layout."""
    max_steps: int = MAX_STEPS
    """The action that cuts a game off if it doesn't win it."""
    agents: tuple[str, ...] = ()
    """Agents to say of how exploitable they are; they choose from the observation alone."""
    samples: int = SAMPLES
    """How often an agent that mixes and can't say how is asked at each observation."""


def main(arguments: Sequence[str] | None = None, prog: str = "threeup exact") -> int:
    """Run the command line, which errors call `prog`; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    config = read(Config, arguments, prog, __doc__)
    try:
        run(config)
    except (ValueError, OSError) as error:
        return refuse(prog, error)
    except KeyboardInterrupt:
        print(f"{prog}: interrupted; the same command goes on in {config.out}", file=sys.stderr)
        return INTERRUPTED
    return 0


def run(config: Config) -> dict[str, Any]:
    """Solve, print and write; gives what `results.json` holds.

    Raises:
        ValueError: a bad setting, an unknown agent, or a folder of another run.
        OSError: the results can't be written.
    """
    for name in ("iterations", "max_steps", "samples"):
        check_count(name, getattr(config, name))
    agents = {spec: specs.make(spec) for spec in config.agents}
    with hold(config.out):
        tree = whole_tree(config.variant, config.max_steps)
        solver, curve = solve(config, tree)
        facts = {
            "variant": config.variant,
            "max_steps": config.max_steps,
            "iterations": solver.iterations,
        }
        played = as_played(tree, solver.average(), facts)
        strategy = as_strategy(tree, played)
        facts["nash_conv"] = cfr.nash_conv(tree, strategy)
        facts["value"] = cfr.value(tree, strategy)
        as_played(tree, solver.average(), facts).save(config.out / STRATEGY)
        rows: list[dict[str, Any]] = [{"agent": "exact", "nash_conv": facts["nash_conv"]}]
        for spec, agent in agents.items():
            rows.append({"agent": spec} | exploited(tree, agent, config.samples))
        results = facts | {"env": ENV_ID, "curve": curve, "agents": rows, "samples": config.samples}
        write_text(config.out / RESULTS, json.dumps(results, indent=2) + "\n")
    show(results)
    print(f"results: {config.out / STRATEGY}, {RESULTS}")
    return results


def solve(config: Config, tree: Tree) -> tuple[cfr.Solver, list[list[float]]]:
    """Iterate to the end; pairs of iterations and NashConv on the way."""
    path = config.out / STATE
    identity = json.dumps([ENV_ID, config.variant, config.max_steps, len(tree.action)])
    solver = cfr.Solver.begin(tree)
    curve: list[list[float]] = []
    if path.exists():
        solver, curve = _read(path, identity, tree)
    with Bar("solving", config.iterations, "iterations") as bar:
        bar.advance(min(solver.iterations, config.iterations))
        while solver.iterations < config.iterations:
            solver.iterate()
            bar.advance()
            if solver.iterations % _STATED == 0 or solver.iterations == config.iterations:
                found = cfr.nash_conv(tree, solver.average())
                curve.append([solver.iterations, found])
                tensors = {"regrets": solver.regrets, "total": solver.total}
                tensors["curve"] = np.array(curve)
                with atomic_write(path) as temporary:
                    save_file(tensors, temporary, metadata={"run": identity})
    return solver, curve


def _read(path: Path, identity: str, tree: Tree) -> tuple[cfr.Solver, list[list[float]]]:
    header, tensors = read_tensors(path, f"{path}: expected the state of a run", "numpy")
    if header.get("run") != identity:
        raise ValueError(
            f"out: {path.parent} holds the run {header.get('run')}; got {identity}. "
            "Choose another folder"
        )
    shapes = {name: tensors[name].shape for name in ("regrets", "total") if name in tensors}
    curve = tensors.get("curve", np.zeros(0))
    if set(shapes.values()) != {tree.action.shape} or len(shapes) != 2 or curve.ndim != 2:
        raise ValueError(
            f"{path}: expected the regrets of {len(tree.action)} actions; got {shapes}"
        )
    iterations = int(curve[-1, 0])
    return cfr.Solver(tree, tensors["regrets"], tensors["total"], iterations), curve.tolist()


def exploited(tree: Tree, agent: Any, samples: int) -> dict[str, float]:
    """NashConv of an agent, and what a best response wins at each seat."""
    strategy = strategy_of(agent, tree, samples)
    gains = [cfr.best_response(tree, strategy, seat)[0] for seat in range(NUM_SEATS)]
    return {"nash_conv": sum(gains), "as_seat_0": gains[0], "as_seat_1": gains[1]}


def show(results: dict[str, Any]) -> None:
    """Print the table."""
    title = (
        f"{results['variant']}, cut off at {results['max_steps']} actions: seat 0 wins "
        f"{results['value']:.4f} more than it loses ({results['iterations']} iterations)"
    )
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("agent", "NashConv", "best response as seat 0", "as seat 1"):
        table.add_column(name, justify="left" if name == "agent" else "right")
    for row in results["agents"]:
        table.add_row(row["agent"], *_cells(row))
    Console().print(table)


def _cells(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['nash_conv']:.6f}"
    for name in ("as_seat_0", "as_seat_1"):
        yield f"{row[name]:+.4f}" if name in row else ""


if __name__ == "__main__":
    sys.exit(main())
