from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.witness import TABLES, Note, Witness, learning_from, share_against

pytestmark = [pytest.mark.slow, pytest.mark.part]
ROOT = Path(__file__).parents[2]
DECISIONS = 600
"""As few as an update takes: games of a cluster on one machine are slow."""


@pytest.fixture
def recipe() -> Any:
    pytest.importorskip("ray.rllib")
    from examples import rllib_selfplay

    return rllib_selfplay


@pytest.fixture
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray")
    found.init("local", num_cpus=2, include_dashboard=False)
    yield found
    found.shutdown()


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_pays_each_seat_its_own_outcome(
    recipe: Any, ray: Any, num_players: int, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = Witness(monkeypatch)
    config = recipe.Config(num_players, decisions=600, max_steps=max_steps)
    algorithm = recipe.settings(config).build_algo()
    witness.games.clear()
    episodes = algorithm.env_runner.sample(num_episodes=8)
    algorithm.stop()
    assert len(episodes) == len(witness.games) == 8
    for episode, game in zip(episodes, witness.games, strict=True):
        assert episode.is_terminated
        for seat in range(num_players):
            own = episode.agent_episodes[f"player_{seat}"]
            assert len(own) == game.decisions[seat]
            assert own.get_return() == pytest.approx(game.outcomes[seat], abs=1e-6)
            assert own.get_rewards(-1) == pytest.approx(game.outcomes[seat], abs=1e-6)
            assert own.is_terminated
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


def test_it_learns_to_beat_random_players(recipe: Any, ray: Any, record_property: Note) -> None:
    with learning_from("6 updates of 4,000 decisions of all seats", record_property):
        player = recipe.train(recipe.Config(iterations=6))
    share, low = share_against("random", player, record_property)
    assert low > 0.5, share


def play_two(runner: Any) -> tuple[str, Any]:
    """Two games of an env runner, and the node that it lives on."""
    import ray

    return ray.get_runtime_context().get_node_id(), runner.sample(num_episodes=2)


def test_two_env_runners_on_a_cluster_of_two_nodes_play(
    recipe: Any, monkeypatch: pytest.MonkeyPatch, record_property: Note
) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, (ROOT, ROOT / "agents"))))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(wait=False, num_cpus=1)
    cluster.wait_for_nodes(timeout=300)  # of a busy machine
    ray.init(cluster.address)
    try:
        assert len({node["NodeID"] for node in ray.nodes() if node["Alive"]}) == 2
        config = recipe.Config(num_env_runners=2, decisions=DECISIONS)
        algorithm = recipe.settings(config).build_algo()
        played = algorithm.env_runner_group.foreach_env_runner(play_two, local_env_runner=False)
        assert len({node for node, _ in played}) == 2
        for _, episodes in played:
            assert len(episodes) == 2
            for episode in episodes:
                own = list(episode.agent_episodes.values())
                assert sum(map(len, own)) == len(episode)
                assert sorted(each.get_return() for each in own) == [-1, 1]
        found = algorithm.train()["env_runners"]
        assert algorithm.env_runner_group.num_healthy_remote_workers() == 2
        assert found["num_env_steps_sampled"] >= DECISIONS
        record_property("on two nodes", f"{DECISIONS} decisions and an update")
        algorithm.stop()
    finally:
        ray.shutdown()
        cluster.shutdown()
