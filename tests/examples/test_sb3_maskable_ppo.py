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
    pytest.importorskip("sb3_contrib")
    from examples import sb3_maskable_ppo

    return sb3_maskable_ppo


@pytest.fixture
def config(recipe: Any, tmp_path: Path) -> Callable[..., Any]:
    return partial(recipe.Config, file=str(tmp_path / "sb3_maskable_ppo.zip"))


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_pays_the_learners_own_outcome(
    recipe: Any,
    config: Callable[..., Any],
    num_players: int,
    max_steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from stable_baselines3.common.callbacks import BaseCallback

    rewards: list[Any] = []

    class Keep(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            rewards.append(self.locals["rollout_buffer"].rewards.copy())

    games = partial(recipe.ThreeUpVectorEnv, seat=SEAT)
    monkeypatch.setattr(recipe, "ThreeUpVectorEnv", games)
    witness = Witness(monkeypatch)
    sizes = {"num_envs": 16, "generations": 2, "decisions": 4096}

    recipe.train(config(num_players=num_players, max_steps=max_steps, **sizes), Keep())

    recorded = np.concatenate(rewards)
    assert recorded.size == witness.taken[1, SEAT] == 2 * 4096
    assert {row: recorded[recorded[:, row] != 0, row].tolist() for row in range(16)} == (
        witness.outcomes(SEAT)
    )
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


def test_it_learns_to_beat_random_players_and_its_file_plays_in_the_arena(
    config: Callable[..., Any], recipe: Any, record_property: Note
) -> None:
    settings = config(generations=4, decisions=60_000)
    start = time.process_time()
    with learning_from("240,000 decisions against a pool of its past", record_property):
        recipe.train(settings)
    assert time.process_time() - start < 5 * 60
    share, low = share_against("random", settings.file, record_property, trust=True)
    assert low > 0.6, share
