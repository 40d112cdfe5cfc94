"""Tables as files, the dictionary of their columns, and the games to see."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_evaluate import Cheat, policy_in
from threeup_agents import evaluation, specs
from threeup_agents.analysis import second_views
from threeup_agents.analysis.dictionary import KEYS, paths
from threeup_agents.analysis.examples import chosen, examples
from threeup_agents.analysis.table_files import as_csv, as_latex, as_markdown
from threeup_agents.analysis.tables import Column, Table, tables
from threeup_agents.arena.match import Match
from threeup_agents.replay import pages_of_run

HARD = ["a|b_c", r"x\y & 100%", "=1+1", "[n]", "#$~^{}"]
TABLE = Table(
    "hard",
    (
        Column("agent", ("agent",), "{}", "words"),
        Column("share", ("share",)),
        Column("95% interval", ("low", "high"), kind="interval"),
    ),
    [{"agent": name, "share": 0.5, "low": 0.25, "high": None} for name in HARD],
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run with everything that results can hold: its folder and its results."""
    folder = tmp_path_factory.mktemp("run")
    make = specs.make_any

    def with_a_cheat(spec: str, *options: Any, **named: Any) -> Any:
        return Cheat() if spec == "cheat" else make(spec, *options, **named)

    names = ("cheat", "random", "greedy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(specs, "make_any", with_a_cheat)
        patch.setattr(pages_of_run, "MOST_SECONDS", 600.0)  # of a busy machine
        patch.setattr(second_views, "check_installed", lambda: None)
        patch.setattr(second_views, "_views", lambda advantage: np.zeros((2, len(advantage))))
        for recipe in ("a-1", "a-2", "b-1", "b-2"):
            policy_in(folder / recipe, 3)
        config = evaluation.Config(
            names, 3, until_half_width=0.3, max_deals=12, replays=99, out=folder
        )
        groups = f"a={folder}/a-*", f"b={folder}/b-*"
        evaluation.run(replace(config, second_views=True, group=groups))
    return folder, json.loads((folder / "results.json").read_text())


def general(key: str) -> str:
    """A key as the dictionary writes it: without the names that a run chooses."""
    key = re.sub(r"^(versions|settings|length\.quantiles)\..*", r"\1.*", key)
    return re.sub(r"^(agent|win_share|cards_left)_\d$", r"\1_SEAT", key)


def test_the_dictionary_has_every_key_of_the_results_and_no_other(
    run: tuple[Path, dict[str, Any]],
) -> None:
    found = {general(key) for key in paths(run[1])}
    # What a run without trouble holds nothing of.
    unseen = {"warnings[]", "stopping"}
    assert set(KEYS["results.json"]) - unseen == found - unseen


def test_the_dictionary_has_every_column_of_the_files_and_no_other(
    run: tuple[Path, dict[str, Any]],
) -> None:
    folder = run[0]
    games = (folder / "games.csv").read_text().splitlines()[0].split(",")
    assert list(dict.fromkeys(map(general, games))) == list(KEYS["games.csv"])
    known = {key.rpartition(".")[2].removesuffix("[]") for key in KEYS["results.json"]}
    columns = set()
    for path in (folder / "tables").glob("*.csv"):
        columns |= set(path.read_text().splitlines()[0].split(","))
    assert columns - known <= set(KEYS["tables"]) - {"(keys as above)"} <= columns


def test_every_table_is_there_in_three_forms_and_in_one_order(
    run: tuple[Path, dict[str, Any]],
) -> None:
    folder, results = run
    made = tables(results)
    assert set(made) >= {"standings", "pairings", "differences", "mixed", "seats", "second_views"}
    assert set(made) >= {"recipes", "recipe_differences"}
    files = {path.name for path in (folder / "tables").iterdir()}
    assert files == {f"{name}.{form}" for name in made for form in ("csv", "md", "tex")}
    shares = [row["win_share"] for row in made["standings"].rows]
    assert shares == sorted(shares, reverse=True)
    best = [row["agent"] for row in made["standings"].rows]
    assert list(dict.fromkeys(row["agent"] for row in made["pairings"].rows)) == best
    assert all(row["difference"] > -1e-12 for row in made["differences"].rows)
    page = (folder / "report.html").read_text()
    firsts = [page.index(f'<td class="words">{name}</td>') for name in best]
    assert firsts == sorted(firsts)


def test_csv_gives_the_values_back() -> None:
    rows = list(csv.reader(as_csv(TABLE).splitlines()))
    assert rows[0] == ["agent", "share", "low", "high"]
    assert [row[0] for row in rows[1:]] == [*HARD[:2], "'=1+1", *HARD[3:]]
    assert rows[1][1:] == ["0.5", "0.25", ""]


def test_markdown_has_as_many_cells_in_every_row() -> None:
    lines = as_markdown(TABLE).splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}
    assert lines[0] == "| agent | share | 95% interval |"
    assert lines[1] == "| :--- | ---: | ---: |"
    assert lines[2] == r"| a\|b\_c | 0.500 | - |"


