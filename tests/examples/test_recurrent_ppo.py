from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import threeup_agents
from tests.examples.witness import TABLES, Note, Witness, share_against
from threeup_env import ThreeUpVectorEnv

pytestmark = [pytest.mark.slow, pytest.mark.part]
SEAT = 1


@pytest.fixture(scope="module")
def recipe() -> Any:
    pytest.importorskip("torch")
    from examples import recurrent_ppo

    return recurrent_ppo


@pytest.fixture(scope="module")
def player(recipe: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a short training has left."""
    file = str(tmp_path_factory.mktemp("recurrent") / "recurrent_ppo.pt")
    recipe.train(recipe.Config(decisions=200_000, num_envs=256, opponent="random", file=file))
    return recipe.Player(file)


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_pays_the_learners_own_outcome(
    recipe: Any, num_players: int, max_steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts: list[Any] = []
    games = partial(recipe.ThreeUpVectorEnv, seat=SEAT)
    monkeypatch.setattr(recipe, "ThreeUpVectorEnv", games)
    monkeypatch.setattr(recipe, "update", lambda *given: rollouts.append(given[2]))
    witness = Witness(monkeypatch)
    sizes = {"num_envs": 16, "decisions": 16 * 32 * 5, "max_steps": max_steps}

    recipe.train(recipe.Config(num_players, file=str(tmp_path / "file"), **sizes))

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


def test_it_learns_to_beat_random_players_as_an_agent_with_memory(
    player: Any, record_property: Note
) -> None:
    record_property("learnt from", "200,000 decisions against `random`")
    share, low = share_against("random", player, record_property)
    assert low > 0.6, share


def test_its_memory_is_used(player: Any, record_property: Note) -> None:
    envs = ThreeUpVectorEnv(64, opponents=threeup_agents.make("greedy"), history=16)
    shown, infos = envs.reset(seed=2)
    for _ in range(12):
        shown, *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    swapped = shown | {"events": np.roll(shown["events"], 1, axis=0)}
    own, others = (
        player.network(*view.values())[0].probs.detach().numpy() for view in (shown, swapped)
    )
    changes = np.abs(own - others).sum(axis=1) / 2
    has_choice = shown["action_mask"].sum(axis=1) > 1
    # Little: what a seat sees now counts the cards for it already.
    change = np.median(changes[has_choice])
    record_property("another game's events move", f"{change:.4f} of a choice's odds (median)")
    assert change > 0.001


def test_what_it_remembers_in_the_arena_is_what_it_was_trained_on(player: Any) -> None:
    envs = ThreeUpVectorEnv(8, opponents=threeup_agents.make("greedy"), seat=SEAT, history=16)
    shown, infos = envs.reset(seed=2)
    player.begin(np.arange(8), np.full(8, SEAT), 2)
    for _ in range(12):
        views = (shown["observation"], infos["action_mask"], np.arange(8), infos["events"])
        actions = player.act(*views)
        remembered, seen = player.latest, shown["events"]
        are_lays = (seen[..., 1] < 13) & (seen[..., 0] >= 0)
        assert (remembered[~are_lays] == seen[~are_lays]).all()
        assert (remembered[are_lays][:, 1] < 13).all()
        shown, *_, infos = envs.step(actions)
