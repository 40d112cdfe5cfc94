"""A game of a run once more: played again as it was, in words or as a recording."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents import specs
from threeup_agents.arena.line_ups import LineUp
from threeup_agents.arena.match import Match
from threeup_agents.arena.play import BLOCK_GAMES, play_block
from threeup_agents.arena.run_folder import GAMES, RESULTS, read_block, read_identity
from threeup_agents.arena.terms import Terms
from threeup_agents.arena.tournament import decks_of, part, stretches
from threeup_agents.files import (
    TEXT,
    check_fields,
    list_of,
    object_of,
    one_of,
    optional,
    read_json,
    whole,
)
from threeup_agents.replay.recording import Recording
from threeup_env.engine.batch import Batch
from threeup_env.engine.cards import MAX_SEATS, MIN_SEATS, VARIANT_NAMES
from threeup_env.view.text import table_text
from threeup_env.view.words import action_text

_MANY: Final = 10**9
"""More games than any run has, and more steps than any game."""
_RESULTS: Final = {
    "num_players": whole(MIN_SEATS, MAX_SEATS),
    "deals_played": whole(1, _MANY),
    "line_ups": list_of(list_of(TEXT, least=MIN_SEATS), least=1),
    "settings": object_of(
        {
            "variant": one_of(*VARIANT_NAMES),
            "deal_set": one_of("fresh", "public"),
            "seed": whole(),
            "max_steps": whole(1, _MANY),
            "agents": list_of(TEXT),
        }
    ),
    "stopping": optional(object_of({"looks": list_of(whole(1, _MANY))})),
}
"""What is read of `results.json`."""


def replay(folder: Path, game: int, trust: bool = False) -> Iterator[str]:
    """Play a game of a run once more and put it into words, a table a step.

    Each table is what the seat to act saw: what others hold and lay is hidden in it.

    Args:
        folder: of the run.
        game: its number in `games.csv`.
        trust: run code that the folder names: agents in Python files, policies with pickles.

    Raises:
        ValueError: no such run or game, its agents now play otherwise, or trust is needed.
    """
    stored, row, rotation, recording = _stored_game(folder, game, trust)
    names = recording.agents
    at = ", ".join(f"seat {seat} {name}" for seat, name in enumerate(names))
    yield f"game {game}: deal {stored.deal[row]}, rotation {rotation}; {at}"
    yield from _tables(recording)
    yield f"ended after {stored.length[row]} actions: " + (
        "cut off"
        if stored.cut_off[row]
        else f"{names[int(stored.by_seat(stored.win_share)[row].argmax())]} has won"
    )


def recording_of(folder: Path, game: int, trust: bool = False) -> Recording:
    """Play a game of a run once more and record it; the arguments are those of `replay`.

    Raises:
        ValueError: no such run or game, or its agents now play otherwise.
    """
    return _stored_game(folder, game, trust)[3]


def recordings_of(
    folder: Path, games: Sequence[int], most_seconds: float = math.inf, trust: bool = False
) -> dict[int, Recording]:
    """Play games of a run once more; those of one block together.

    Args:
        folder: of the run.
        games: their numbers in `games.csv`.
        most_seconds: that their agents took in all for the blocks of the games given back;
            a block beyond that is left out, in the order of `games`.
        trust: see `replay`.

    Raises:
        ValueError: no such run or game, or its agents now play otherwise.
    """
    results = _read_results(folder)
    blocks: dict[tuple[LineUp, int], tuple[Match, dict[int, tuple[int, int]]]] = {}
    for game in games:
        line_up, deal, rotation = _find(results, game)
        stored = _block_of(folder, results, line_up, deal)
        key = line_up, int(stored.deal[0])
        blocks.setdefault(key, (stored, {}))[1][game] = deal, rotation
    found: dict[int, Recording] = {}
    for stored, wanted in blocks.values():
        most_seconds -= float(stored.seconds.sum())
        if most_seconds >= 0:
            found |= _recorded(stored, wanted, results["settings"], trust)
        else:
            most_seconds += float(stored.seconds.sum())
    return found


def _stored_game(folder: Path, game: int, trust: bool) -> tuple[Match, int, int, Recording]:
    """The block that holds a game, its row there, its rotation, and the game itself."""
    results = _read_results(folder)
    line_up, deal, rotation = _find(results, game)
    stored = _block_of(folder, results, line_up, deal)
    row = (deal - int(stored.deal[0])) * len(line_up) + rotation
    where = {game: (deal, rotation)}
    recording = _recorded(stored, where, results["settings"], trust)[game]
    return stored, row, rotation, recording


def _recorded(
    stored: Match, wanted: dict[int, tuple[int, int]], settings: dict[str, Any], trust: bool
) -> dict[int, Recording]:
    """Games of a block, each by its number: its deal and rotation."""
    line_up = stored.line_up
    size, first = len(line_up), int(stored.deal[0])
    which = settings["variant"], settings["deal_set"], settings["seed"]
    decks = decks_of(int(stored.deal[-1]) + 1, size, *which)
    rows = {game: (deal - first) * size + turned for game, (deal, turned) in wanted.items()}
    actions = _actions_again(stored, decks, set(rows.values()), settings, trust)
    return {
        game: Recording(
            tuple(decks[deal].tolist()),
            tuple(line_up[place] for place in np.argsort(stored.seat[rows[game]])),
            tuple(actions[rows[game]]),
            settings["variant"],
            settings["max_steps"],
        )
        for game, (deal, _) in wanted.items()
    }


def _read_results(folder: Path) -> dict[str, Any]:
    """What a run has found, as far as its games can be told from it."""
    path = folder / RESULTS
    results = read_json(path)
    check_fields(str(path), results, _RESULTS)
    num_players, line_ups = results["num_players"], results["line_ups"]
    if any(len(line_up) != num_players for line_up in line_ups):
        raise ValueError(f"{path}: expected line_ups of {num_players} agents; got {line_ups!r:.80}")
    games = num_players * results["deals_played"] * len(line_ups)
    files = sum(1 for _ in (folder / GAMES).glob("*.npz"))
    if games > files * BLOCK_GAMES:
        raise ValueError(
            f"{path}: expected deals_played as the folder {GAMES} holds; got "
            f"{results['deals_played']} with {files} files there"
        )
    return results


def _find(results: dict[str, Any], game: int) -> tuple[LineUp, int, int]:
    """Line-up, deal and rotation of a game by its number."""
    num_players, deals = results["num_players"], results["deals_played"]
    per_line_up = num_players * deals
    total = per_line_up * len(results["line_ups"])
    if not 0 <= game < total:
        raise ValueError(f"game: expected a number in 0..{total - 1}; got {game}")
    index, rest = divmod(game, per_line_up)
    return tuple(results["line_ups"][index]), *divmod(rest, num_players)


def _block_of(folder: Path, results: dict[str, Any], line_up: LineUp, deal: int) -> Match:
    """The block from which the results took a deal.

    The folder may hold others of the same deal, of a run of fewer or more deals.
    """
    looks = (results["stopping"] or {"looks": []})["looks"]
    identity = read_identity(folder)
    entrants = _specs_of(line_up, results["settings"]["agents"])
    for start, stop in stretches(results["deals_played"], looks):
        for block in part(line_up, start, stop, entrants):
            if block.first <= deal < block.stop:
                found = read_block(folder, identity, line_up, block.first, block.stop)
                if found is not None:
                    return found
    raise ValueError(f"{folder / GAMES}: expected the games of deal {deal}; there are none")


def _actions_again(
    stored: Match,
    decks: npt.NDArray[np.int8],
    wanted: set[int],
    settings: dict[str, Any],
    trust: bool,
) -> dict[int, list[int]]:
    """Play a whole block again, since its agents' streams run through all its games."""
    actions: dict[int, list[int]] = {row: [] for row in wanted}

    def watch(batch: Batch, rows: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64]) -> None:
        for row, taken in actions.items():
            taken.extend(chosen[rows == row].tolist())

    entrants = _specs_of(stored.line_up, settings["agents"])
    specs.check_trusted(entrants.values(), "replay", trust)
    first = int(stored.deal[0])
    again = play_block(
        [entrants[name] for name in stored.line_up],
        decks[first:],
        first,
        settings["variant"],
        settings["max_steps"],
        settings["seed"],
        watch=watch,
        seats=stored.seat[:: stored.num_players],
        terms=Terms(trust=trust),
    )
    # A shipped ladder keeps no courses: its are 0.
    if any(stored.course[row] not in (0, again.course[row]) for row in wanted):
        raise ValueError(
            "replay: expected the course that the run holds; its agents now play otherwise "
            "(another version of the code or of a policy)"
        )
    return actions


def _specs_of(line_up: LineUp, agents: Sequence[str]) -> dict[str, str]:
    """The specs of a line-up's agents by name, each with its name as `NAME=SPEC`, if it has one."""
    listed = {specs.named(spec)[0]: spec for spec in agents}
    return {name: listed.get(name, name) for name in line_up}


def _tables(recording: Recording) -> Iterator[str]:
    table = ""
    for step, (batch, last) in enumerate(recording.play()):
        if last is not None:
            before, action = last
            seat = int(before["seat"])
            words = action_text(before, batch.states[0], action, seat)
            yield f"step {step}: {recording.agents[seat]}\n\n{table}\n\n> {words}"
        table = table_text(batch.observations[0])
