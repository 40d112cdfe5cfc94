from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.examples.witness import TABLES, Note, Witness, learning_from, share_against

pytestmark = [pytest.mark.slow, pytest.mark.part]
SEAT = 1


@pytest.fixture
def recipe() -> Any:
    pytest.importorskip("tianshou")
    from examples import tianshou_ppo

    return tianshou_ppo


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_pays_the_learners_own_outcome(
    recipe: Any, num_players: int, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    def keep(_: Any, buffer: Any) -> None:
        batch, _ = buffer.sample(0)
        found.append((np.array(batch.rew), np.array(batch.terminated), np.array(batch.truncated)))
        assert batch.obs["action_mask"][np.arange(len(batch)), batch.act].all()

    monkeypatch.setattr(recipe, "ThreeUpEnv", partial(recipe.ThreeUpEnv, seat=SEAT))
    monkeypatch.setattr(recipe, "learn", keep)
    witness = Witness(monkeypatch)
    recipe.train(
        recipe.Config(num_players, updates=2, decisions=1024, num_envs=8, max_steps=max_steps)
    )
    rewards, ends, truncations = (np.concatenate(parts) for parts in zip(*found, strict=True))
    assert rewards.size == witness.taken[1, SEAT] == 2 * 1024
    paid = sorted(rewards[ends].tolist())
    assert paid == sorted(game.outcomes[SEAT] for game in witness.games)
    assert not rewards[~ends].any()
    assert not truncations.any()
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


def test_it_learns_to_beat_random_players(recipe: Any, record_property: Note) -> None:
    config = recipe.Config()
    what = f"{config.updates * config.decisions:,} decisions against `{config.opponent}`"
    with learning_from(what, record_property):
        player = recipe.train(config)
    share, low = share_against("random", player, record_property)
    assert low > 0.5, share
