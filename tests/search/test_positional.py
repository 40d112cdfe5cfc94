"""The agent `policy`: its network held against torch, its looks against plain Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import threeup_agents
from tests.builders import position
from tests.search.test_look import plain_share, without_a_draw_pile
from threeup_agents.arena.play import play
from threeup_agents.files import read_tensors
from threeup_agents.search import positional
from threeup_agents.search.decision import decision_stream
from threeup_agents.search.position import (
    DOUBT,
    GAIN_SCALE,
    NUM_LOOKED,
    STEADY,
    PositionNetwork,
    position_size,
    write_answers,
)
from threeup_agents.search.positional import MARGIN, Positional, PositionPolicy
from threeup_agents.search.scoring import policy_rows, write_inputs, write_lessons
from threeup_agents.search.value import shipped as shipped_values
from threeup_agents.training.networks import perceptron
from threeup_env import Batch, action_id
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.determinize import (
    deal_unseen,
    determinize,
    write_seen,
    write_unseen,
)
from threeup_env.engine.state import STATE_DTYPE

SIZES = range(2, 7)
HIDDEN = (24, 16)


def some_network(num_players: int, seed: int = 0) -> tuple[PositionNetwork, torch.nn.Sequential]:
    """A network with random weights, and the same in torch."""
    torch.manual_seed(seed)
    layers = perceptron([position_size(num_players), *HIDDEN, 1], 1.0)
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    for layer in linear:
        torch.nn.init.normal_(layer.bias)
    torch.nn.init.zeros_(linear[2].bias)
    arrays = [layer.weight.detach().numpy().T.copy() for layer in linear]
    biases = [layer.bias.detach().numpy() for layer in linear]
    last = arrays[2][:, 0].copy()
    return PositionNetwork(arrays[0], biases[0], arrays[1], biases[1], last), layers


def some_policy(num_players: int, **facts: Any) -> PositionPolicy:
    """A policy with random weights."""
    return PositionPolicy(some_network(num_players)[0], num_players, training=facts)


def taught(batch: Batch, states: Any = None, num_worlds: int = 3) -> tuple[Any, ...]:
    """`write_lessons` of some games: what was seen of the look, gains, actions."""
    size = batch.num_games
    looked = np.zeros((size, NUM_ACTIONS, NUM_LOOKED), np.float32)
    gains = np.zeros((size, NUM_ACTIONS), np.float32)
    actions = np.empty(size, np.int64)
    write_lessons(
        batch.observations,
        batch.action_masks,
        batch.states if states is None else states,
        np.uint64(7),
        num_worlds,
        MARGIN,
        0.25,
        looked,
        gains,
        actions,
        shipped_values(batch.num_players),
        some_network(batch.num_players)[0],
    )
    return looked, gains, actions


@pytest.mark.parametrize("num_players", SIZES)
@pytest.mark.parametrize("num_worlds", [0, 4])
def test_compiled_code_computes_what_torch_does(num_players: int, num_worlds: int) -> None:
    batch = without_a_draw_pile(num_players, count=20)
    network, layers = some_network(num_players)
    shape = batch.action_masks.shape
    visits, scores = np.empty(shape, np.int64), np.empty(shape)
    chosen = np.empty(len(scores), np.int64)
    values = shipped_values(num_players)
    given = batch.observations, batch.action_masks, np.uint64(7), num_worlds, MARGIN
    policy_rows(*given, visits, scores, chosen, values, network, 0)

    rows, actions = np.nonzero(batch.action_masks)
    features = np.zeros((len(rows), position_size(num_players)), np.float32)
    write_inputs(batch.observations, rows, actions, features)
    careful = threeup_agents.make("careful").act(batch.observations, batch.action_masks)
    if num_worlds:
        looked = taught(batch, num_worlds=num_worlds)[0]  # its first look is the same
        features[:, -NUM_LOOKED:] = looked[rows, actions]
    features[:, -1] = actions == careful[rows]
    with torch.no_grad():
        found = layers(torch.from_numpy(features)).flatten().numpy() / GAIN_SCALE
    wanted = np.full(shape, -np.inf)
    wanted[rows, actions] = found
    wanted -= wanted[np.arange(len(careful)), careful][:, None]
    np.testing.assert_allclose(scores[rows, actions], wanted[rows, actions], atol=1e-5)
    best = np.where(wanted.max(axis=1) > MARGIN, wanted.argmax(axis=1), careful)
    np.testing.assert_array_equal(chosen, best)
    assert (chosen != careful).any()


@pytest.mark.parametrize("num_players", SIZES)
def test_gains_are_those_of_plain_python(num_players: int) -> None:
    """Three worlds are seen, three others and the true one are learnt from, three to one."""
    batch = without_a_draw_pile(num_players)
    looked, gains, _ = taught(batch)
    careful = threeup_agents.make("careful").act(batch.observations, batch.action_masks)
    network = shipped_values(num_players)
    cards, stream = np.empty(84, np.int8), np.empty(1, np.uint64)
    seen = np.zeros(1, STATE_DTYPE)
    for row, (observation, mask) in enumerate(
        zip(batch.observations, batch.action_masks, strict=True)
    ):
        stream[0] = decision_stream(np.uint64(7), observation, mask)
        write_seen(observation, seen[0])
        size = write_unseen(observation, cards)
        worlds = []
        for _ in range(6):
            world = seen.copy()
            deal_unseen(world[0], cards, size, stream)
            worlds.append(world[0])
        worlds.append(batch.states[row])
        legal = np.flatnonzero(mask)
        seat = int(batch.seats[row])
        shares = np.array(
            [[plain_share(world, int(a), seat, network) for world in worlds] for a in legal]
        )
        gained = shares - shares[legal == careful[row]]
        wanted = 0.75 * gained[:, 3:6].mean(axis=1) + 0.25 * gained[:, 6]
        np.testing.assert_allclose(gains[row, legal], wanted, atol=1e-4)
        mean = gained[:, :3].mean(axis=1)
        error = gained[:, :3].std(axis=1) / np.sqrt(3)
        ratio = np.clip(mean / (error + DOUBT), -STEADY, STEADY) / STEADY
        columns = [np.ones(len(legal)), mean * GAIN_SCALE, error * GAIN_SCALE, ratio]
        columns.append(legal == careful[row])
        np.testing.assert_allclose(looked[row, legal], np.stack(columns, axis=1), atol=2e-2)


@pytest.mark.parametrize("num_players", SIZES)
def test_what_it_is_shown_depends_on_no_hidden_card(num_players: int) -> None:
    batch = without_a_draw_pile(num_players, count=30)
    twins = determinize(batch.observations, seed=3)[:, 0]
    twins["rng"] = batch.states["rng"]
    assert (twins != batch.states).any()
    (looked, gains, actions), (looked_2, gains_2, actions_2) = taught(batch), taught(batch, twins)
    np.testing.assert_array_equal(looked, looked_2)
    np.testing.assert_array_equal(actions, actions_2)
    assert (gains != gains_2).any()  # what it learns from does


def test_the_chance_to_answer_by_hand() -> None:
    """Two unseen cards below 5, two above; one of the two hidden ones lies below 5."""
    batch = position("5 5", pile="3", other_hand="8 9")
    after = batch.states[:1].copy()
    after["hand"][0, 1] = 0
    after["known"][0, 1] = 0
    unseen = np.zeros(13, np.int64)
    unseen[[1, 2, 7, 8]] = 1  # 2, 3, 8, 9
    chances = np.empty(13, np.float32)
    write_answers(after[0], 1, unseen, chances)
    # Both of the two hidden cards lie below 5 with a chance of 1/2 each, as if drawn alone.
    np.testing.assert_allclose(chances[[0, 1, 2, 4, 8, 9]], [1, 1, 15 / 16, 3 / 4, 7 / 16, 0])
    after["bounds"][0, 1, 0] = 4
    write_answers(after[0], 1, unseen, chances)
    np.testing.assert_allclose(chances[[4, 8, 9]], [1 / 2, 1 / 4, 0])
    after["hand"][0, 1, 6] = 1  # a 7 that all know
    after["hand_size"][0, 1] = 2
    write_answers(after[0], 1, unseen, chances)
    assert (chances[:7] == 1).all() and chances[7] < 1


def test_the_move_that_wins_gains_a_whole_game() -> None:
    """Two fives go out at once; after one of them the other seat's 8, 9 and 10 win instead."""
    batch = position("5 5", pile="3")
    looked, gains, _ = taught(batch)
    careful = int(threeup_agents.make("careful").act(batch.observations, batch.action_masks)[0])
    other = {action_id("play 5"), action_id("play 5 x2")} - {careful}
    assert careful == action_id("play 5 x2")
    assert gains[0, other.pop()] == -1.0
    assert looked[0, action_id("play 5"), 1] == -GAIN_SCALE


