import ast
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import threeup_agents
from tests.builders import counts, play, position
from threeup_agents.search.searchers import Flat, Search, legal_mask
from threeup_env import ACTION_NAMES, VARIANTS, Batch, action_id, determinize

ROOT = Path(__file__).parents[2]
SEARCHERS = [Search(40), Flat(10)]
Searcher = Search | Flat

pytestmark = pytest.mark.parametrize("agent", SEARCHERS, ids=lambda agent: str(agent.name))


def decisions(num_players: int = 2, variant: str = "standard") -> Batch:
    """Games at all sorts of decisions, from laying to the end."""
    batch = Batch(60, num_players, variant, seed=num_players)
    batch.reset()
    rng = np.random.default_rng(1)
    for step in range(100):
        rows = np.flatnonzero(rng.random(60) < (np.arange(60) + 20) / 80)
        weights = batch.action_masks[rows] * rng.random((len(rows), len(ACTION_NAMES)))
        if step < 8 or len(rows):
            batch.step(weights.argmax(axis=1), rows)
    return batch


def open_table(*hands: str) -> Batch:
    """One game without a draw pile in which all have seen all hands; seat 0 begins a turn."""
    batch = Batch(1, num_players=len(hands), autoreset=False)
    batch.reset(seed=0)
    states = batch.states.copy()
    game = states[0]
    for name in ("face_up", "face_up_size", "face_down", "face_down_size", "draw_pile"):
        game[name][:] = 0
    game["laying"] = 0
    game["draw_pile_size"] = 0
    for seat, cards in enumerate(hands):
        game["hand"][seat] = game["known"][seat] = counts(cards)
        game["hand_size"][seat] = len(cards.split())
    game["out_of_play"] = np.asarray(VARIANTS["standard"].copies) - counts(" ".join(hands))
    batch.load(states)
    return batch


def choice(agent: Searcher, batch: Batch) -> str:
    return ACTION_NAMES[int(agent.act(batch.observations, batch.action_masks)[0])]


def values(agent: Searcher, batch: Batch) -> dict[str, float]:
    found = agent.explain(batch.observations[0])
    return dict(zip(found.actions, found.values.tolist(), strict=True))


@pytest.mark.parametrize(
    ("variant", "num_players"),
    [("standard", 2), ("standard", 3), ("standard", 6), ("listed", 4), ("mini", 2)],
)
def test_choices_are_legal(agent: Searcher, variant: str, num_players: int) -> None:
    batch = decisions(num_players, variant)
    actions = agent.act(batch.observations, batch.action_masks)
    assert actions.dtype == np.int64
    assert batch.action_masks[np.arange(60), actions].all()


def test_only_actions_of_the_mask_are_chosen(agent: Searcher) -> None:
    batch = decisions(3)
    masks = batch.action_masks.copy()
    first = masks.argmax(axis=1)
    masks[np.arange(60), first] = masks.sum(axis=1) == 1
    actions = agent.act(batch.observations, masks)
    assert masks[np.arange(60), actions].all()


def test_choices_depend_on_no_other_row_and_no_thread(agent: Searcher) -> None:
    batch = decisions(4)
    actions = agent.act(batch.observations, batch.action_masks)
    rows = np.random.default_rng(0).permutation(60)
    single = type(agent)(agent.count, num_threads=1)
    triple = type(agent)(agent.count, num_threads=3)
    for other in (agent, single, triple):
        again = other.act(batch.observations[rows], batch.action_masks[rows])
        assert (again == actions[rows]).all()
    one_by_one = [
        single.act(batch.observations[i : i + 1], batch.action_masks[i : i + 1])[0]
        for i in range(60)
    ]
    assert one_by_one == actions.tolist()


def test_the_seed_starts_the_stream(agent: Searcher) -> None:
    batch = decisions(2)
    longer = type(agent)(5 * agent.count)  # so that what it finds beats its habit here and there
    same, different = (
        threeup_agents.make(longer.name, seed).act(batch.observations, batch.action_masks)
        for seed in (0, 1)
    )
    assert (same == longer.act(batch.observations, batch.action_masks)).all()
    assert (same != different).any()
    one, again, other = (
        type(agent)(agent.count, seed).explain(batch.observations[0]) for seed in (0, 0, 1)
    )
    assert one.values.tolist() == again.values.tolist() != other.values.tolist()


def test_twin_games_get_the_same_choices(agent: Searcher) -> None:
    batch = decisions(3)
    twins = Batch(60, 3)
    twins.load(determinize(batch.observations, seed=5)[:, 0])
    assert (twins.states["draw_pile"] != batch.states["draw_pile"]).any()
    actions = agent.act(batch.observations, batch.action_masks)
    assert (agent.act(twins.observations, twins.action_masks) == actions).all()


def test_inputs_are_observations_and_masks(agent: Searcher) -> None:
    assert list(inspect.signature(agent.act).parameters) == ["observations", "action_masks"]
    assert list(inspect.signature(agent.explain).parameters) == ["observation", "action_mask"]
    for module in (ROOT / "agents" / "threeup_agents" / "search").glob("*.py"):
        tree = ast.parse(module.read_text())
        sources = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not sources & {"threeup_env", "threeup_env.engine.batch", "threeup_env.envs.aec"}


