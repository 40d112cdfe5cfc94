import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_env import (
    RANK_NAMES,
    STATE_DTYPE,
    VARIANTS,
    Batch,
    action_id,
    decode,
    describe,
    observation_fields,
    raw_env,
)
from threeup_env.engine.cards import sorted_deck
from threeup_env.engine.observation import observation_bounds, observation_size
from threeup_env.view.text import table_text

TABLES = [
    (num_players, name)
    for name, variant in VARIANTS.items()
    for num_players in range(2, variant.max_players + 1)
]
every_table = pytest.mark.parametrize(("num_players", "variant"), TABLES)

# Written by hand: what stands where in the flat vector (first entry, entries).
TABLE_LAYOUT = {
    "variant": (0, 1),
    "seat": (1, 1),
    "laying": (2, 1),
    "owed": (3, 1),
    "may_draw": (4, 1),
    "steps_left": (5, 1),
    "draw_pile_size": (6, 1),
    "top": (7, 13),
    "pile": (20, 13),
    "out_of_play": (33, 13),
    "unseen": (46, 13),
    "exposed": (59, 13),
}
SEAT_LAYOUT = {
    "acting": (72, 1),
    "hand_size": (73, 1),
    "face_down_size": (74, 1),
    "hand": (75, 13),
    "face_up": (88, 13),
    "bounds": (101, 3),
}
SEAT_BLOCK = 32


def deck_with_hands(variant: str, hands: list[str]) -> list[int]:
    """A deck that deals these hands (of six, in `standard`); the other cards ascend."""
    dealt = [RANK_NAMES.index(card) for hand in hands for card in hand.split()]
    rest = sorted_deck(variant).tolist()
    for rank in dealt:
        rest.remove(rank)
    before = VARIANTS[variant].num_face_down * len(hands)
    return [*rest[:before], *dealt, *rest[before:]]


def random_play(num_players: int, variant: str, seed: int, games: int = 1) -> Iterator[Batch]:
    """Every position of some random games, the last of each included; the batch goes on."""
    batch = Batch(1, num_players, variant, seed=seed, autoreset=False)
    rng = np.random.default_rng(seed)
    for _ in range(games):
        batch.reset()
        yield batch
        while batch.action_masks[0].any():
            batch.step([rng.choice(np.flatnonzero(batch.action_masks[0]))])
            yield batch


def twin(game: Any, observer: int, rng: np.random.Generator) -> Any:
    """Another record that differs only in what `observer` may not know (R22).

    Hidden are the others' hands beyond the known cards, all face-down cards, the order of
    the draw pile, and, while laying, what the others have laid (R5). What pick-ups have told
    of a hand stays true: the cards with a bound are drawn first, the tightest first (R14).
    """
    game = game.copy()
    others = [seat for seat in range(game["num_seats"]) if seat != observer]
    counted = [("hand", seat) for seat in others]
    if game["laying"]:
        counted += [("face_up", seat) for seat in others]
    listed = [(game["draw_pile"], int(game["draw_pile_size"]))]
    listed += [
        (game["face_down"][seat], int(game["face_down_size"][seat]))
        for seat in range(game["num_seats"])
    ]

    # Take the hidden cards
    pool: list[int] = []
    sizes = []
    for zone, seat in counted:
        known = game["known"][seat] if zone == "hand" else np.zeros(len(RANK_NAMES), np.int8)
        hidden = np.repeat(np.arange(len(RANK_NAMES)), game[zone][seat] - known)
        sizes.append(len(hidden))
        pool += hidden.tolist()
        game[zone][seat] = known
    for cards, size in listed:
        pool += cards[:size].tolist()

    # Deal them out anew
    told = [
        (int(bound), seat)
        for seat in others
        for bound in game["bounds"][seat]
        if 0 < bound < len(RANK_NAMES)
    ]
    for bound, seat in sorted(told):
        rank = int(rng.choice([rank for rank in pool if rank < bound]))
        pool.remove(rank)
        game["hand"][seat, rank] += 1
        sizes[others.index(seat)] -= 1
    shuffled = rng.permutation(pool)
    position = 0
    for (zone, seat), size in zip(counted, sizes, strict=True):
        np.add.at(game[zone][seat], shuffled[position : position + size], 1)
        position += size
    for cards, size in listed:
        cards[:size] = shuffled[position : position + size]
        position += size
    assert position == len(pool)
    return game


def twins(batch: Batch, rng: np.random.Generator) -> Batch:
    """One twin for each observer, row i for seat i."""
    states = np.array(
        [twin(batch.states[0], seat, rng) for seat in range(batch.num_players)], STATE_DTYPE
    )
    found = Batch(
        batch.num_players, batch.num_players, batch.variant, batch.max_steps, autoreset=False
    )
    found.load(states)
    return found


