"""Writes the parts of the pages that come from code and from measured files.

    python -m docs.generated

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->` in a README.md or in a page.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from threeup_agents.analysis.dictionary import KEYS
from threeup_agents.programs import program
from threeup_env import RANK_NAMES, VARIANTS
from threeup_env.envs import aec

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "docs" / "results"
COVERAGE: Final = ROOT / "tests" / "benchmarks" / "results" / "coverage.md"
LEARNERS: Final = COVERAGE.with_name("exploitability_curves.md")
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
)
GREEDY: Final = "greedy"
TRUE_CARDS: Final = "true:search:200"
IN_README: Final = ("careful", "policy:net", "look:64", "policy", "search:200", "search:1000")

EXTRAS: Final = {
    "(none)": "the environment, the agents, `threeup evaluate`",
    "[train]": "`threeup train`: stable-baselines3, sb3-contrib, torch, tensorboard "
    "(`pip install torch` first to choose a CPU or GPU build)",
    "[render]": 'pictures: `render_mode="rgb_array"` and `"human"`',
    "[play]": "`threeup play`: a game against agents in the terminal or a browser",
    "[notebooks]": "the notebooks: jupyterlab, ipywidgets, pandas (`03` needs `[train]` too)",
    "[onnx]": "policies in `.onnx` files",
    "[ray]": "`threeup evaluate --backend ray`",
    "[openspiel]": "`threeup evaluate --second-views`",
    "[docs]": "these pages as a web site",
    "[dev]": "the tests, ruff, mypy",
}
"""What each extra of pyproject.toml is for."""
BASE: Final = ("python", "numpy", "numba", "gymnasium", "pettingzoo")
"""Versions that nearly all recipes run with alike."""

Row = dict[str, Any]


def read(name: str) -> Any:
    """What a measuring command has left."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, its cells as they are."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def share(row: Row | None) -> str:
    r"""A win share with half the width of its interval, or nothing.

    A line may break before the sign, but not after it.

    >>> share({"win_share": 0.5, "low": 0.49, "high": 0.512})
    '0.500 ±\xa00.011'
    """
    if row is None:
        return ""
    return f"{row['win_share']:.3f} ±\xa0{(row['high'] - row['low']) / 2:.3f}"


def named(agent: str) -> str:
    """An agent as the tables call it; what is none stands in brackets."""
    return f"(`{agent}`)" if agent.startswith("true:") else f"`{agent}`"


def small(value: float) -> str:
    """To three places, or five where that says nothing.

    >>> small(0.3924), small(0.000013)
    ('0.392', '0.00001')
    """
    return f"{value:.5f}" if value < 0.001 else f"{value:.3f}"


def time_of(row: Row | None) -> str:
    """Milliseconds of a decision, to two digits."""
    return "" if row is None else f"{float(format(row['milliseconds'], '.2g')):g}"


def strengths(against: str, agents: Sequence[str], sizes: Sequence[int]) -> list[list[str]]:
    """Rows of agents: shares by table size, the time at 3 players, deals and seed."""
    found = {
        (row["agent"], row["num_players"]): row
        for row in read("strength")
        if row["against"] == against
    }
    rows = []
    for agent in agents:
        own = [found.get((agent, size)) for size in sizes]
        known = [row for row in own if row is not None]
        at_three = found.get((agent, 3), known[0])
        played = f"{known[0]['deals']:,}; {known[0]['seed']}"
        rows.append([named(agent), *map(share, own), time_of(at_three), played])
    return rows


def strength() -> str:
    """One seat among greedy players, everybody who was measured."""
    sizes = (2, 3, 4, 5, 6)
    rows = [row for row in read("strength") if row["against"] == GREEDY]
    agents = sorted(dict.fromkeys(row["agent"] for row in rows), key=lambda a: a == TRUE_CARDS)
    header = ["agent", *(f"{size} players" for size in sizes), "ms", "deals; seed"]
    fair = ["(fair share)", *(f"{1 / size:.3f}" for size in sizes), "", ""]
    dates = sorted({row["date"] for row in rows})
    told = f"Measured from {dates[0]} to {dates[-1]}; ms at 3 players, where played."
    return f"{markdown(header, [fair, *strengths(GREEDY, agents, sizes)])}\n\n{told}"


def strength_short() -> str:
    """Six rows of it, for the README."""
    sizes = (2, 3, 4)
    header = ["agent", *(f"{size} players (fair {1 / size:.3f})" for size in sizes), "ms"]
    return markdown(header, [row[:-1] for row in strengths(GREEDY, IN_README, sizes)])


def direct() -> str:
    """The shipped policy among others than greedy players."""
    rows = [row for row in read("strength") if row["against"] != GREEDY]
    header = ["players", "fair share", "against", "win share of `policy`", "cut off"]
    return markdown(
        header,
        (
            [
                str(row["num_players"]),
                f"{1 / row['num_players']:.3f}",
                f"`{row['against']}`",
                share(row),
                f"{row['cut_off_share']:.1%}",
            ]
            for row in rows
        ),
    )