@pytest.mark.parametrize("num_players", [3, 6])
def test_with_a_draw_pile_it_plays_as_careful(num_players: int) -> None:
    batch = Batch(200, num_players, seed=2)
    batch.reset()
    agent = some_policy(num_players).players()["net"](1)
    careful = threeup_agents.make("careful")
    differ = 0
    rng = np.random.default_rng(2)
    for _ in range(150):
        views = batch.observations, batch.action_masks
        ours, theirs = agent.act(*views), careful.act(*views)
        full = (batch.states["draw_pile_size"] > 0) | (batch.states["laying"] > 0)
        assert (ours[full] == theirs[full]).all()
        differ += int((ours[~full] != theirs[~full]).sum())
        batch.step((rng.random(batch.action_masks.shape) * batch.action_masks).argmax(axis=1))
    assert differ > 50


@pytest.mark.parametrize(("variant", "max_steps"), [("mini", 1000), ("standard", 100)])
def test_where_the_network_knows_nothing_the_look_decides(variant: str, max_steps: int) -> None:
    """In another variant, and near the step limit."""
    batch = Batch(50, 2, variant, max_steps, seed=2)
    batch.reset()
    policy = some_policy(2)
    looking, net = (policy.players()[name](1) for name in ("looking", "net"))
    careful = threeup_agents.make("careful")
    differ = 0
    for _ in range(20):
        views = batch.observations, batch.action_masks
        actions = looking.act(*views)
        differ += int((actions != careful.act(*views)).sum())
        assert (net.act(*views) == careful.act(*views)).all()
        batch.step(actions)
    assert differ > 5


