import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_env import VARIANTS, Batch
from threeup_env.engine import batch as engine_batch
from threeup_env.engine.cards import sorted_deck
from threeup_env.engine.rng import next_uint64, random_below

ARRAYS = (
    "seats",
    "observations",
    "action_masks",
    "rewards",
    "terminations",
    "truncations",
    "cards_left",
    "lengths",
    "states",
)


def choose(masks: npt.NDArray[np.bool_], step: int) -> npt.NDArray[np.int64]:
    """A legal action a row that depends on the row's own mask and the step alone."""
    counts = np.maximum(masks.sum(axis=1), 1)
    wanted = (step * 2654435761 >> 9) % counts + 1  # Knuth's multiplicative hash
    chosen: npt.NDArray[np.int64] = (masks.cumsum(axis=1) == wanted[:, None]).argmax(axis=1)
    return chosen


def assert_rows_equal(one: Batch, rows: slice, other: Batch, other_rows: slice) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name)[rows], getattr(other, name)[other_rows])


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_a_row_does_not_depend_on_the_number_of_games(num_players: int) -> None:
    large, small = (Batch(n, num_players, seed=5) for n in (300, 8))
    for batch in (large, small):
        batch.reset()
    for step in range(400):
        assert_rows_equal(large, slice(8), small, slice(8))
        for batch in (large, small):
            batch.step(choose(batch.action_masks, step))
    assert small.lengths.min() < 400  # games ended and restarted on the way


def test_a_row_does_not_depend_on_what_the_other_rows_do() -> None:
    one, other = (Batch(4, seed=2) for _ in range(2))
    one.reset()
    other.reset()
    for step in range(200):
        mine = choose(one.action_masks, step)
        theirs = choose(other.action_masks, step + 1)
        theirs[0] = mine[0]
        one.step(mine)
        other.step(theirs)
        assert_rows_equal(one, slice(1), other, slice(1))
    assert not (one.observations == other.observations).all()


def test_a_row_does_not_depend_on_the_thread_that_plays_it() -> None:
    alone, *threaded = (Batch(64, seed=9) for _ in range(5))

    def play(batch: Batch) -> None:
        batch.reset()
        for step in range(150):
            batch.step(choose(batch.action_masks, step))

    threads = [threading.Thread(target=play, args=(batch,)) for batch in threaded]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    play(alone)
    for batch in threaded:
        assert_rows_equal(alone, slice(None), batch, slice(None))


@pytest.mark.parametrize("num_threads", [2, 3, 7])
def test_a_row_does_not_depend_on_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, num_threads: int
) -> None:
    monkeypatch.setattr(engine_batch, "ROWS_PER_THREAD", 5)
    alone = Batch(64, 3, max_steps=150, seed=9)
    threaded = Batch(64, 3, max_steps=150, seed=9, num_threads=num_threads)
    some = np.arange(1, 64, 2)
    for batch in (alone, threaded):
        batch.reset()
        for step in range(300):
            rows = some if step % 4 == 0 else np.arange(64)
            batch.step(choose(batch.action_masks, step)[rows], rows if step % 4 == 0 else None)
    assert_rows_equal(alone, slice(None), threaded, slice(None))
    twin = pickle.loads(pickle.dumps(threaded.copy()))
    for batch in (alone, twin):
        batch.step(choose(batch.action_masks, 300))
    assert_rows_equal(alone, slice(None), twin, slice(None))


def test_a_small_batch_starts_no_threads() -> None:
    before = threading.active_count()
    batch = Batch(64, seed=9, num_threads=4)
    batch.reset()
    batch.step(choose(batch.action_masks, 0))
    assert threading.active_count() <= before


def test_dealing_some_rows_is_what_autoreset_does_to_them() -> None:
    by_hand = Batch(20, variant="mini", max_steps=30, autoreset=False)
    automatic = Batch(20, variant="mini", max_steps=30)
    for batch in (by_hand, automatic):
        batch.reset(seed=5)
    for step in range(90):
        actions = choose(automatic.action_masks, step)
        for batch in (by_hand, automatic):
            batch.step(actions)
        by_hand.reset(rows=np.flatnonzero(by_hand.terminations | by_hand.truncations))
        np.testing.assert_array_equal(by_hand.states, automatic.states)
        np.testing.assert_array_equal(by_hand.observations, automatic.observations)


