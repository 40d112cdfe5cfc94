import random
from typing import Any

import numpy as np
import pytest

from tests.examples.witness import TABLES, Note, Witness

pytestmark = [pytest.mark.slow, pytest.mark.part]


@pytest.fixture
def pyspiel() -> Any:
    found = pytest.importorskip("pyspiel")
    import examples.openspiel_game  # noqa: F401 - registers the game

    return found


def load(pyspiel: Any, **params: Any) -> Any:
    return pyspiel.load_game("python_threeup", params)


def play(game: Any, seed: int, most: int = 10_000) -> tuple[Any, list[int]]:
    """A state reached by luck alone, and the players that have acted."""
    rng, state = random.Random(seed), game.new_initial_state()
    players: list[int] = []
    while not state.is_terminal() and len(players) < most:
        if state.is_chance_node():
            outcomes, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(rng.choices(outcomes, chances)[0])
        else:
            players.append(state.current_player())
            state.apply_action(rng.choice(state.legal_actions()))
    return state, players


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_it_passes_openspiels_own_test(pyspiel: Any, num_players: int) -> None:
    game = load(pyspiel, num_players=num_players)
    pyspiel.random_sim_test(game, num_sims=2, serialize=False, verbose=False)


@pytest.mark.parametrize(("num_players", "max_steps"), TABLES)
def test_every_decision_is_one_of_openspiels_and_returns_are_each_seats_outcome(
    pyspiel: Any, num_players: int, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = Witness(monkeypatch)
    game = load(pyspiel, num_players=num_players, max_steps=max_steps)
    assert game.max_game_length() == max_steps
    for seed in range(8):
        state, players = play(game, seed)
        last = witness.games[-1]
        assert [players.count(seat) for seat in range(num_players)] == list(last.decisions)
        nobody = [0.0] * num_players
        assert state.returns() == (nobody if last.was_cut_off else list(last.outcomes))
    assert any(game.was_cut_off for game in witness.games) == (max_steps < 1000)


# The same numbers as `threeup_agents.exact` must find, see tests/exact.
@pytest.mark.parametrize(("max_steps", "published"), [(6, 0.0), (8, 0.23125), (10, 0.9208333333)])
def test_uniform_play_of_the_subgames_is_as_exploitable_as_published(
    pyspiel: Any, max_steps: int, published: float, record_property: Note
) -> None:
    from open_spiel.python.algorithms.exploitability import nash_conv
    from open_spiel.python.policy import UniformRandomPolicy

    game = load(pyspiel, variant="mini", max_steps=max_steps, deals=20)
    found = nash_conv(game, UniformRandomPolicy(game))
    record_property(f"NashConv of random play in {max_steps} actions", f"{found:.10f}")
    assert found == pytest.approx(published, abs=1e-9)


def test_information_states_hold_all_that_a_seat_has_observed(pyspiel: Any) -> None:
    game = load(pyspiel, max_steps=60)
    state, players = play(game, seed=1, most=20)
    for seat in (0, 1):
        history = np.array(state.information_state_tensor(seat)).reshape(61, -1)
        now = np.array(state.observation_tensor(seat))
        assert (history[len(players)] == now).all()
        assert not history[len(players) + 1 :].any()
        before, _ = play(game, seed=1, most=19)
        earlier = np.array(before.information_state_tensor(seat)).reshape(61, -1)
        assert (earlier[: len(players)] == history[: len(players)]).all()


def test_resampling_keeps_what_the_seat_knows_and_draws_the_rest(pyspiel: Any) -> None:
    state, _ = play(load(pyspiel), seed=2, most=15)
    me, other = state.current_player(), 1 - state.current_player()
    sampler = random.Random(0).random
    drawn = [state.resample_from_infostate(me, sampler) for _ in range(20)]
    mine = state.information_state_string(me)
    assert {each.information_state_string(me) for each in drawn} == {mine}
    views = {each.batch.observe([other]).tobytes() for each in drawn}
    assert len(views) > 10


def test_its_search_bots_play(pyspiel: Any) -> None:
    from open_spiel.python.algorithms import ismcts, mcts

    game = load(pyspiel, variant="mini", max_steps=40)
    rng = np.random.RandomState(1)
    judge = mcts.RandomRolloutEvaluator(1, rng)
    bots = [
        mcts.MCTSBot(game, 1.5, 30, judge, random_state=rng),
        ismcts.ISMCTSBot(
            game=game,
            evaluator=judge,
            uct_c=1.5,
            max_simulations=30,
            max_world_samples=ismcts.UNLIMITED_NUM_WORLD_SAMPLES,
            random_state=rng,
        ),
    ]
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(state.chance_outcomes()[0][0])
        else:
            action = bots[state.current_player()].step(state)
            assert action in state.legal_actions()
            state.apply_action(action)
    assert sum(state.returns()) == 0