@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_choice_depends_on_its_own_row_alone(num_threads: int) -> None:
    batch = without_a_draw_pile(4, count=40)
    policy = some_policy(4)
    whole = Positional(policy, "a", 3, 4, num_threads).act(batch.observations, batch.action_masks)
    one = Positional(policy, "a", 3, 4)
    for row in range(batch.num_games):
        some = slice(row, row + 1)
        assert one.act(batch.observations[some], batch.action_masks[some])[0] == whole[row]


def test_it_explains_what_it_takes() -> None:
    batch = without_a_draw_pile(3, count=40)
    agent = Positional(some_policy(3), "mine", 3, 4)
    chosen = agent.act(batch.observations, batch.action_masks)
    for row in range(batch.num_games):
        found = agent.explain(batch.observations[row])
        assert action_id(found.chosen) == chosen[row]
        assert (np.diff(found.gains) <= 0).all()
        taken = found.gains[found.actions.index(found.chosen)]
        assert taken == 0 or (taken == found.gains[0] and taken > MARGIN)
        assert sum(found.weights.values()) == pytest.approx(1, abs=1e-3)
        assert set(found.weights) == set(np.flatnonzero(batch.action_masks[row]))
        assert repr(found).splitlines()[0] == f"mine takes {found.chosen}"