def test_some_rows_take_given_decks_and_the_others_stay() -> None:
    batch = Batch(3)
    batch.reset(seed=2)
    before = batch.states.copy()
    decks = sorted_deck("standard")[None, ::-1]
    batch.reset(decks=decks, rows=np.array([1]))
    alone = Batch(1)
    alone.reset(decks=decks)
    np.testing.assert_array_equal(batch.observations[1], alone.observations[0])
    np.testing.assert_array_equal(batch.states[[0, 2]], before[[0, 2]])


def test_stepping_some_rows_leaves_the_others_as_they_are() -> None:
    batch, whole = Batch(6, seed=4), Batch(6, seed=4)
    batch.reset()
    whole.reset()
    for step in range(300):
        actions = choose(whole.action_masks, step)
        whole.step(actions)
        before = batch.copy()
        odd, even = np.array([1, 3, 5]), np.array([0, 2, 4])
        batch.step(actions[odd], rows=odd)
        for name in ("seats", "observations", "action_masks", "states", "lengths"):
            unchanged, now = getattr(before, name)[even], getattr(batch, name)[even]
            np.testing.assert_array_equal(unchanged, now)
        assert not batch.terminations[even].any()
        assert (batch.rewards[even] == 0).all()
        batch.step(actions[even], rows=even)
        for name in ("seats", "observations", "action_masks", "states"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(batch, name))


def test_autoreset_shows_the_finished_game_s_outcome_and_the_new_game_s_decision() -> None:
    batch, kept = Batch(16, seed=1), Batch(16, seed=1, autoreset=False)
    batch.reset()
    kept.reset()
    seen = 0
    running = np.ones(16, np.bool_)
    for step in range(1000):
        actions = choose(batch.action_masks, step)
        batch.step(actions)
        kept.step(np.where(running, actions, 0))
        ended = running & (kept.terminations | kept.truncations)
        for row in np.flatnonzero(ended):
            seen += 1
            for name in ("rewards", "terminations", "truncations", "cards_left", "lengths"):
                np.testing.assert_array_equal(getattr(batch, name)[row], getattr(kept, name)[row])
            assert not kept.action_masks[row].any()
            assert batch.states[row].steps == 0
            assert batch.seats[row] == 0
            assert batch.action_masks[row].any()
        running &= ~ended
    assert seen == 16


def test_without_autoreset_a_finished_row_ignores_its_action_and_keeps_its_state() -> None:
    batch = Batch(1, variant="mini", max_steps=5, autoreset=False)
    batch.reset()
    for step in range(5):
        batch.step(choose(batch.action_masks, step))
    assert batch.truncations[0]
    before = batch.copy()
    batch.step([10**6])
    for name in ("states", "observations", "action_masks", "lengths", "cards_left"):
        np.testing.assert_array_equal(getattr(before, name), getattr(batch, name))
    assert not batch.truncations[0]
    assert (batch.rewards == 0).all()


