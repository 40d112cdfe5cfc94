"""The tables of a run, each built once: for the terminal, the report and files.

All of them are in one order, that of the standings: by overall win share, best first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Row: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["words", "number", "interval", "verdict"]

NONE: Final = "-"
"""What stands for a number that there isn't."""


class Column(NamedTuple):
    """One column: what heads it, which keys of a row it shows, and how."""

    heading: str
    keys: tuple[str, ...]
    """One, or the two ends of an interval."""
    form: str = "{:.3f}"
    kind: Kind = "number"

    def text(self, row: Row) -> str:
        """What a person reads of a row."""
        values = [row[key] for key in self.keys]
        if None in values:
            return NONE
        if self.kind == "interval" and values == [0, 0]:
            return "the zero"
        words = ", ".join(self.form.format(value) for value in values)
        return f"[{words}]" if self.kind == "interval" else words


@dataclass(frozen=True)
class Table:
    """Columns and rows; `name` is that of its files."""

    name: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]

    def only(self, *headings: str) -> "Table":
        """The table with some of its columns; `X interval` is the interval of column X."""
        names = [column.heading for column in self.columns]
        for i, column in enumerate(self.columns):
            if column.kind == "interval":
                names[i] = f"{names[i - 1]} interval"
        kept = (c for c, name in zip(self.columns, names, strict=True) if name in headings)
        return Table(self.name, tuple(kept), self.rows)


def interval_heading(confidence: float) -> str:
    """What heads a column of intervals.

    >>> interval_heading(0.95), interval_heading(0.9875)
    ('95% interval', '98.75% interval')
    """
    return f"{100 * confidence:.4g}% interval"


def order(results: Row) -> list[str]:
    """The agents by overall win share, best first: the order of everything that is shown."""
    return [row["agent"] for row in results["standings"]]


def tables(results: Row) -> dict[str, Table]:
    """Every table of a run by name; one without rows is left out.

    Args:
        results: what `results.json` holds.
    """
    makers = (
        *(standings, pairings, differences, mixed, seats),
        *(recipes, recipe_differences, second_views),
    )
    made = (maker(results) for maker in makers)
    return {table.name: table for table in made if table.rows}


def standings(results: Row) -> Table:
    """Each agent over its tables of one other agent, with its rating."""
    between = interval_heading(results["confidence"])
    ratings = {row["agent"]: row for row in results["ratings"]}
    rows = []
    for row in results["standings"]:
        rating = ratings[row["agent"]]
        ends = {"rating_low": rating["low"], "rating_high": rating["high"]}
        rows.append(row | {"rating": rating["rating"]} | ends)
    columns = (
        Column("agent", ("agent",), "{}", "words"),
        *_share("win share", between),
        Column("decided", ("decided_share",)),
        Column("rating", ("rating",), "{:+.2f}"),
        Column(between, ("rating_low", "rating_high"), "{:+.2f}", "interval"),
        Column("mean place", ("mean_place",), "{:.2f}"),
        Column(between, ("place_low", "place_high"), "{:.2f}", "interval"),
        Column("cut off", ("cut_off_share",), "{:.1%}"),
        Column(between, ("cut_off_low", "cut_off_high"), "{:.1%}", "interval"),
        Column("games", ("games",), "{:,}"),
    )
    return Table("standings", columns, rows)


def pairings(results: Row) -> Table:
    """Each agent against each other one; the fair share stands beside the verdict."""
    between = interval_heading(results["confidence"])
    fair = {"fair_share": results["fair_share"]}
    columns = (
        *_pair(),
        *_share("win share", between),
        Column("fair", ("fair_share",)),
        Column("is", ("verdict",), "{}", "verdict"),
        Column("p (Holm)", ("p_holm",), "{:.2g}"),
        Column("decided", ("decided_share",)),
        Column("mean place", ("mean_place",), "{:.2f}"),
        Column("cut off", ("cut_off_share",), "{:.1%}"),
        Column("games", ("games",), "{:,}"),
    )
    rows = [row | fair for row in _in_order(results["pairings"], results)]
    return Table("pairings", columns, rows)


