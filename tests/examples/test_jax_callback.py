from typing import Any

import numpy as np
import pytest

from tests.examples.witness import TABLES, Note, Witness

pytestmark = [pytest.mark.slow, pytest.mark.part]


@pytest.fixture
def recipe() -> Any:
    pytest.importorskip("jax")
    from examples import jax_callback

    return jax_callback


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_recorded_and_rewards_are_each_seats_outcome(
    recipe: Any, num_players: int, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    witness = Witness(monkeypatch)
    games = recipe.Games(recipe.Config(num_players, num_games=16, max_steps=max_steps))
    run = recipe.scan(games, 200)
    _, record = jax.block_until_ready(run(jax.random.key(1), games.shown()))
    actions, legal, seats, rewards, ends = map(np.asarray, record)
    assert actions.size == witness.taken[0].sum() == 200 * 16
    assert legal.all()
    for seat in range(num_players):
        assert (seats == seat).sum() == witness.taken[0, seat]
        found = {row: rewards[ends[:, row], row, seat].tolist() for row in range(16)}
        assert {row: paid for row, paid in found.items() if paid} == witness.outcomes(seat)
    assert not rewards[~ends].any()
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


def test_it_takes_a_hundred_thousand_decisions_a_second(recipe: Any, record_property: Note) -> None:
    speeds = sorted(recipe.main(recipe.Config()) for _ in range(3))
    record_property("random decisions a second", "{:,.0f}, {:,.0f}, {:,.0f}".format(*speeds))
    assert speeds[-1] > 100_000
