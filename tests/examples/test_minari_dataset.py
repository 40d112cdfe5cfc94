from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.witness import TABLES, Note, Witness

pytestmark = [pytest.mark.slow, pytest.mark.part]


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    from examples import minari_dataset

    return minari_dataset


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_an_episode_is_one_seats_decisions_and_its_own_outcome(
    recipe: Any,
    num_players: int,
    max_steps: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Note,
) -> None:
    import minari

    witness = Witness(monkeypatch)
    config = recipe.Config("random", num_players, games=20, max_steps=max_steps)
    recipe.main(config)
    games = sorted(witness.games, key=lambda game: game.row)
    found = list(minari.load_dataset(config.name).iterate_episodes())
    assert len(games) == 20
    assert len(found) == 20 * num_players
    decisions = sum(len(episode.actions) for episode in found)
    tables = f"{num_players} players, at most {max_steps:,} steps a game"
    record_property(tables, f"{len(found)} episodes, {decisions:,} decisions")
    for number, episode in enumerate(found):
        game, seat = games[number // num_players], number % num_players
        masks = episode.observations["action_mask"]
        count = len(episode.actions)
        assert count == game.decisions[seat] == len(masks) - 1
        assert masks[np.arange(count), episode.actions].all()
        assert not masks[-1].any()
        assert (episode.observations["observation"][:, 1] == seat).all()
        outcome = pytest.approx(game.outcomes[seat], abs=1e-6)
        assert episode.rewards[-1] == outcome
        assert episode.rewards.sum() == outcome
        ends = episode.truncations if game.was_cut_off else episode.terminations
        assert np.flatnonzero(ends).tolist() == [count - 1]
        assert not (episode.terminations & episode.truncations).any()
    assert max_steps == 1000 or any(game.was_cut_off for game in games)
