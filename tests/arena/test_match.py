import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import threeup_agents
from threeup_agents.arena import deals
from threeup_agents.arena import play as match
from threeup_agents.arena.deals import PUBLIC_SEED, deal_hashes, draw_deals
from threeup_agents.arena.match import Match
from threeup_env import Batch


class First:
    """Takes the first legal action and counts what it is asked."""

    def __init__(self, name: str = "first") -> None:
        self.name = name
        self.rows = 0
        self.calls = 0

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """As `Agent.act`."""
        self.calls += 1
        self.rows += len(action_masks)
        actions: npt.NDArray[np.int64] = action_masks.argmax(axis=1)
        return actions


def played(line_up: Any, **kwargs: Any) -> Match:
    return match.play(line_up, progress=False, **kwargs)


def assert_same(one: Match, other: Match) -> None:
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name], err_msg=name)
    np.testing.assert_array_equal(one.course, other.course)


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_every_place_of_the_line_up_has_every_seat_once_a_deal(num_players: int) -> None:
    table = played(["random", *["greedy"] * (num_players - 1)], deals=3).columns()
    at = np.stack([table[f"agent_{seat}"] == "random" for seat in range(num_players)], axis=1)
    for deal in range(3):
        rows = table["deal"] == deal
        np.testing.assert_array_equal(at[rows].sum(axis=0), np.ones(num_players))
        assert len(set(table["deal_hash"][rows])) == 1


def test_a_match_is_what_single_games_give() -> None:
    decks = draw_deals(4, num_players=3, seed=9)
    result = played([First("a"), First("b"), First("c")], deals=decks)
    for row in range(len(result.deal)):
        game = Batch(1, 3, autoreset=False)
        game.reset(decks=decks[result.deal[row]][None])
        length = 0
        while game.action_masks.any():
            game.step(game.action_masks.argmax(axis=1))
            length += 1
        seat = int(game.rewards[0].argmax())
        assert result.length[row] == length
        assert result.win_share[row, (seat - result.rotation[row]) % 3] == 1
        by_seat = [result.columns()[f"cards_left_{s}"][row] for s in range(3)]
        assert by_seat == game.cards_left[0].tolist()


def test_same_seed_same_games() -> None:
    assert_same(*(played(["greedy", "random"], deals=20, seed=4) for _ in range(2)))


def test_other_seeds_give_other_deals() -> None:
    one, other = (played(["greedy", "random"], deals=20, seed=seed) for seed in (4, 5))
    assert not set(one.deal_hash) & set(other.deal_hash)


def test_more_deals_begin_with_the_same_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "BLOCK_GAMES", 16)
    short, long = (played(["greedy", "random"], deals=deals) for deals in (16, 24))
    size = len(short.deal)
    np.testing.assert_array_equal(short.course, long.course[:size])


def test_a_block_does_not_depend_on_the_blocks_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "BLOCK_GAMES", 16)
    whole = played(["greedy", "random"], deals=24, seed=1)
    decks = draw_deals(24, seed=1)
    blocks = [
        match.play_block(["greedy", "random"], decks[first : first + 8], first, seed=1)
        for first in (16, 0, 8)
    ]
    assert_same(whole, Match.concatenate([blocks[1], blocks[2], blocks[0]]))


def test_games_of_deterministic_agents_do_not_depend_on_the_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = played([First("a"), "greedy"], deals=20)
    monkeypatch.setattr(match, "BLOCK_GAMES", 6)
    assert_same(whole, played([First("a"), "greedy"], deals=20))


def test_an_agent_is_asked_once_a_step_for_all_its_games() -> None:
    agent = First()
    result = played([agent], deals=50, num_players=2)
    assert agent.rows == result.length.sum()
    assert agent.calls == result.length.max()


def test_the_order_of_a_line_up_only_turns_the_table() -> None:
    one = played([First(), "greedy"], deals=10)
    other = played(["greedy", First()], deals=10)
    np.testing.assert_array_equal(one.course[0::2], other.course[1::2])
    np.testing.assert_array_equal(one.win_share[0::2], other.win_share[1::2, ::-1])


def test_streams_differ_by_agent_block_and_seed_and_from_the_deals() -> None:
    names, firsts, seeds = ("random", "flat:9"), (0, 256), (0, 1)
    started = {match.agent_seed(*key) for key in itertools.product(names, seeds, firsts)}
    assert len(started) == 8


