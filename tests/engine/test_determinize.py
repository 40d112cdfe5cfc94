import re
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare

from tests.builders import play, position
from threeup_env import RANK_NAMES, VARIANTS, Batch, decode
from threeup_env.engine.cards import VARIANT_NAMES
from threeup_env.engine.determinize import determinize
from threeup_env.engine.observation import observation_fields
from threeup_env.engine.rng import PURPOSES, streams

TABLES = [
    *(("standard", n) for n in range(2, 7)),
    *(("listed", n) for n in range(2, 7)),
    ("mini", 2),
]
HIDDEN_FIELDS = ("hand", "face_up", "face_down", "draw_pile")


def random_step(batch: Batch, rng: np.random.Generator) -> None:
    batch.step(np.argmax(batch.action_masks * rng.random(batch.action_masks.shape), axis=1))


def all_observations(batch: Batch) -> npt.NDArray[np.int8]:
    """What every seat of every game knows, int8 `[S, B, F]`."""
    rows = np.ones(batch.num_games, np.int64)
    return np.stack([batch.observe(rows * seat) for seat in range(batch.num_players)])


def loaded(worlds: npt.NDArray[np.void], like: Batch) -> Batch:
    batch = Batch(len(worlds), like.num_players, like.variant, autoreset=False)
    batch.load(worlds)
    return batch


