"""Golden playthroughs: whole games in text, compared byte for byte.

A changed playthrough means that the same seed and actions give another game: the
environment needs a new version. They are written anew by

    python -m tests.engine.test_playthroughs --write
"""

import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from threeup_env import ACTION_NAMES, RANK_NAMES, Batch
from threeup_env.engine.cards import sorted_deck
from threeup_env.engine.rng import shuffle, streams
from threeup_env.engine.state import CUT_OFF
from threeup_env.view.words import bound_words, card_names

FOLDER = Path(__file__).parent / "playthroughs"
ENV_ID = "threeup-v1"


class Playthrough(NamedTuple):
    """One game: what it is played with; the choices follow from `choices`."""

    name: str
    num_players: int
    variant: str
    seed: int
    max_steps: int = 1000


PLAYTHROUGHS = [
    Playthrough("standard-2", 2, "standard", 31),
    Playthrough("standard-3", 3, "standard", 22),
    Playthrough("standard-4", 4, "standard", 45),
    Playthrough("standard-5", 5, "standard", 50),
    Playthrough("standard-6", 6, "standard", 1),
    Playthrough("standard-3-cut-off", 3, "standard", 0, max_steps=40),
    Playthrough("listed-2", 2, "listed", 44),
    Playthrough("mini-2", 2, "mini", 49),
]


def choices(seed: int) -> Iterator[int]:
    """Numbers to choose by, the same on every platform: a linear congruential generator."""
    number = seed
    while True:
        number = (1103515245 * number + 12345) % 2**31
        yield number >> 16


def ranks_text(ranks: npt.NDArray[np.int8]) -> str:
    return " ".join(RANK_NAMES[rank] for rank in ranks) or "-"


def zone_lines(game: Any) -> list[str]:
    """Everything on the table, open; face-down cards in the order of turning."""
    lines = [
        f"  pile: {card_names(game['pile']) or '-'} | draw pile: {game['draw_pile_size']} | "
        f"out of play: {game['out_of_play'].sum()}"
    ]
    for seat in range(game["num_seats"]):
        face_down = game["face_down"][seat][: game["face_down_size"][seat]][::-1]
        known = card_names(game["known"][seat])
        lines.append(
            f"  seat {seat}: hand {card_names(game['hand'][seat]) or '-'}"
            + (f" (known: {known})" if known else "")
            + (f" ({below})" if (below := bound_words(game["bounds"][seat])) else "")
            + f" | up {card_names(game['face_up'][seat]) or '-'} | down {ranks_text(face_down)}"
        )
    return lines


def header_lines(playthrough: Playthrough) -> list[str]:
    deck = sorted_deck(playthrough.variant)
    shuffle(streams(playthrough.seed, 1), deck, len(deck))
    cards = [RANK_NAMES[rank] for rank in deck]
    rows = [" ".join(cards[start : start + 28]) for start in range(0, len(cards), 28)]
    return [
        f"{ENV_ID}, variant {playthrough.variant}, {playthrough.num_players} players, "
        f"max_steps {playthrough.max_steps}",
        f"seed: {playthrough.seed}",
        *(f"{'deck:' if i == 0 else '     '} {row}" for i, row in enumerate(rows)),
        "Zones are shown open. The checksum covers what each seat observes.",
    ]


def step_lines(batch: Batch) -> list[str]:
    seats = range(batch.num_players)
    checksum = zlib.crc32(b"".join(batch.observe([seat])[0].tobytes() for seat in seats))
    game = batch.states[0]
    turn = "".join(
        f", {name.replace('_', ' ')} {game[name]}"
        for name in ("laying", "owed")
        if game[name] and batch.action_masks.any()
    )
    head = f"[{batch.lengths[0]}] seat {batch.seats[0]}{turn}"
    if game["winner"] == CUT_OFF:
        head = f"[{batch.lengths[0]}] cut off, cards left {batch.cards_left[0].tolist()}"
    elif game["winner"] >= 0:
        head = f"[{batch.lengths[0]}] seat {game['winner']} has won"
    return ["", f"{head}  #{checksum:08x}", *zone_lines(game)]


def play_through(playthrough: Playthrough) -> str:
    """Play one game and write down all of it."""
    _, num_players, variant, seed, max_steps = playthrough
    batch = Batch(1, num_players, variant, max_steps, autoreset=False)
    batch.reset(seed=seed)
    lines = header_lines(playthrough)
    for choice in choices(seed):
        lines += step_lines(batch)
        legal = np.flatnonzero(batch.action_masks[0])
        if not len(legal):
            break
        action = int(legal[choice % len(legal)])
        lines.append("  legal: " + ", ".join(ACTION_NAMES[a] for a in legal))
        lines.append(f"  -> {ACTION_NAMES[action]}")
        batch.step([action])
    lines.append(f"  rewards: {' '.join(f'{reward:+.4f}' for reward in batch.rewards[0])}")
    return "\n".join(lines) + "\n"


def golden_file(playthrough: Playthrough) -> Path:
    return FOLDER / f"{playthrough.name}.txt"


@pytest.mark.parametrize("playthrough", PLAYTHROUGHS, ids=lambda playthrough: playthrough.name)
def test_playthrough_is_as_written(playthrough: Playthrough) -> None:
    written = golden_file(playthrough).read_bytes().decode()
    assert play_through(playthrough).splitlines() == written.splitlines()
    assert play_through(playthrough) == written


def test_no_playthrough_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        golden_file(playthrough).name for playthrough in PLAYTHROUGHS
    }


def test_the_deck_in_the_header_is_the_deck_that_is_dealt() -> None:
    for playthrough in PLAYTHROUGHS:
        _, num_players, variant, seed, _ = playthrough
        text = golden_file(playthrough).read_text(encoding="utf-8").split("deck: ")[1]
        deck = [RANK_NAMES.index(card) for card in text.split("Zones")[0].split()]
        given, shuffled = (Batch(1, num_players, variant, autoreset=False) for _ in range(2))
        given.reset(decks=[deck])
        shuffled.reset(seed=seed)
        assert (given.observations == shuffled.observations).all()
        assert (given.states["draw_pile"] == shuffled.states["draw_pile"]).all()


def test_together_they_show_every_kind_of_action() -> None:
    text = "".join(golden_file(playthrough).read_text("utf-8") for playthrough in PLAYTHROUGHS)
    for shown in ("lay", "play", "draw", "flip", "pick up"):
        assert f"-> {shown}" in text
    for rank in RANK_NAMES:
        assert f"-> play {rank}\n" in text


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.engine.test_playthroughs --write")
    FOLDER.mkdir(exist_ok=True)
    for one in PLAYTHROUGHS:
        golden_file(one).write_bytes(play_through(one).encode())
        print(golden_file(one))