def test_equal_agents_share_the_wins_fairly_by_construction() -> None:
    result = played(["greedy"], deals=30, num_players=4)
    np.testing.assert_allclose(result.by_deal(result.win_share), 0.25)


def test_nobody_wins_a_game_that_is_cut_off() -> None:
    result = played(["greedy", "random"], deals=20, max_steps=40)
    assert result.cut_off.all()
    assert (result.length == 40).all()
    assert (result.win_share == 0).all()
    assert len(np.unique(result.cards_left)) > 3
    assert (result.place == 1.5).all()  # cards left order nobody


def test_places_count_cards_and_equals_share_theirs() -> None:
    result = played(["random"], deals=1, num_players=3)
    result.cards_left[:] = [[0, 5, 5], [4, 2, 9], [3, 3, 3]]
    np.testing.assert_array_equal(result.place, [[1, 2.5, 2.5], [2, 1, 3], [2, 2, 2]])


def test_the_last_of_a_short_line_up_fills_the_table() -> None:
    assert played(["greedy", "random"], deals=1, num_players=4).line_up == (
        "greedy",
        "random",
        "random",
        "random",
    )


def test_a_function_of_the_seed_makes_an_agent_a_block() -> None:
    def stranger(seed: int) -> threeup_agents.Agent:
        return threeup_agents.make("random", seed)

    assert played([stranger, "greedy"], deals=5).line_up == ("stranger", "greedy")


def test_too_long_a_line_up_is_refused() -> None:
    with pytest.raises(ValueError, match="line_up: expected 1 to 2 agents; got 3"):
        played(["greedy"] * 3, num_players=2)


def test_deals_are_distinct_even_where_there_are_few() -> None:
    decks = draw_deals(2000, variant="mini")
    assert len(set(deal_hashes(decks, 2, "mini").tolist())) == 2000


def test_more_deals_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="deals: expected fewer for variant 'mini'"):
        draw_deals(20_000, variant="mini")


def test_a_shuffle_that_repeats_itself_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deals, "shuffle", lambda stream, cards, size: None)
    with pytest.raises(ValueError, match="hardly more than 1 different"):
        draw_deals(10)


def test_the_order_of_a_hand_makes_no_other_deal() -> None:
    deck = draw_deals(1)[0]
    same, other = deck.copy(), deck.copy()
    same[6:12] = deck[6:12][::-1]
    other[[0, -1]] = deck[[-1, 0]]
    assert deck[0] != deck[-1]
    hashes = deal_hashes(np.array([deck, same, other]), 2, "standard")
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_public_deals_are_frozen() -> None:
    decks = draw_deals(1000, num_players=4, seed=PUBLIC_SEED)
    assert hashlib.sha256(decks.tobytes()).hexdigest()[:16] == "ccc45d262a8594b0"


def test_no_byte_of_a_file_of_games_can_be_wrong_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "games.npz"
    expected = played(["greedy", "random"], deals=2)
    expected.save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        wrong = whole[place] ^ (0xFF if place % 9 == 8 else 1 << place % 9)
        path.write_bytes(whole[:place] + bytes([wrong]) + whole[place + 1 :])
        try:
            found = Match.load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: expected the games of a match; the file is")
        else:  # a byte that means nothing, such as the time of an entry
            assert_same(found, expected)


def test_games_that_were_changed_have_another_checksum(tmp_path: Path) -> None:
    path = tmp_path / "games.npz"
    played(["greedy", "random"], deals=2).save(path)
    with np.load(path) as file:
        columns = dict(file)
    for name in columns:
        changed = columns[name].reshape(-1).copy()
        changed.view(np.uint8)[0] ^= 1
        np.savez(path, **(columns | {name: changed.reshape(columns[name].shape)}))
        with pytest.raises(ValueError, match="the file is damaged"):
            Match.load(path)
    np.savez(path, **{name: columns[name] for name in columns if name != "checksum"})
    with pytest.raises(ValueError, match="the file is damaged"):
        Match.load(path)


def test_a_name_of_its_own_leaves_a_searching_agent_its_small_blocks() -> None:
    # 64 games at 2 seats are 32 deals.
    assert match.blocks(["quick=search:4", "random"], 70) == [(0, 32), (32, 64), (64, 70)]
    assert match.blocks(["search=greedy", "random"], 70) == [(0, 70)]