def exploitability() -> str:
    """NashConv of agents on `mini`, from `results.json` of `threeup exact`."""
    found = read("exploitability")
    rows = sorted(found["agents"], key=lambda row: float(row["nash_conv"]))
    table = markdown(
        ["agent on `mini`", "NashConv"],
        ([named(row["agent"]), small(row["nash_conv"])] for row in rows),
    )
    return (
        f"{table}\n\n{found['iterations']} iterations of CFR+; between perfect players seat 0 wins "
        f"{found['value']:.4f} more often than it loses."
    )


def coverage() -> str:
    """The part of the simulated coverage at two players."""
    lines = COVERAGE.read_text().splitlines()
    kept = [line for line in lines if re.match(r"\| of [^|]+\| 2 \|", line)]
    return "\n".join([*lines[:2], *kept])


def speed() -> str:
    """Ratios of the benchmarks, each beside another program in the same run."""
    rows = []
    for row in read("speed"):
        ours, _, other = row["name"].partition(" / ")
        span = f" ({row['low']:.3g} to {row['high']:.3g})" if "low" in row else ""
        numbers = [f"{row['ours']:.3g}", f"{row['yardstick']:.3g}", f"{row['ratio']:.3g}{span}"]
        rows.append([ours, other, row["unit"], *numbers])
    header = ["what", "beside", "unit", "the one", "the other", "ratio (quartiles)"]
    return markdown(header, rows)


def learning() -> str:
    """What arms of training reach, mean and standard deviation over seeds."""
    found = read("learning")
    rows = []
    for row in found:
        spread = "" if row["deviation"] is None else f" ± {row['deviation']:.3f}"
        rows.append([row["arm"], f"{row['mean']:.3f}{spread}", str(row["seeds"])])
    one = found[0]
    told = (
        f"Win share of the policy among greedy players after {one['decisions'] / 1e6:g} M "
        f"decisions at {one['num_players']} players (fair share {1 / one['num_players']:.3f}), "
        "mean and standard deviation over the seeds."
    )
    return f"{told}\n\n{markdown(['arm', 'win share', 'seeds'], rows)}"


def recipes() -> str:
    """What each recipe's tests have noted in their latest run."""
    found = read("recipes")
    rows = []
    for row in found:
        libraries = {k: v for k, v in row["versions"].items() if k not in BASE}
        with_them = ", ".join(f"{name} {version}" for name, version in libraries.items())
        noted = "; ".join(f"{name}: {value}" for name, value in row["noted"])
        tests = f"{row['tests']} in {row['seconds']:,} s"
        rows.append([f"`{row['recipe']}`", with_them, tests, noted])
    bases = {tuple(f"{name} {row['versions'][name]}" for name in BASE) for row in found}
    told = f"Run on {', '.join(sorted({row['date'] for row in found}))} with " + "; or with ".join(
        ", ".join(base) for base in sorted(bases, reverse=True)
    )
    return f"{told}.\n\n{markdown(['recipe', 'with', 'tests', 'noted'], rows)}"


def variants() -> str:
    """The decks and layouts."""
    header = ["variant", "players", *RANK_NAMES, "cards", "hand", "face up", "face down"]
    return markdown(
        header,
        (
            [
                f"`{name}`",
                "2" if variant.max_players == 2 else f"2 to {variant.max_players}",
                *map(str, variant.copies),
                str(variant.deck_size),
                str(variant.hand_size),
                str(variant.num_face_up),
                str(variant.num_face_down),
            ]
            for name, variant in VARIANTS.items()
        ),
    )


def learners() -> str:
    """NashConv of learners on `mini`, as its benchmark has written it."""
    lines = LEARNERS.read_text().splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def columns() -> str:
    """Every key and column, file by file."""
    parts = []
    for file, keys in KEYS.items():
        title = f"`{file}`" if "." in file else f"`{file}/`"
        rows = ([f"`{key}`" if "(" not in key else key, words] for key, words in keys.items())
        parts.append(f"## {title}\n\n{markdown(['key', 'meaning'], rows)}")
    return "\n\n".join(parts)


def docstring_table(module: Any) -> str:
    """The Markdown of a module's docstring, without its first line."""
    return str(module.__doc__).partition("\n")[2].strip()


def protocol() -> str:
    """How programs are spoken to."""
    return docstring_table(program)


PARTS: Final[dict[str, Callable[[], str]]] = {
    "extras": lambda: markdown(
        ["extra", "for"],
        ([name if "(" in name else f"`{name}`", words] for name, words in EXTRAS.items()),
    ),
    "strength": strength,
    "strength-short": strength_short,
    "direct": direct,
    "exploitability": exploitability,
    "coverage": coverage,
    "speed": speed,
    "learning": learning,
    "learners": learners,
    "recipes": recipes,
    "variants": variants,
    "columns": columns,
    "aec": lambda: docstring_table(aec),
    "protocol": protocol,
}
"""What makes each part, by name."""
_PART: Final = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def filled(text: str) -> str:
    """A page with its parts made anew."""
    return _PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n\n{found[3]}", text)


def main() -> None:
    """Write every page whose parts have changed."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"changed: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