def differences(results: Row) -> Table:
    """How far the overall shares of two agents are apart; the one ahead stands first."""
    between = interval_heading(results["confidence"])
    place = {name: i for i, name in enumerate(order(results))}
    rows = []
    for row in results["differences"]:
        ahead = place[row["agent"]] < place[row["against"]]
        found = row["p_holm"] < 1 - results["confidence"]
        row = row if ahead else _turned(row)
        rows.append(row | {"verdict": "better" if found else "not separable"})
    columns = (
        *_pair(),
        Column("difference", ("difference",), "{:+.3f}"),
        Column(between, ("low", "high"), "{:+.3f}", "interval"),
        Column("is", ("verdict",), "{}", "verdict"),
        Column("p (Holm)", ("p_holm",), "{:.2g}"),
        Column("of ratings", ("rating_difference",), "{:+.2f}"),
        Column(between, ("rating_low", "rating_high"), "{:+.2f}", "interval"),
    )
    return Table("differences", columns, _in_order(rows, results))


def mixed(results: Row) -> Table:
    """Each agent at the tables of different agents, by the share of one of its seats."""
    between = interval_heading(results["confidence"])
    columns = (
        Column("agent", ("agent",), "{}", "words"),
        *_share("win share a seat", between),
        Column("decided", ("decided_share",)),
        Column("mean place", ("mean_place",), "{:.2f}"),
        Column("cut off", ("cut_off_share",), "{:.1%}"),
        Column("tables", ("tables",), "{:,}"),
    )
    return Table("mixed", columns, results["mixed"])


def seats(results: Row) -> Table:
    """The share of the win by seat."""
    columns = (
        Column("seat", ("seat",), "{}"),
        *_share("win share", interval_heading(results["confidence"])),
    )
    return Table("seats", columns, results["seats"])


def recipes(results: Row) -> Table:
    """Training recipes over their seeds."""
    between = interval_heading(results["confidence"])
    columns = (
        Column("recipe", ("group",), "{}", "words"),
        Column("seeds", ("seeds",), "{:,}"),
        Column("interquartile mean", ("iqm",)),
        Column(between, ("low", "high"), kind="interval"),
    )
    return Table("recipes", columns, results.get("groups", {"recipes": []})["recipes"])


def recipe_differences(results: Row) -> Table:
    """How far recipes are apart; the one ahead stands first."""
    columns = (
        Column("recipe", ("group",), "{}", "words"),
        Column("against", ("against",), "{}", "words"),
        Column("difference", ("difference",), "{:+.3f}"),
        Column(interval_heading(results["confidence"]), ("low", "high"), "{:+.3f}", "interval"),
    )
    rows = results.get("groups", {"differences": []})["differences"]
    return Table("recipe_differences", columns, rows)


def second_views(results: Row) -> Table:
    """Alpha-rank and Nash averaging."""
    between = interval_heading(results["confidence"])
    columns = (
        Column("agent", ("agent",), "{}", "words"),
        Column("alpha-rank", ("alpha_rank",)),
        Column(between, ("alpha_rank_low", "alpha_rank_high"), kind="interval"),
        Column("Nash value", ("nash_value",)),
        Column(between, ("nash_value_low", "nash_value_high"), kind="interval"),
    )
    rows = results.get("second_views", {"agents": []})["agents"]
    place = {name: i for i, name in enumerate(order(results))}
    return Table("second_views", columns, sorted(rows, key=lambda row: place[row["agent"]]))


def _pair() -> tuple[Column, ...]:
    return (
        Column("agent", ("agent",), "{}", "words"),
        Column("against", ("against",), "{}", "words"),
    )


def _share(heading: str, between: str) -> tuple[Column, ...]:
    return (
        Column(heading, ("win_share",)),
        Column(between, ("low", "high"), kind="interval"),
    )


def _in_order(rows: Sequence[Row], results: Row) -> list[Row]:
    place = {name: i for i, name in enumerate(order(results))}
    return sorted(rows, key=lambda row: (place[row["agent"]], place[row["against"]]))


def _turned(row: Row) -> Row:
    """A difference seen from the other side."""
    pair = {"agent": row["against"], "against": row["agent"]}
    turned = {
        "difference": -row["difference"],
        "low": -row["high"],
        "high": -row["low"],
        "rating_difference": -row["rating_difference"],
        "rating_low": -row["rating_high"],
        "rating_high": -row["rating_low"],
    }
    return row | pair | turned
