import numpy as np
import pytest

import threeup_agents
from tests.builders import position
from threeup_agents.analysis.statistics import mean_interval
from threeup_agents.arena import play as match
from threeup_agents.players.careful import Careful, blocking_chance
from threeup_env import ACTION_NAMES, RANK_NAMES, Batch, determinize
from threeup_env.agent import name_of

CAREFUL = Careful()


def choice(batch: Batch) -> str:
    return ACTION_NAMES[int(CAREFUL.act(batch.observations, batch.action_masks)[0])]


@pytest.mark.parametrize(
    ("variant", "num_players"),
    [("mini", 2), *((variant, size) for variant in ("standard", "listed") for size in range(2, 7))],
)
def test_choices_are_legal_and_independent_of_hidden_cards(variant: str, num_players: int) -> None:
    batch = Batch(50, num_players, variant, seed=1)
    batch.reset()
    twins = Batch(50, num_players, variant, autoreset=False)
    rng = np.random.default_rng(2)
    for step in range(150):
        actions = CAREFUL.act(batch.observations, batch.action_masks)
        assert batch.action_masks[np.arange(50), actions].all()
        twins.load(determinize(batch.observations, seed=step)[:, 0])
        assert (CAREFUL.act(twins.observations, twins.action_masks) == actions).all()
        random = np.argmax(batch.action_masks * rng.random(batch.action_masks.shape), axis=1)
        batch.step(np.where(rng.random(50) < 0.7, actions, random))


def test_it_lays_equal_numbers_together() -> None:
    batch = Batch(1)
    front = "1 2 3 1 2 3" + " 7 7 9 1 2 8" + " 3 4 5 6 8 9"
    deck = [RANK_NAMES.index(name) for name in front.split()]
    rest = np.bincount(deck, minlength=13)
    copies = np.array([*[7] * 10, 6, 6, 2]) - rest
    batch.reset(decks=np.array([[*deck, *np.repeat(np.arange(13), copies)]]))
    laid = []
    for _ in range(3):
        laid.append(choice(batch))
        batch.step(CAREFUL.act(batch.observations, batch.action_masks))
    assert laid == ["lay 7", "lay 7", "lay 9"]


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param(
            position("C+1", draw_pile="4 5 6", pile="3"), "play C+1", id="no choice, no harm"
        ),
        pytest.param(
            position("3 3 9", draw_pile="4 5 6"), "play 3 x2", id="low cards go first and together"
        ),
        pytest.param(
            position("9 9 10", draw_pile="4 5 6"), "play 9", id="high cards one at a time"
        ),
        pytest.param(position("C C C+1", draw_pile="4 5 6"), "play C", id="Clears one at a time"),
        pytest.param(
            position("9 9 10", other_hand="10 C 3"),
            "play 9 x2",
            id="together once the draw pile is gone",
        ),
        pytest.param(position("3 9 10", other_hand="5"), "play 9", id="the next seat is blocked"),
        pytest.param(position("4 4 4", other_hand="C"), "play 4 x3", id="the win is taken"),
    ],
)
def test_its_rules(batch: Batch, expected: str) -> None:
    assert choice(batch) == expected


def test_a_choice_that_the_mask_leaves_out_gives_way_to_the_lowest_action_in_it() -> None:
    batch = Batch(50, 3, seed=4)
    batch.reset()
    for step in range(40):
        free = CAREFUL.act(batch.observations, batch.action_masks)
        masks = batch.action_masks.copy()
        masks[np.arange(0, 50, 2), free[::2]] = False
        masks[~masks.any(axis=1)] = batch.action_masks[~masks.any(axis=1)]
        actions = CAREFUL.act(batch.observations, masks)
        kept = masks[np.arange(50), free]
        assert (step == 0) <= (~kept).any()
        np.testing.assert_array_equal(actions, np.where(kept, free, masks.argmax(axis=1)))
        batch.step(actions)


def test_blocking_chance_counts_unseen_cards() -> None:
    """Seat 1 holds two of 2 5 8 9, unseen: on an 8 it fails with 2 5 alone, one pair of six."""
    batch = position("3 7", other_hand="2 5", face_down="8 9")
    game = batch.states[0].copy()
    assert blocking_chance(game, 0, 7) == pytest.approx(1 / 6)
    game["known"][1, RANK_NAMES.index("2")] = 1
    assert blocking_chance(game, 0, 7) == pytest.approx(1 / 3)
    game["known"][1, RANK_NAMES.index("9")] = 1
    assert blocking_chance(game, 0, 7) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_careful_beats_greedy(num_players: int) -> None:
    games = match.play(
        ["careful", "greedy"], deals=4000, num_players=num_players, seed=17, progress=False
    )
    shares = games.by_deal(games.win_share)[:, 0]
    interval = mean_interval(shares)
    assert interval.low > 1 / num_players
    assert interval.high - interval.low < 0.04


def test_make_knows_it() -> None:
    assert name_of(threeup_agents.make("careful")) == "careful"
