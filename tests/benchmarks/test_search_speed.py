"""Iterations of `search` next to OpenSpiel's C++ search, and what its worlds cost.

`pip install open_spiel` for the comparison.
"""

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.ratio import compare, speed
from threeup_agents.search.searchers import Search
from threeup_env import STATE_DTYPE, Batch
from threeup_env.engine.cards import MAX_DECK_SIZE
from threeup_env.engine.compiled import compiled
from threeup_env.engine.determinize import deal_unseen, write_seen, write_unseen

Decisions = tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]


def decisions(count: int, num_players: int = 2) -> Decisions:
    """Real choices from all parts of random games."""
    batch = Batch(count, num_players, seed=3)
    batch.reset()
    rng = np.random.default_rng(3)
    stops = rng.integers(120, size=count)
    for step in range(int(stops.max())):
        actions = np.argmax(batch.action_masks * rng.random(batch.action_masks.shape), axis=1)
        rows = np.flatnonzero((step < stops) | (batch.action_masks.sum(axis=1) == 1))
        batch.step(actions[rows], rows)
    chosen = batch.action_masks.sum(axis=1) > 1
    return batch.observations[chosen], batch.action_masks[chosen]


def hearts_speed(num_decisions: int, iterations: int) -> Callable[[], float]:
    """Make a measurement of OpenSpiel's ISMCTS on hearts, in millions of simulations a second.

    All decisions are player 0's: OpenSpiel's bot crashes on those of the others.
    """
    pyspiel: Any = pytest.importorskip("pyspiel", reason="needs OpenSpiel: pip install open_spiel")
    game = pyspiel.load_game("hearts")
    evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
    rng = random.Random(1)
    states: list[Any] = []
    while len(states) < num_decisions:
        state = game.new_initial_state()
        while not state.is_terminal():
            legal = state.legal_actions()
            if not state.is_chance_node() and state.current_player() == 0 and len(legal) > 1:
                states.append(state.clone())
            state.apply_action(rng.choice(legal))

    def measure() -> float:
        spent = 0.0
        for state in rng.sample(states, num_decisions):
            bot = pyspiel.ISMCTSBot(rng.randrange(1000), evaluator, 1.0, iterations, -1)
            start = time.process_time()
            bot.step(state)
            spent += time.process_time() - start
        return num_decisions * iterations / spent / 1e6

    return measure


@pytest.mark.parametrize("num_players", [2, 4])
def test_search_next_to_openspiel(benchmark: BenchmarkFixture, num_players: int) -> None:
    theirs = hearts_speed(20, 500)
    seen, masks = decisions(60 if num_players == 2 else 240, num_players)
    searched = [Search(1).explain(each).visits.any() for each in seen]
    seen, masks = seen[searched], masks[searched]
    agent = Search(1000, num_threads=1)
    compare(
        benchmark,
        f"search:1000, {num_players} players, one thread / ISMCTS on hearts",
        speed(len(seen) * 1000, lambda: agent.act(seen, masks)),
        theirs,
        rounds=5,
        unit="M iterations/s",
        target="10",
    )


def test_search_on_two_threads(benchmark: BenchmarkFixture) -> None:
    """By the clock, since two threads spend the processor time of both."""
    seen, masks = decisions(120)

    def by_the_clock(num_threads: int) -> Callable[[], float]:
        agent = Search(1000, num_threads=num_threads)

        def measure() -> float:
            start = time.perf_counter()
            agent.act(seen, masks)
            return len(seen) * 1000 / (time.perf_counter() - start) / 1e6

        return measure

    compare(
        benchmark,
        "search:1000, two threads / one thread, by the clock",
        by_the_clock(2),
        by_the_clock(1),
        rounds=5,
        unit="M iterations/s",
        target="",
    )


@compiled
def copy_record(states: npt.NDArray[np.void], times: int) -> None:
    """Copy the first record over the others, again and again."""
    for i in range(times):
        states[1 + i % (len(states) - 1)] = states[0]


@compiled
def draw_worlds(vector: npt.NDArray[np.int8], states: npt.NDArray[np.void], times: int) -> None:
    """Draw worlds as an iteration of `search` does."""
    cards = np.empty(MAX_DECK_SIZE, np.int8)
    stream = np.ones(1, np.uint64)
    write_seen(vector, states[0])
    size = write_unseen(vector, cards)
    for _ in range(times):
        states[1] = states[0]
        deal_unseen(states[1], cards, size, stream)


@pytest.mark.parametrize("num_players", [2, 6])
def test_a_world_next_to_a_copy(benchmark: BenchmarkFixture, num_players: int) -> None:
    """At the start of play, when most cards are unseen; 1 M/s is 1000 ns each."""
    batch = Batch(1, num_players, seed=1)
    batch.reset()
    states = np.zeros(9, STATE_DTYPE)
    states[0] = batch.states[0]
    worlds = np.zeros(2, STATE_DTYPE)
    times = 200_000
    compare(
        benchmark,
        f"determinization / copying a record, {num_players} players",
        speed(times, lambda: draw_worlds(batch.observations[0], worlds, times)),
        speed(times, lambda: copy_record(states, times)),
        rounds=5,
        unit="M/s",
        target="",
    )