def test_search_needs_no_game_in_its_process(agent: Searcher, tmp_path: Path) -> None:
    batch = decisions(2)
    np.savez(tmp_path / "seen.npz", o=batch.observations, m=batch.action_masks)
    code = (
        "import sys, numpy as np, threeup_agents, threeup_env.engine.batch as batch\n"
        "del batch.Batch, batch.run_games\n"
        "seen = np.load(sys.argv[1])\n"
        "print(*threeup_agents.make(sys.argv[2]).act(seen['o'], seen['m']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "seen.npz"), agent.name],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    actions = agent.act(batch.observations, batch.action_masks)
    assert done.stdout.split() == [str(action) for action in actions]


@pytest.mark.parametrize(
    ("batch", "winning"),
    [
        pytest.param(position("5 C+1", pile="4", other_hand="6"), "play C+1", id="extra discard"),
        pytest.param(position("3 9", other_hand="5"), "play 9", id="the other can't answer"),
        pytest.param(position("4 4 4", pile="3", other_hand="9"), "play 4 x3", id="last cards"),
        pytest.param(
            position("5 C+2 6", pile="4", other_hand="9 9"), "play C+2", id="two extra discards"
        ),
    ],
)
def test_forced_wins_are_found(agent: Searcher, batch: Batch, winning: str) -> None:
    assert choice(type(agent)(200), batch) == winning


def test_a_win_at_once_is_worth_one(agent: Searcher) -> None:
    found = values(agent, position("4 4", pile="3", other_hand="3"))
    assert found["play 4 x2"] == 1.0


def test_a_seat_in_between_plays_for_itself(agent: Searcher) -> None:
    """After `play 5` seat 1 can win (C+1, then 9) or hand the win to seat 0 (9)."""
    batch = open_table("5 10", "9 C+1", "4 4")
    if isinstance(agent, Search):
        assert values(Search(5000), batch)["play 5"] < 0.1
    gift = play(open_table("5 10", "9 C+1", "4 4"), "play 5", "play 9", "pick up", "play 10")
    assert gift.rewards[0].tolist() == [1.0, -0.5, -0.5]


def test_a_game_about_to_be_cut_off_is_worth_nothing(agent: Searcher) -> None:
    batch = position("3 4", other_hand="8 9", max_steps=1)
    assert values(agent, batch) == {"play 3": 0.0, "play 4": 0.0}
    last = position("3 3", other_hand="8 9", max_steps=1)
    assert values(agent, last) == {"play 3": 0.0, "play 3 x2": 1.0}


def test_explain_tells_what_act_does(agent: Searcher) -> None:
    batch = decisions(2)
    for row in range(0, 60, 7):
        observation, mask = batch.observations[row], batch.action_masks[row]
        found = agent.explain(observation)
        assert set(found.actions) == {ACTION_NAMES[action] for action in np.flatnonzero(mask)}
        assert (legal_mask(observation) == mask).all()
        assert (np.diff(found.values) <= 0).all()
        if mask.sum() > 1:
            assert action_id(found.chosen) == agent.act(observation[None], mask[None])[0]
        per_action = 1 if isinstance(agent, Search) else mask.sum()
        assert found.visits.sum() == agent.count * per_action
        assert str(found).startswith(f"{agent.name} takes {found.chosen}\naction")


def test_a_decision_shows_itself_in_a_notebook(agent: Searcher) -> None:
    found = agent.explain(decisions(2).observations[0])
    table = found._repr_html_()
    assert f"<caption>{agent.name} takes {found.chosen}</caption>" in table
    for name, count, value in zip(found.actions, found.visits, found.values, strict=True):
        assert f"<td>{name}</td><td>{count:,}</td>" in table
        assert f"<td>{value:.3f}</td>" in table
    assert "width:100px" in table  # the most visited


@pytest.mark.parametrize("num_players", [2, 3, 6])
def test_search_goes_where_it_gains(agent: Searcher, num_players: int) -> None:
    """Between two everywhere, else without a draw pile; where it doesn't, `careful` plays."""
    batch = decisions(num_players)
    careful = threeup_agents.make("careful").act(batch.observations, batch.action_masks)
    actions = agent.act(batch.observations, batch.action_masks)
    early = (batch.states["laying"] > 0) | (batch.states["draw_pile_size"] > 0)
    resting = early & isinstance(agent, Search) & (num_players > 2)
    assert (actions[resting] == careful[resting]).all()
    for row in range(0, 60, 6):
        found = agent.explain(batch.observations[row])
        assert (found.visits.sum() == 0) == resting[row]
        assert np.isnan(found.values).all() == resting[row]
        assert f"takes {found.chosen}</caption>" in found._repr_html_()


def test_explain_refuses_a_seat_that_is_not_to_act(agent: Searcher) -> None:
    batch = decisions(2)
    observation: npt.NDArray[np.int8] = batch.observe(1 - batch.seats)[0]
    with pytest.raises(ValueError, match="expected one of the seat to act"):
        agent.explain(observation)


def test_the_number_of_worlds_is_at_least_one(agent: Searcher) -> None:
    with pytest.raises(ValueError, match="expected at least 1; got 0"):
        type(agent)(0)


@pytest.mark.parametrize("names", [(), ("pick up",), ("lay 1", "flip")])
def test_explain_refuses_a_mask_that_is_not_of_legal_actions(
    agent: Searcher, names: tuple[str, ...]
) -> None:
    batch = Batch(1)
    batch.reset()
    mask = np.zeros(len(ACTION_NAMES), np.bool_)
    mask[[action_id(name) for name in names]] = True
    with pytest.raises(ValueError, match="action_mask: expected one or more of 'lay "):
        agent.explain(batch.observations[0], mask)