@every_table
def test_what_a_seat_may_not_know_changes_nothing_that_it_sees(
    num_players: int, variant: str
) -> None:
    rng = np.random.default_rng(num_players)
    different = total = 0
    for batch in random_play(num_players, variant, seed=num_players):
        other = twins(batch, rng)
        observers = np.arange(num_players)
        seen = other.observe(observers)
        for seat in observers:
            own = batch.observe([seat])[0]
            assert (seen[seat] == own).all()
            assert table_text(seen[seat]) == table_text(own)
            if seat == batch.seats[0]:
                assert (other.action_masks[seat] == batch.action_masks[0]).all()
        assert (other.seats == batch.seats[0]).all()
        different += int((other.states != batch.states[0]).sum())
        total += num_players
    # A pool of a few equal cards may come back as it was, in `mini` above all.
    assert different > (0.5 if variant == "mini" else 0.9) * total


@pytest.mark.parametrize(("num_players", "variant"), [(2, "standard"), (3, "listed"), (2, "mini")])
def test_twins_look_the_same_through_the_environment(num_players: int, variant: str) -> None:
    game = raw_env(num_players, variant, render_mode="ansi")
    game.reset(seed=1)
    rng = np.random.default_rng(1)
    while not any(game.terminations.values()):
        observer = int(game._batch.seats[0])
        other = copy.deepcopy(game)
        other._batch.load(np.array([twin(game._batch.states[0], observer, rng)], STATE_DTYPE))
        assert other.render() == game.render()
        assert str(other.last()) == str(game.last())
        game.step(int(rng.choice(np.flatnonzero(game.last()[0]["action_mask"]))))


@every_table
def test_each_card_is_somewhere(num_players: int, variant: str) -> None:
    copies = np.array(VARIANTS[variant].copies)
    for batch in random_play(num_players, variant, seed=3):
        state = batch.states[0]
        for seat in range(num_players):
            view = decode(batch.observe([seat])[0])
            seats = view["seats"]
            placed = view["pile"] + view["out_of_play"] + view["unseen"]
            placed = placed + seats["hand"].sum(axis=0) + seats["face_up"].sum(axis=0)
            assert (placed == copies).all()
            assert (view["unseen"] >= 0).all()
            unknown = view["draw_pile_size"] + seats["face_down_size"].sum()
            unknown += (seats["hand_size"] - seats["hand"].sum(axis=1)).sum()
            if view["laying"]:
                unknown += state["face_up_size"].sum() - state["face_up_size"][seat]
            assert view["unseen"].sum() == unknown


@every_table
def test_each_field_says_what_the_table_shows(num_players: int, variant: str) -> None:
    for batch in random_play(num_players, variant, seed=4):
        state = batch.states[0]
        for seat in range(num_players):
            view = decode(batch.observe([seat])[0])
            assert view["variant"] == list(VARIANTS).index(variant)
            assert view["seat"] == seat
            for name in ("laying", "owed", "may_draw", "draw_pile_size"):
                assert view[name] == state[name]
            assert view["steps_left"] == min(127, 1000 - batch.lengths[0])
            assert (view["pile"] == state["pile"]).all()
            assert (view["out_of_play"] == state["out_of_play"]).all()
            assert np.flatnonzero(view["top"]).tolist() == [r for r in [state["top"]] if r >= 0]
            assert (view["exposed"] == state["known"][seat]).all()
            for i, block in enumerate(view["seats"]):
                other = (seat + i) % num_players
                assert block["acting"] == (other == state["seat"] and state["winner"] == -1)
                assert block["hand_size"] == state["hand"][other].sum()
                assert block["face_down_size"] == state["face_down_size"][other]
                assert (block["hand"] == state["known" if i else "hand"][other]).all()
                hidden = i > 0 and state["laying"] > 0
                assert (block["face_up"] == (0 if hidden else state["face_up"][other])).all()
                told = [bound for bound in state["bounds"][other].tolist() if bound]
                unknown = int(block["hand_size"] - state["known"][other].sum())
                full = VARIANTS[variant].hand_size
                free = [13] * (unknown - len(told)) if unknown <= full else []
                assert block["bounds"].tolist() == (told + free + [0, 0, 0])[:3]


@every_table
def test_known_cards_are_in_the_hand(num_players: int, variant: str) -> None:
    for batch in random_play(num_players, variant, seed=5):
        assert (batch.states["known"] <= batch.states["hand"]).all()


@every_table
def test_bounds_hold(num_players: int, variant: str) -> None:
    high = observation_bounds(num_players)
    for batch in random_play(num_players, variant, seed=6, games=3):
        for seat in range(num_players):
            vector = batch.observe([seat])[0]
            assert (vector >= 0).all()
            assert (vector <= high).all()


@every_table
def test_may_draw_is_the_mask_of_draw(num_players: int, variant: str) -> None:
    drawn = 0
    for batch in random_play(num_players, variant, seed=7, games=4):
        may_draw = decode(batch.observations[0])["may_draw"]
        assert may_draw == batch.action_masks[0, action_id("draw")]
        drawn += int(may_draw)
    assert drawn


