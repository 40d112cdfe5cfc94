import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.witness import TABLES, Note, Witness, learning_from, share_against

pytestmark = [pytest.mark.slow, pytest.mark.part]
SEAT = 1


@pytest.fixture
def recipe() -> Any:
    pytest.importorskip("torch")
    from examples import cleanrl_ppo

    return cleanrl_ppo


@pytest.fixture
def config(recipe: Any, tmp_path: Path) -> Callable[..., Any]:
    return partial(recipe.Config, file=str(tmp_path / "cleanrl_ppo.pt"))


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_pays_the_learners_own_outcome(
    recipe: Any,
    config: Callable[..., Any],
    num_players: int,
    max_steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rollouts: list[Any] = []
    games = partial(recipe.ThreeUpVectorEnv, seat=SEAT)
    monkeypatch.setattr(recipe, "ThreeUpVectorEnv", games)
    monkeypatch.setattr(
        recipe, "update", lambda network, adam, rollout, _: rollouts.append(rollout)
    )
    witness = Witness(monkeypatch)

    recipe.train(
        config(num_players=num_players, max_steps=max_steps, num_envs=16, decisions=16 * 32 * 5)
    )

    rewards, ends = (
        np.concatenate([rollout[name].numpy() for rollout in rollouts])
        for name in ("rewards", "ends")
    )
    assert rewards.size == witness.taken[1, SEAT] == 16 * 32 * 5
    assert {row: rewards[ends[:, row], row].tolist() for row in range(16)} == (
        witness.outcomes(SEAT)
    )
    assert not rewards[~ends].any()
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


def test_a_games_advantages_are_its_outcome_where_values_are_zero_and_lambda_is_one(
    recipe: Any, config: Callable[..., Any]
) -> None:
    network = recipe.Network(136)
    recipe.nn.init.zeros_(network.value.weight)
    recipe.nn.init.zeros_(network.value.bias)
    envs = recipe.ThreeUpVectorEnv(8, skip_forced=True)
    envs.reset(seed=3)
    rollout = recipe.collect(envs, network, config(num_steps=800, gae_lambda=1.0))
    ends, rewards = rollout["ends"].numpy(), rollout["rewards"].numpy()
    for row in range(8):
        last = np.flatnonzero(ends[:, row])
        expected = np.repeat(rewards[last, row], np.diff(last, prepend=-1))
        assert rollout["advantages"][: last[-1] + 1, row].tolist() == expected.tolist()


def test_it_learns_to_beat_random_players(
    recipe: Any, config: Callable[..., Any], record_property: Note
) -> None:
    settings = config(opponent="self", decisions=400_000)
    with learning_from("400,000 decisions of self-play", record_property):
        network = recipe.train(settings)
    share, low = share_against("random", network, record_property)
    assert low > 0.6, share
    again = recipe.load(settings.file)
    for name, weights in network.state_dict().items():
        assert again.state_dict()[name].equal(weights), name


def test_it_learns_to_beat_greedy_within_fifteen_minutes(
    recipe: Any, config: Callable[..., Any], record_property: Note
) -> None:
    start = time.process_time()
    with learning_from("6,000,000 decisions against `greedy`", record_property):
        network = recipe.train(config(decisions=6_000_000))
    assert time.process_time() - start < 15 * 60
    share, low = share_against("greedy", network, record_property, deals=1000)
    assert low > 0.5, share
