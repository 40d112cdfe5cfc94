"""Games through the arena next to the engine's own random play."""

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.ratio import compare
from tests.benchmarks.test_engine_speed import play_engine
from threeup_agents.arena import play as match
from threeup_agents.arena.run_folder import Folder
from threeup_agents.arena.tournament import Settings, play_tournament

DEALS = 512
NUM_ACTIONS = 300_000


def engine_games(num_players: int) -> float:
    """Thousands of random games a second in the compiled loop."""
    start = time.process_time()
    num_games, _ = play_engine(1, num_players, 1000, NUM_ACTIONS)
    return num_games / (time.process_time() - start) / 1e3


@pytest.mark.parametrize("num_players", [2, 4])
def test_arena_next_to_the_compiled_loop(benchmark: BenchmarkFixture, num_players: int) -> None:
    """Deals drawn, agents made, every answer checked; greedy's games are shorter than random's."""
    deals = 2 * DEALS // num_players

    def arena_games() -> float:
        start = time.process_time()
        match.play(["greedy", "greedy"], deals, num_players, progress=False)
        return deals * num_players / (time.process_time() - start) / 1e3

    compare(
        benchmark,
        f"arena, greedy against greedy / compiled loop, {num_players} seats",
        arena_games,
        lambda: engine_games(num_players),
        rounds=10,
        unit="k games/s",
        target="0.2",
    )


@pytest.mark.parametrize("num_players", [2, 4])
def test_arena_on_two_cores_next_to_one(benchmark: BenchmarkFixture, num_players: int) -> None:
    """By the clock, since other processes do the work: fair only where nobody else works."""
    deals = 16 * DEALS // num_players

    def arena_games(workers: int) -> float:
        settings = Settings(("greedy", "random"), num_players, deals, mixed=False)
        start = time.perf_counter()
        outcome = play_tournament(settings, Folder(None, {}), workers)
        games = sum(len(played.deal) for played in outcome.matches)
        return games / (time.perf_counter() - start) / 1e3

    compare(
        benchmark,
        f"arena, greedy against random: two workers / one, {num_players} seats",
        lambda: arena_games(2),
        lambda: arena_games(1),
        rounds=3,
        unit="k games/s",
        target="as near 2 as the cores allow",
    )