@pytest.mark.parametrize("num_players", range(2, 7))
def test_the_layout_is_the_one_written_down(num_players: int) -> None:
    expected = {name: slice(at, at + size) for name, (at, size) in TABLE_LAYOUT.items()}
    for i in range(num_players):
        for name, (at, size) in SEAT_LAYOUT.items():
            expected[f"{name}[{i}]"] = slice(at + SEAT_BLOCK * i, at + SEAT_BLOCK * i + size)
    assert observation_fields(num_players) == expected


@pytest.mark.parametrize("num_players", range(2, 7))
def test_the_fields_cover_the_vector_exactly_once(num_players: int) -> None:
    covered = np.zeros(observation_size(num_players), int)
    for part in observation_fields(num_players).values():
        covered[part] += 1
    assert (covered == 1).all()
    assert observation_size(num_players) == 72 + 32 * num_players


@pytest.mark.parametrize("num_players", range(2, 7))
def test_decoding_is_the_same_memory_field_by_field(num_players: int) -> None:
    vectors = np.arange(2 * observation_size(num_players)).astype(np.int8).reshape(2, -1)
    records = decode(vectors)
    for name, part in observation_fields(num_players).items():
        field, _, block = name.partition("[")
        found: npt.NDArray[np.int8] = (
            records["seats"][:, int(block[:-1])][field] if block else records[field]
        )
        assert (found.reshape(2, -1) == vectors[:, part]).all()
    assert (records.view(np.int8).reshape(vectors.shape) == vectors).all()
    assert np.shares_memory(records, vectors)


def test_a_vector_of_no_table_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of 136, 168, 200, 232, 264 features"):
        decode(np.zeros(137, np.int8))


def test_describe_puts_a_position_into_words() -> None:
    batch = Batch(1, 3, max_steps=100, autoreset=False)
    hands = ["3 C+1 9 4 4 C", "1 2 2 2 7 10", "5 5 6 8 8 C+2"]
    batch.reset(decks=[deck_with_hands("standard", hands)])
    laid = ["lay C", "lay 4", "lay 4", "lay 10", "lay 7", "lay 2", "lay C+2", "lay 8", "lay 8"]
    for name in [*laid, "play 9", "pick up"]:
        batch.step([action_id(name)])
    assert describe(batch.observe([1])[0]).splitlines() == [
        "variant standard, 3 players, seat 2 to act",
        "steps left: 89",
        "pile: empty",
        "draw pile: 56",
        "out of play: none",
        "unseen: 1 1 1 1 1 1 2 2 2 2 3 3 3 3 3 3 3 4 4 4 4 4 5 5 5 5 5 5 5 6 6 6 6 6 6 6 7 7 7 7 7 "
        "7 8 8 8 8 8 9 9 9 9 9 9 10 10 10 10 10 10 C C C C C C+1 C+1 C+1 C+1 C+1 C+1 C+2",
        "seat 1 (you): hand 1 2 2 9 (the others know 9, 3 below 9); face up 2 7 10; face down 3",
        "seat 2: hand 3 cards; face up 8 8 C+2; face down 3",
        "seat 0: hand 3 cards; face up 4 4 C; face down 3",
    ]
    words = describe(batch.observe([0])[0])
    assert "seat 1: hand 4 cards with 9, 3 below 9; face up 2 7 10" in words
    batch.step([action_id("play 6")])
    assert describe(batch.observations[0]).splitlines()[2] == "pile: 6"


def test_describe_while_laying_and_at_the_end() -> None:
    batch = Batch(1, variant="mini", max_steps=3, autoreset=False)
    batch.reset(decks=[[0, 1, 0, 1, 12, 0, 1, 10, 11, 10]])
    words = describe(batch.observations[0]).splitlines()
    assert words[:2] == ["variant mini, 2 players, seat 0 to act", "laying: 1 still to lay"]
    assert "seat 1: hand 3 cards; face up hidden; face down 1" in words
    for name in ("lay 1", "lay 1", "play C+2"):
        batch.step([action_id(name)])
    assert describe(batch.observations[0]).startswith("variant mini, 2 players, ended")


def test_describe_an_extra_discard() -> None:
    batch = Batch(1, variant="mini", autoreset=False)
    batch.reset(decks=[[0, 1, 0, 1, 12, 0, 1, 10, 11, 10]])
    for name in ("lay 1", "lay 1", "play C+2"):
        batch.step([action_id(name)])
    assert describe(batch.observations[0]).splitlines()[1:3] == ["owed: 2", "may draw"]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_only_int8_is_decoded(dtype: type) -> None:
    batch = Batch(1)
    batch.reset()
    with pytest.raises(TypeError, match="observation: expected int8; got"):
        describe(batch.observations[0].astype(dtype))