def cards_of(states: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Copies of each rank over all places, `[B, R]`."""
    counts = states["pile"].astype(np.int64) + states["out_of_play"]
    counts = counts + states["hand"].sum(axis=1) + states["face_up"].sum(axis=1)
    for place, size in (("draw_pile", "draw_pile_size"), ("face_down", "face_down_size")):
        filled = np.arange(states[place].shape[-1]) < states[size][..., None]
        for rank in range(len(RANK_NAMES)):
            hits = (states[place] == rank) & filled
            counts[:, rank] += hits.reshape(len(states), -1).sum(axis=1)
    return np.asarray(counts)


@pytest.mark.parametrize(("variant", "num_players"), TABLES)
def test_every_observer_sees_the_same_in_the_drawn_game(variant: str, num_players: int) -> None:
    batch = Batch(3, num_players, variant, max_steps=200, seed=5, autoreset=False)
    batch.reset()
    rng = np.random.default_rng(2)
    for _ in range(200):
        random_step(batch, rng)
        seen = all_observations(batch)
        for seat, observations in enumerate(seen):
            worlds = determinize(observations, seed=seat)[:, 0]
            again = loaded(worlds, batch).observe(np.full(3, seat))
            assert (again == observations).all()


@pytest.mark.parametrize(("variant", "num_players"), TABLES)
def test_drawn_games_have_the_deck_and_the_legal_actions(variant: str, num_players: int) -> None:
    batch = Batch(40, num_players, variant, seed=6)
    batch.reset()
    rng = np.random.default_rng(3)
    deck = np.asarray(VARIANTS[variant].copies)
    for _ in range(100):
        random_step(batch, rng)
        worlds = determinize(batch.observations, seed=1)[:, 0]
        assert (cards_of(worlds) == deck).all()
        drawn = loaded(worlds, batch)
        assert (drawn.seats == batch.seats).all()
        assert (drawn.action_masks == batch.action_masks).all()
    while drawn.action_masks.any():
        random_step(drawn, rng)


def test_a_drawn_game_counts_the_steps_that_are_left() -> None:
    batch = Batch(1, max_steps=40, seed=1, autoreset=False)
    batch.reset()
    rng = np.random.default_rng(0)
    for _ in range(30):
        random_step(batch, rng)
    drawn = loaded(determinize(batch.observations, seed=0)[:, 0], batch)
    for _ in range(10):
        assert not drawn.truncations[0]
        random_step(drawn, rng)
    assert drawn.truncations[0]


def test_a_won_game_stays_won() -> None:
    batch = play(position("7", other_hand="8 9"), "play 7")
    for seat in range(2):
        world = determinize(batch.observe([seat]), seed=0)[0, 0]
        assert world["winner"] == 0
        assert world["hand_size"][:2].tolist() == [0, 2]


def test_known_cards_stay_in_the_hands_that_picked_them_up() -> None:
    batch = play(position("3 4", pile="5 9 9", draw_pile="1 2 3 4 5 6"), "pick up")
    worlds = determinize(batch.observe([1]), seed=3, num_worlds=50)[0]
    assert (worlds["hand"][:, 0] >= worlds["known"][:, 0]).all()
    assert (worlds["known"][:, 0] == batch.states["known"][0, 0]).all()
    assert worlds["known"][0, 0].sum() == 3


def test_the_same_seed_draws_the_same_worlds_whatever_stands_below() -> None:
    batch = Batch(8, num_players=3, seed=4)
    batch.reset()
    worlds = determinize(batch.observations, seed=9, num_worlds=4)
    assert (worlds == determinize(batch.observations, seed=9, num_worlds=4)).all()
    assert (worlds[:3] == determinize(batch.observations[:3], seed=9, num_worlds=4)).all()
    assert (worlds != determinize(batch.observations, seed=10, num_worlds=4)).any()


def test_twin_games_give_the_same_worlds() -> None:
    batch = Batch(30, num_players=4, seed=8)
    batch.reset()
    rng = np.random.default_rng(1)
    for step in range(60):
        observations = batch.observations
        twins = determinize(observations, seed=step + 100)[:, 0]
        seen_by_twin = loaded(twins, batch).observations
        hidden = [(twins[name] != batch.states[name]).any() for name in HIDDEN_FIELDS]
        assert any(hidden)
        assert (determinize(observations, seed=7) == determinize(seen_by_twin, seed=7)).all()
        random_step(batch, rng)


def test_the_deal_s_own_seed_draws_worlds_no_nearer_to_the_truth() -> None:
    # The chance that a place of the draw pile holds the true rank, with the seed of the deal
    # and with another one; 2,000 games of 66 places each.
    batch = Batch(1)
    hits = np.zeros(2)
    for seed in range(2000):
        batch.reset(seed=seed)
        for i, other in enumerate((seed, seed + 10_000)):
            worlds = determinize(batch.observations, seed=other)
            hits[i] += (worlds["draw_pile"][0, 0] == batch.states["draw_pile"][0]).mean()
    same, different = hits / 2000
    assert abs(same - different) < 0.003  # 4 standard errors of a share of 0.08


def test_players_and_games_of_one_seed_have_streams_of_their_own() -> None:
    starts = [streams(7, 4, purpose) for purpose in PURPOSES]
    assert len(np.unique(starts)) == 4 * len(PURPOSES)
    assert len(set(PURPOSES)) == len(PURPOSES) >= 8


def test_every_stream_that_is_started_has_a_purpose_of_the_table() -> None:
    root = Path(__file__).parents[2]
    sources = [*root.glob("threeup_env/**/*.py"), *root.glob("agents/**/*.py")]
    keys = {
        key for path in sources for key in re.findall(r"spawn_key=(.*?)\)\n?", path.read_text())
    }
    assert keys == {"purpose", "TRAINING", "(*STATISTICS, use"}


@pytest.mark.parametrize("field", ["seat", "unseen", "hand_size[1]"])
def test_numbers_that_no_observation_holds_are_refused(field: str) -> None:
    batch = Batch(2)
    batch.reset()
    vectors = batch.observations.copy()
    vectors[1, observation_fields(2)[field]] = 100
    with pytest.raises(ValueError, match=rf"possible {re.escape(field)}; got \[100"):
        determinize(vectors, seed=0)


def test_every_hidden_place_varies() -> None:
    batch = Batch(1, num_players=3, seed=2)
    batch.reset()
    for laid in range(4):
        worlds = determinize(batch.observe([2]), seed=laid, num_worlds=100)[0]
        for name in ("hand", "face_down", "draw_pile"):
            assert len(np.unique(worlds[name], axis=0)) > 50, name
        seen_face_up = len(np.unique(worlds["face_up"][:, 0], axis=0))
        assert seen_face_up > 50 if laid == 3 else seen_face_up <= 1 + 40 * laid
        batch.step(batch.action_masks.argmax(axis=1))


def test_vectors_that_are_no_observations_are_refused() -> None:
    batch = Batch(3)
    batch.reset()
    broken = batch.observations.copy()
    broken[1, 6] -= 1
    with pytest.raises(ValueError, match="expected in row 1 a possible draw_pile_size"):
        determinize(broken, seed=0)
    with pytest.raises(ValueError, match="expected one of 136"):
        determinize(broken[:, :-1], seed=0)
    with pytest.raises(ValueError, match="expected at least 1"):
        determinize(batch.observations, seed=0, num_worlds=0)


Places = tuple[tuple[int, ...], ...]


def enumerate_worlds(observation: npt.NDArray[np.int8]) -> Counter[Places]:
    """Deal the unseen cards in every order, in plain Python: the law of `determinize` at 2 seats.

    A world is the other seat's hand and face-up cards sorted, both face-down rows and
    the draw pile in order; its number counts the orders that lead to it.
    """
    view = decode(observation)
    me, other = view["seats"]
    variant = VARIANTS[VARIANT_NAMES[view["variant"]]]
    unseen = [rank for rank, count in enumerate(view["unseen"]) for _ in range(count)]
    laid = variant.hand_size + variant.num_face_up - other["hand_size"] if view["laying"] else 0
    worlds: Counter[Places] = Counter()
    for order in permutations(unseen):
        rest = list(order)
        hand = [rest.pop() for _ in range(other["hand_size"] - other["hand"].sum())]
        # Each place in hand has a bound of its own; what order breaks none counts.
        if any(rank >= bound > 0 for rank, bound in zip(hand, other["bounds"], strict=False)):
            continue
        face_up = [rest.pop() for _ in range(laid)]
        downs = [tuple(rest.pop() for _ in range(s["face_down_size"])) for s in (me, other)]
        assert len(rest) == view["draw_pile_size"]
        world = (tuple(sorted(hand)), tuple(sorted(face_up)), *downs, tuple(rest))
        worlds[world] += 1
    return worlds


def places(world: np.void, observation: npt.NDArray[np.int8]) -> Places:
    """A drawn record as `enumerate_worlds` writes it."""
    view = decode(observation)
    me, other = int(view["seat"]), 1 - int(view["seat"])
    hand = world["hand"][other] - view["seats"]["hand"][1]
    face_up = world["face_up"][other] - view["seats"]["face_up"][1]
    downs = [
        tuple(world["face_down"][s][: world["face_down_size"][s]].tolist()) for s in (me, other)
    ]
    sorted_cards = [tuple(np.repeat(np.arange(13), copies).tolist()) for copies in (hand, face_up)]
    return *sorted_cards, *downs, tuple(world["draw_pile"][: world["draw_pile_size"]].tolist())


@pytest.mark.parametrize("num_steps", [0, 1, 2, 6, 9, 12])
@pytest.mark.parametrize("seat", [0, 1])
def test_worlds_have_the_frequencies_of_full_enumeration(num_steps: int, seat: int) -> None:
    batch = Batch(1, variant="mini", seed=3, autoreset=False)
    batch.reset()
    rng = np.random.default_rng(4)
    for _ in range(num_steps):
        random_step(batch, rng)
    observation = batch.observe([seat])[0]
    law = enumerate_worlds(observation)
    worlds = determinize(observation[None], seed=11, num_worlds=20_000)[0]
    worlds["rng"] = 0
    different, times = np.unique(worlds, return_counts=True)
    pairs = zip(different, times, strict=True)
    drawn = Counter({places(world, observation): int(count) for world, count in pairs})
    assert set(drawn) <= set(law)
    expected = np.array([law[world] for world in law]) / sum(law.values()) * len(worlds)
    observed = np.array([drawn[world] for world in law])
    assert expected.min() > 5
    assert len(law) == 1 or chisquare(observed, expected).pvalue > 0.001
