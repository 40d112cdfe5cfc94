import numpy as np
import pytest

import agents
from agents import match
from agents.statistics import mean_interval
from agents.tree import information
from agents.worlds import NO_ACTION, choose, decision_stream, rollout_action
from threeup_env import Batch, determinize
from threeup_env.observation import MANY_STEPS, STEPS_LEFT


def random_games(num_players: int) -> Batch:
    batch = Batch(40, num_players, seed=num_players, max_steps=5000)
    batch.reset()
    return batch


def random_step(batch: Batch, rng: np.random.Generator) -> None:
    batch.step(np.argmax(batch.action_masks * rng.random(batch.action_masks.shape), axis=1))


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_rollouts_are_legal_and_read_nothing_hidden(num_players: int) -> None:
    batch = random_games(num_players)
    rng = np.random.default_rng(0)
    for step in range(150):
        twins = determinize(batch.observations, seed=step)[:, 0]
        for row in range(0, 40, 5):
            action = rollout_action(batch.states[row])
            assert batch.action_masks[row, action]
            assert rollout_action(twins[row]) == action
        random_step(batch, rng)


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_nodes_are_what_the_searcher_can_tell_apart(num_players: int) -> None:
    """Same observation of any seat, same key; another observation, another key."""
    batch = random_games(num_players)
    rng = np.random.default_rng(0)
    keys: dict[int, bytes] = {}
    seen: dict[bytes, int] = {}
    for step in range(150):
        observers = rng.integers(num_players, size=40)
        observations = batch.observe(observers)
        assert (observations[:, STEPS_LEFT] == MANY_STEPS).all()
        twins = determinize(observations, seed=step)[:, 0]
        for row in range(0, 40, 5):
            key = int(information(batch.states[row], int(observers[row])))
            assert int(information(twins[row], int(observers[row]))) == key
            observation = bytes(observations[row])
            assert keys.setdefault(key, observation) == observation
            assert seen.setdefault(observation, key) == key
        random_step(batch, rng)


def results(**found: tuple[int, float]) -> tuple[np.ndarray, np.ndarray]:
    visits, totals = np.zeros(94, np.int64), np.zeros(94)
    for name, (count, mean) in found.items():
        visits[int(name[1:])] = count
        totals[int(name[1:])] = count * mean
    return visits, totals


def test_the_habit_is_left_only_for_what_is_surely_better() -> None:
    assert choose(*results(a3=(100, 0.50), a4=(100, 0.55)), 3, 1.0) == 3
    assert choose(*results(a3=(1000, 0.50), a4=(1000, 0.55)), 3, 1.0) == 4
    assert choose(*results(a3=(100, 0.50), a4=(100, 0.55)), 3, 0.0) == 4
    assert choose(*results(a3=(100, 0.50), a4=(100, 0.50)), 4, 0.0) == 4
    assert choose(*results(a3=(90, 0.0), a4=(100, 1.0), a5=(9, 0.5)), 3, 1.0) == 4


def test_without_a_habit_the_best_mean_is_chosen() -> None:
    assert choose(*results(a3=(100, 0.50), a4=(100, 0.51)), NO_ACTION, 1.0) == 4
    assert choose(*results(a3=(100, 0.0), a4=(100, 0.0)), 9, 1.0) == 3


def test_each_decision_has_a_stream_of_its_own() -> None:
    batch = random_games(2)
    rng = np.random.default_rng(0)
    streams = set()
    for _ in range(50):
        random_step(batch, rng)
        for row in range(40):
            for seed in (1, 2):
                vector, mask = batch.observations[row], batch.action_masks[row]
                streams.add((int(decision_stream(np.uint64(seed), vector, mask)), bytes(vector)))
    assert len({stream for stream, _ in streams}) == len(streams)


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "num_players"), [("flat:100", 2), ("search:200", 2)])
def test_searching_beats_greedy(spec: str, num_players: int) -> None:
    games = match.play([spec, "greedy"], deals=150, num_players=num_players, progress=False)
    shares = games.by_deal(games.win_share)[:, 0]
    assert mean_interval(shares, np.random.default_rng(0)).low > 1 / num_players
    assert agents.make(spec).name == spec