@pytest.mark.parametrize("clone", [Batch.copy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_in_mid_game_goes_on_identically(clone: object) -> None:
    batch = Batch(32, 3, seed=6)
    batch.reset()
    for step in range(100):
        batch.step(choose(batch.action_masks, step))
    twin: Batch = clone(batch)  # type: ignore[operator]
    for step in range(400):
        for each in (batch, twin):
            each.step(choose(each.action_masks, step))
        assert_rows_equal(batch, slice(None), twin, slice(None))


@pytest.mark.parametrize(
    "clone", [lambda b: b, Batch.copy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_nobody_can_write_into_what_a_batch_shows(clone: object) -> None:
    batch = Batch(2, seed=1)
    batch.reset()
    batch = clone(batch)  # type: ignore[operator]
    illegal = int(batch.action_masks[0].argmin())
    for name in ARRAYS:
        array = getattr(batch, name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.setflags(write=True)
    with pytest.raises(ValueError, match="read-only"):
        batch.states[0].hand[0] = 1
    batch.action_masks = np.ones_like(batch.action_masks)
    with pytest.raises(ValueError, match="game 0, seat 0: expected one of"):
        batch.step([illegal] * 2)


def test_saved_records_load_into_another_batch() -> None:
    batch = Batch(8, seed=6)
    batch.reset()
    for step in range(50):
        batch.step(choose(batch.action_masks, step))
    other = Batch(8)
    other.load(batch.states)
    for name in ("seats", "observations", "action_masks", "cards_left", "lengths"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(other, name))
    with pytest.raises(ValueError, match="expected num_seats 2; got 3"):
        other.load(Batch(8, 3).states)
    with pytest.raises(ValueError, match=r"expected STATE_DTYPE records of shape \(8,\)"):
        other.load(batch.states[:3])


def test_R4_a_given_deck_is_dealt_from_its_front() -> None:
    deck = sorted_deck("standard")
    batch = Batch(1)
    batch.reset(decks=deck[None])
    game = batch.states[0]
    # 84 cards from the front: 3 + 3 face down, 6 + 6 in hand, all of them 1s, 2s and 3s.
    assert game.face_down[0].tolist() == [0, 0, 0]
    assert game.face_down[1].tolist() == [0, 0, 0]
    assert game.hand[0].tolist() == [1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert game.hand[1].tolist() == [0, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert game.draw_pile_size == 66
    assert game.draw_pile[::-1].tolist() == deck[18:].tolist()  # the last is drawn first


@pytest.mark.parametrize("num_players", [2, 3, 4, 5, 6])
def test_rewards_are_plus_one_and_shares_of_minus_one_and_sum_to_zero(num_players: int) -> None:
    batch = Batch(64, num_players, seed=8)
    batch.reset()
    won = 0
    for step in range(800):
        batch.step(choose(batch.action_masks, step))
        for row in np.flatnonzero(batch.terminations):
            winner = int(batch.cards_left[row].argmin())
            expected = np.full(num_players, -1 / (num_players - 1), np.float32)
            expected[winner] = 1
            np.testing.assert_allclose(batch.rewards[row], expected, rtol=1e-6)
            assert batch.cards_left[row, winner] == 0
            won += 1
    assert won > 20


def test_R21_nobody_wins_a_game_that_is_cut_off() -> None:
    batch = Batch(200, 3, max_steps=30, seed=8)
    batch.reset()
    for step in range(30):
        assert not batch.truncations.any()
        batch.step(choose(batch.action_masks, step))
    assert batch.truncations.all()
    assert not batch.terminations.any()
    assert (batch.lengths == 30).all()
    assert len(np.unique(batch.cards_left, axis=0)) > 50
    assert (batch.rewards == -0.5).all()  # case 21: a loser's, -1/(n-1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_games": 0}, "num_games: expected an integer of at least 1; got 0"),
        ({"num_games": 1, "max_steps": 0}, "max_steps: expected an integer of at least 1; got 0"),
        ({"num_games": 1, "max_steps": 2**31}, "max_steps: expected at most 2147483647"),
        ({"num_games": 1, "max_steps": 1.5}, "max_steps: expected an integer .* got 1.5"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_games": True}, "num_games: expected an integer of at least 1; got True"),
        ({"num_games": 2.0}, r"num_games: expected an integer of at least 1; got 2\.0"),
        ({"num_players": 2.0}, r"num_players: expected 2 to 6 .* got 2\.0"),
        ({"num_players": "2"}, "num_players: expected 2 to 6 .* got '2'"),
        ({"variant": ["mini"]}, r"variant: expected one of 'standard', .* got \['mini'\]"),
        ({"seed": "a"}, "seed: expected an integer of at least 0; got 'a'"),
        ({"seed": None}, "seed: expected an integer of at least 0; got None"),
        ({"seed": 1.0}, r"seed: expected an integer of at least 0; got 1\.0"),
        ({"autoreset": "no"}, "autoreset: expected True or False; got 'no'"),
        ({"num_threads": 0}, "num_threads: expected an integer of at least 1; got 0"),
        ({"history": 1}, "history: expected True or False; got 1"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(**({"num_games": 1} | arguments))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.reset(seed="a"), "seed: expected an integer of at least 0; got 'a'"),
        (lambda b: b.reset(seed=-1), "seed: expected an integer of at least 0; got -1"),
        (lambda b: b.reset(rows=[0.0]), r"rows: expected ascending .* in 0\.\.3; got \[0\.0\]"),
        (lambda b: b.reset(rows=[4]), r"rows: expected ascending .* in 0\.\.3; got \[4\]"),
        (lambda b: b.reset(rows=[True]), "rows: expected ascending game numbers"),
        (lambda b: b.reset(rows=2), "rows: expected ascending game numbers"),
        (lambda b: b.reset(rows=[[0], [1, 2]]), "rows: expected rows of one length"),
        (lambda b: b.reset(decks="deck"), "deck: expected 84 rank ids"),
        (lambda b: b.reset(decks=[[1], [1, 2]]), "decks: expected rows of one length"),
        (lambda b: b.step("play"), r"actions: expected integers of shape \(4,\)"),
        (lambda b: b.step(None), r"actions: expected integers of shape \(4,\); got object"),
        (lambda b: b.step([True] * 4), r"actions: expected integers .* got bool"),
        (lambda b: b.step([[0], [1, 2]]), "actions: expected rows of one length"),
        (lambda b: b.step([0], rows=[-1]), "rows: expected ascending game numbers"),
        (lambda b: b.observe([1.5] * 4), r"seats: expected integers of shape \(4,\); got float64"),
        (lambda b: b.observe(1), r"seats: expected integers of shape \(4,\); got int64 of shape"),
        (lambda b: b.load("x"), r"states: expected STATE_DTYPE records of shape \(4,\)"),
        (lambda b: b.load(None), r"states: expected STATE_DTYPE records of shape \(4,\)"),
    ],
)
def test_a_call_with_a_wrong_argument_is_refused_and_changes_nothing(
    call: Callable[[Batch], None], message: str
) -> None:
    batch = Batch(4, seed=1)
    batch.reset()
    before = batch.copy()
    with pytest.raises(ValueError, match=message):
        call(batch)
    assert_rows_equal(before, slice(None), batch, slice(None))


def test_no_rows_is_a_call_that_shows_no_ends() -> None:
    batch = Batch(4, seed=1)
    batch.reset()
    before = batch.copy()
    batch.step([], rows=[])  # type: ignore[arg-type]
    batch.reset(rows=np.array([], np.int64))
    assert_rows_equal(before, slice(None), batch, slice(None))


def test_calls_out_of_order_and_misshapen_actions_are_refused() -> None:
    batch = Batch(3)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        batch.step([0, 0, 0])
    with pytest.raises(RuntimeError, match=r"call reset\(\) before observe\(\)"):
        batch.observe([0, 0, 0])
    batch.reset()
    with pytest.raises(ValueError, match=r"actions: expected integers of shape \(3,\)"):
        batch.step([0, 0])
    with pytest.raises(ValueError, match="got float64"):
        batch.step([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"rows: expected ascending game numbers in 0\.\.2"):
        batch.step([0, 0], rows=np.array([1, 1]))
    with pytest.raises(ValueError, match=r"rows: expected ascending game numbers in 0\.\.2"):
        batch.step([0, 0], rows=np.array([5, 1], np.uint64))
    with pytest.raises(ValueError, match="seed: expected an integer of at least 0; got -1"):
        Batch(1, seed=-1)
    with pytest.raises(ValueError, match=r"seats: expected 3 seats in 0\.\.1"):
        batch.observe([0, 1, 2])
    with pytest.raises(ValueError, match="decks: expected 3 rows; got 1"):
        batch.reset(decks=sorted_deck("standard")[None])


@pytest.mark.parametrize("variant", VARIANTS)
def test_observe_gives_the_acting_seat_s_observation_and_changes_nothing(variant: str) -> None:
    batch = Batch(8, variant=variant, seed=3)
    batch.reset()
    for step in range(60):
        before = batch.copy()
        np.testing.assert_array_equal(batch.observe(batch.seats), batch.observations)
        batch.observe(1 - batch.seats)
        assert_rows_equal(before, slice(None), batch, slice(None))
        batch.step(choose(batch.action_masks, step))


def test_the_stream_is_splitmix64() -> None:
    # The first outputs for seed 1234567, published with the generator's reference code.
    stream = np.array([1234567], np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(next_uint64(stream)) for _ in expected] == expected


def test_small_random_numbers_are_equally_likely() -> None:
    stream = np.array([1], np.uint64)
    counts = np.bincount([random_below(stream, 6) for _ in range(60_000)], minlength=6)
    chi_square = ((counts - 10_000) ** 2 / 10_000).sum()
    assert len(counts) == 6
    assert chi_square < 20.5  # 5 degrees of freedom, p = 0.001


def test_every_order_of_a_shuffle_is_equally_likely() -> None:
    # The mini deck's first face-down card (R4) is a 1 in 3 of 10 shuffles, and so on.
    batch = Batch(20_000, variant="mini", seed=12)
    batch.reset()
    for seat in range(2):
        ranks = np.bincount(batch.states["face_down"][:, seat, 0], minlength=13)
        expected = np.array(VARIANTS["mini"].copies) * 2_000
        used = expected > 0
        chi_square = ((ranks[used] - expected[used]) ** 2 / expected[used]).sum()
        assert ranks[~used].sum() == 0
        assert chi_square < 18.5  # 4 degrees of freedom, p = 0.001
