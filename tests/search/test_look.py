from typing import Any

import numpy as np
import pytest

import threeup_agents
from threeup_agents.search.look import look_rows, looked_ahead
from threeup_agents.search.rollouts import rollout_action
from threeup_agents.search.value import (
    HORIZON,
    SHEET_DTYPE,
    ValueNetwork,
    shipped,
    write_features,
)
from threeup_env import Batch
from threeup_env.engine.determinize import determinize
from threeup_env.engine.state import STATE_DTYPE

SIZES = range(2, 7)


def without_a_draw_pile(num_players: int, count: int = 6) -> Batch:
    """Choices of careful players after the last card is drawn."""
    batch = Batch(200, num_players, seed=5, autoreset=False)
    batch.reset()
    careful = threeup_agents.make("careful")
    found: list[Any] = []
    while len(found) < count:
        rows = np.flatnonzero(batch.action_masks.any(axis=1))
        actions = careful.act(batch.observations[rows], batch.action_masks[rows])
        batch.step(actions, rows)
        open_ = (batch.states["draw_pile_size"] == 0) & (batch.states["laying"] == 0)
        several = batch.action_masks.sum(axis=1) > 2
        found += [batch.states[row].copy() for row in np.flatnonzero(open_ & several)]
    chosen = Batch(count, num_players, autoreset=False)
    chosen.load(np.array(found[:count], STATE_DTYPE))
    return chosen


def plain_share(world: Any, action: int, observer: int, network: ValueNetwork) -> float:
    """One action played on in one world, step by step through the public face."""
    game = Batch(1, int(world["num_seats"]), autoreset=False)
    game.load(np.array([world], STATE_DTYPE))
    game.step([action])
    choices = HORIZON
    while game.action_masks.any():
        mine = game.seats[0] == observer and game.action_masks[0].sum() > 1
        if mine and choices == 0:
            break
        choices -= bool(mine)
        game.step([rollout_action(game.states[0], observer)])
    if not game.action_masks.any():
        return float(game.cards_left[0, observer] == 0 and game.terminations[0])
    sheet = np.zeros(1, SHEET_DTYPE)[0]
    held = sheet["features"][: write_features(game.states[0], sheet)]
    first = np.maximum(network.first[held].sum(axis=0) + network.first_biases, 0)
    second = np.maximum(first @ network.second + network.second_biases, 0)
    odds = np.exp(network.last @ second + network.last_biases)
    return float(odds[0] / odds.sum())


@pytest.mark.parametrize("num_players", SIZES)
def test_shares_are_those_of_plain_python(num_players: int) -> None:
    batch = without_a_draw_pile(num_players)
    network = shipped(num_players)
    for row in range(batch.num_games):
        some = slice(row, row + 1)
        seen, mask = batch.observations[some], batch.action_masks[some]
        worlds = determinize(seen, seed=row, num_worlds=3)[0]
        visits, totals = np.empty((1, 94), np.int64), np.empty((1, 94))
        actions = np.empty(1, np.int64)
        look_rows(seen, mask, np.uint64(1), 3, worlds, visits, totals, actions, network)
        seat = int(batch.seats[row])
        for action in np.flatnonzero(mask[0]):
            shares = [plain_share(world, int(action), seat, network) for world in worlds]
            assert visits[0, action] == 3
            assert totals[0, action] == pytest.approx(sum(shares), abs=1e-4)


def test_gains_are_means_of_differences_in_the_same_worlds() -> None:
    batch = without_a_draw_pile(3)
    few = looked_ahead(batch.observations, batch.action_masks, 50, seed=1)
    many = looked_ahead(batch.observations, batch.action_masks, 3000, seed=2)
    careful = threeup_agents.make("careful").act(batch.observations, batch.action_masks)
    assert (few.habits == careful).all()
    assert (few.gains[np.arange(len(careful)), careful] == 0).all()
    assert (few.gains[~batch.action_masks] == 0).all()
    others = batch.action_masks.copy()
    others[np.arange(len(careful)), careful] = False
    spread = np.hypot(few.errors, many.errors)[others]
    off = (few.gains - many.gains)[others]
    assert (np.abs(off) < 4 * spread + 1e-9).mean() > 0.95
    assert (many.errors[others] <= few.errors[others] + 1e-9).mean() > 0.9


def test_with_a_draw_pile_it_plays_as_careful() -> None:
    batch = Batch(300, 3, seed=2)
    batch.reset()
    rng = np.random.default_rng(2)
    look, careful = threeup_agents.make("look:4"), threeup_agents.make("careful")
    differ = 0
    for _ in range(150):
        views = batch.observations, batch.action_masks
        ours, theirs = look.act(*views), careful.act(*views)
        full = (batch.states["draw_pile_size"] > 0) | (batch.states["laying"] > 0)
        assert (ours[full] == theirs[full]).all()
        differ += int((ours[~full] != theirs[~full]).sum())
        batch.step((rng.random(batch.action_masks.shape) * batch.action_masks).argmax(axis=1))
    assert differ > 50


@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_choice_depends_on_its_own_row_alone(num_threads: int) -> None:
    batch = without_a_draw_pile(4)
    whole = threeup_agents.make("look:8", 3, num_threads).act(
        batch.observations, batch.action_masks
    )
    one = threeup_agents.make("look:8", 3)
    for row in range(batch.num_games):
        some = slice(row, row + 1)
        assert one.act(batch.observations[some], batch.action_masks[some])[0] == whole[row]