def test_a_file_keeps_a_policy(tmp_path: Path) -> None:
    policy = some_policy(3, command="threeup train", curve=[1, 2])
    path = tmp_path / "run" / "policy.safetensors"
    path.parent.mkdir()
    policy.save(path)
    found = positional.read(path)
    assert found.num_players == 3 and found.training == policy.training
    for mine, theirs in zip(policy.network, found.network, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    looking, net = (threeup_agents.make(f"{tmp_path / 'run'}{end}", 5) for end in ("", ":net"))
    assert isinstance(looking, Positional) and isinstance(net, Positional)
    assert looking.name == "run"
    assert looking.data_files(3) == [path, looking.data_files(3)[1]] and net.data_files(3) == [path]
    with pytest.raises(ValueError, match="expected no :best, it takes the best anyway"):
        threeup_agents.make(f"{tmp_path / 'run'}:best")
    four = Batch(1, 4)
    four.reset()
    with pytest.raises(ValueError, match="a table of 3 players; got 4"):
        net.act(four.observations, four.action_masks)


@pytest.mark.parametrize(
    ("facts", "tensors", "match"),
    [
        ({"env": "threeup-v0"}, {}, "env"),
        ({"layout": "other"}, {}, "layout"),
        ({"features": 99}, {}, "features"),
        ({"num_players": 7}, {}, "num_players"),
        ({"variant": "huge"}, {}, "variant"),
        ({"hidden": [24]}, {}, "hidden"),
        ({"hidden": [24, 16, 8]}, {}, "two hidden layers"),
        ({"training": None}, {}, "training"),
        ({}, {"last": np.zeros(3, np.float32)}, r"tensor 'last', float32 of shape \(16,\)"),
        ({}, {"first": np.zeros(3, np.float64)}, "tensor 'first'"),
        ({}, {"second_biases": np.full(16, np.nan, np.float32)}, "finite numbers in tensor"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, facts: dict[str, Any], tensors: dict[str, Any], match: str
) -> None:
    policy = some_policy(2)
    path = tmp_path / "policy.safetensors"
    policy.save(path)
    header = read_tensors(path, "", "numpy")[0]
    changed = json.loads(header[positional.FACTS]) | facts
    arrays = policy.network._asdict() | tensors
    save_file(arrays, path, metadata={positional.FACTS: json.dumps(changed)})
    with pytest.raises(ValueError, match=match):
        positional.read(path)


def test_what_has_diverged_is_not_written(tmp_path: Path) -> None:
    policy = some_policy(2)
    policy.network.last[0] = np.inf
    with pytest.raises(ValueError, match="expected finite weights; they have diverged"):
        policy.save(tmp_path / "policy.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_players", SIZES)
def test_a_shipped_policy_is_small_and_says_what_made_it(num_players: int) -> None:
    path = positional.shipped_file(num_players)
    assert path.stat().st_size < 2_000_000
    policy = positional.read(path)
    assert policy.num_players == num_players
    assert {"command", "seed", "decisions", "seconds", "curve"} <= set(policy.training)


@pytest.mark.parametrize("num_players", SIZES)
@pytest.mark.parametrize("spec", ["policy", "policy:net", "careful", "search:10", "flat:5"])
def test_a_shipped_agent_wins_by_the_game_and_not_by_the_clock(spec: str, num_players: int) -> None:
    """A policy that had learnt the step limit (R21) let it end 65% of its games at 2 players."""
    deals = 8 if spec in ("search:10", "flat:5") else 60
    for opponent in ("greedy", "careful"):
        match = play([spec, opponent], deals, num_players, seed=3, progress=False)
        assert match.cut_off.mean() <= 0.1


@pytest.mark.parametrize("spec", ["policy", "policy:net"])
@pytest.mark.parametrize("num_players", SIZES)
def test_a_shipped_policy_beats_random_far_above_its_fair_share(
    num_players: int, spec: str
) -> None:
    match = play([spec, "random"], 60, num_players, progress=False)
    assert match.win_share[:, 0].mean() > 1.4 / num_players