def test_latex_has_no_command_that_a_name_made() -> None:
    lines = as_latex(TABLE).splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}"
    assert lines[2] == r"agent & share & 95\% interval \\"
    assert lines[4:7] == [
        r"a\textbar{}b\_c & 0.500 & - \\",
        r"x\textbackslash{}y \& 100\% & 0.500 & - \\",
        r"=1+1 & 0.500 & - \\",
    ]
    # After the end of a line a bracket would be its argument.
    assert lines[7] == r"{}[n] & 0.500 & - \\"
    assert lines[8] == r"\#\$\textasciitilde{}\textasciicircum{}\{\} & 0.500 & - \\"


def match(lengths: list[int], left: list[tuple[int, int]], cut_off: list[bool]) -> Match:
    """A match of two, as much of it as matters here."""
    games = len(lengths)
    cards = np.array(left, np.int8)
    zeros = np.zeros(games, np.int64)
    return Match(
        line_up=("a", "b"),
        deal=zeros,
        rotation=zeros.astype(np.int8),
        seat=np.tile(np.arange(2, dtype=np.int8), (games, 1)),
        deal_hash=zeros,
        course=zeros.astype(np.uint64),
        win_share=(cards == 0).astype(float),
        cards_left=cards,
        length=np.array(lengths, np.int32),
        cut_off=np.array(cut_off),
        seconds=np.zeros(2),
        decisions=np.zeros(2, np.int64),
    )


def test_games_to_see_are_found_by_hand() -> None:
    # a wins games 0, 1, 3, 5 with lengths 30, 50, 70, 52, median 51; game 4 is cut off.
    left = [(0, 9), (0, 4), (5, 0), (0, 8), (2, 2), (0, 1)]
    played = match([30, 50, 90, 70, 99, 52], left, [False] * 4 + [True, False])
    assert chosen(played) == {"typical": 1, "longest": 2, "closest": 5}
    again = match([30, 50], [(0, 9), (0, 4)], [False, False])
    rows = examples([played, again])
    assert rows[0] == {"agent": "a", "against": "b", "typical": 1, "longest": 2, "closest": 5}
    assert rows[1] == rows[0] | {"agent": "b", "against": "a"}
    assert rows[2]["typical"] == 6


def test_an_analysis_names_the_games_of_its_own_games_file(
    run: tuple[Path, dict[str, Any]],
) -> None:
    folder, results = run
    table = list(csv.DictReader((folder / "games.csv").read_text().splitlines()))
    for row in results["examples"]:
        games = [table[row[kind]] for kind in ("typical", "longest", "closest")]
        for game in games:
            seated = [game[f"agent_{seat}"] for seat in range(3)]
            assert sorted(seated) == sorted([row["agent"], row["against"], row["against"]])
        own = [
            int(other["length"])
            for other in table
            if [other[f"agent_{seat}"] for seat in range(3)].count(row["agent"]) == 1
            and [other[f"agent_{seat}"] for seat in range(3)].count(row["against"]) == 2
            and other["cut_off"] == "False"
        ]
        assert int(games[1]["length"]) in sorted(own)[-2:]
    pages = {path.name for path in (folder / "replays").iterdir()}
    assert pages == {
        f"{row[kind]}.html"
        for row in results["examples"]
        for kind in ("typical", "longest", "closest")
    }
