from typing import Any

import pytest

from tests.examples.witness import TABLES, Note, Witness, learning_from, share_against

pytestmark = [pytest.mark.slow, pytest.mark.part]


@pytest.fixture
def recipe() -> Any:
    pytest.importorskip("torchrl")
    from examples import torchrl_ppo

    return torchrl_ppo


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_pays_each_seat_its_own_outcome(
    recipe: Any, num_players: int, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains: list[Any] = []
    forward = recipe.OwnDecisions.forward

    def watched(transform: Any, tensordict: Any) -> Any:
        found = forward(transform, tensordict)
        chains.extend(found)
        return found

    monkeypatch.setattr(recipe.OwnDecisions, "forward", watched)
    witness = Witness(monkeypatch)

    recipe.train(recipe.Config(num_players, games=6, per_update=6, epochs=1, max_steps=max_steps))

    assert len(chains) == num_players
    assert len(witness.games) == 6
    for seat, chain in enumerate(chains):
        rewards, ends = (chain["next", name][:, 0].tolist() for name in ("reward", "done"))
        assert len(rewards) == witness.taken[0, seat]
        paid = [reward for reward, is_end in zip(rewards, ends, strict=True) if is_end]
        assert paid == [game.outcomes[seat] for game in witness.games]
        assert sum(map(abs, rewards)) == sum(map(abs, paid))
        assert chain["next", "terminated"][:, 0].tolist() == ends
        assert chain["action_mask"].gather(1, chain["action"][:, None]).all()
        following = chain["next", "observation"][:-1] == chain["observation"][1:]
        assert following.all()
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


def test_it_learns_to_beat_random_players(recipe: Any, record_property: Note) -> None:
    with learning_from("300 games of self-play", record_property):
        player = recipe.train(recipe.Config(games=300))
    share, low = share_against("random", player, record_property)
    assert low > 0.5, share
