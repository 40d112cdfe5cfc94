"""One contract for every registered agent: legal, seeded, the same in any batch."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import threeup_agents
from threeup_env import ACTION_NAMES, VARIANTS, Batch, action_id
from threeup_env.agent import name_of
from threeup_env.engine.observation import observation_size

# Sizes of the search agents here are the smallest that still search.
SPECS = ["random", "greedy", "careful", "flat:4", "search:4", "look:4", "policy", "policy:net"]
TABLES = [
    (variant.name, num_players)
    for variant in VARIANTS.values()
    for num_players in range(2, variant.max_players + 1)
]
Rows = tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]


def decisions(variant: str, num_players: int, steps: int = 30) -> Iterator[Rows]:
    """Decisions of random games, of all phases."""
    batch = Batch(16, num_players, variant, seed=5)
    batch.reset()
    mover = threeup_agents.make("random", seed=6)
    for _ in range(steps):
        yield batch.observations.copy(), batch.action_masks.copy()
        batch.step(mover.act(batch.observations, batch.action_masks))


def test_the_contract_is_held_by_every_agent_that_has_a_name() -> None:
    named = {spec.replace(":4", ":N") for spec in SPECS}
    from_outside = {"FOLDER", "FILE.py:NAME?depth=3", "package.module:NAME", "NAME=SPEC"}
    from_outside |= {"FILE.onnx", "FILE.pt", "FILE.zip"}
    from_outside |= {"program:COMMAND", "exact"}  # tests/arena and tests/exact play these
    assert named | from_outside == set(threeup_agents.SPECS)


@pytest.mark.parametrize(("variant", "num_players"), TABLES)
@pytest.mark.parametrize("spec", SPECS)
def test_agents_act_legally(spec: str, variant: str, num_players: int) -> None:
    agent = threeup_agents.make(spec, seed=1)
    for observations, masks in decisions(variant, num_players):
        before = observations.copy(), masks.copy()
        actions = agent.act(observations, masks)
        assert actions.dtype == np.int64
        assert actions.shape == (len(masks),)
        assert masks[np.arange(len(masks)), actions].all()
        np.testing.assert_array_equal(observations, before[0])
        np.testing.assert_array_equal(masks, before[1])


@pytest.mark.parametrize("spec", SPECS)
def test_agents_repeat_themselves_from_the_same_seed(spec: str) -> None:
    first, second = threeup_agents.make(spec, seed=3), threeup_agents.make(spec, seed=3)
    for observations, masks in decisions("standard", 3, steps=10):
        expected = first.act(observations, masks)
        np.testing.assert_array_equal(second.act(observations, masks), expected)


@pytest.mark.parametrize("spec", SPECS)
def test_agents_choose_row_by_row(spec: str) -> None:
    whole, single = threeup_agents.make(spec, seed=3), threeup_agents.make(spec, seed=3)
    for observations, masks in decisions("standard", 2, steps=10):
        rows = [single.act(observations[i : i + 1], masks[i : i + 1])[0] for i in range(16)]
        np.testing.assert_array_equal(whole.act(observations, masks), rows)


@pytest.mark.parametrize("spec", SPECS)
def test_agents_take_the_only_legal_action(spec: str) -> None:
    agent = threeup_agents.make(spec, seed=1)
    for observations, masks in decisions("standard", 2):
        forced = masks.sum(axis=1) == 1
        if forced.any():
            actions = agent.act(observations[forced], masks[forced])
            np.testing.assert_array_equal(actions, masks[forced].argmax(axis=1))


@pytest.mark.parametrize("spec", SPECS)
def test_agents_leave_the_global_streams_alone(spec: str) -> None:
    before = repr(np.random.get_state())  # noqa: NPY002 - the stream that nobody may touch
    agent = threeup_agents.make(spec, seed=1)
    for observations, masks in decisions("standard", 2, steps=3):
        agent.act(observations, masks)
    assert repr(np.random.get_state()) == before  # noqa: NPY002 - as above


def test_random_takes_every_legal_action_alike() -> None:
    masks = np.zeros((60_000, len(ACTION_NAMES)), np.bool_)
    masks[:, [3, 20, 93]] = True
    agent = threeup_agents.make("random", seed=2)
    actions = agent.act(np.zeros((len(masks), observation_size(2)), np.int8), masks)
    counts = np.bincount(actions, minlength=len(ACTION_NAMES))
    assert counts[[3, 20, 93]].sum() == len(masks)
    # Four standard deviations of a binomial count with p = 1/3.
    assert (np.abs(counts[[3, 20, 93]] - 20_000) < 4 * np.sqrt(60_000 * 2 / 9)).all()


def test_random_agents_of_different_seeds_differ() -> None:
    masks = np.ones((100, len(ACTION_NAMES)), np.bool_)
    rows = np.zeros((100, observation_size(2)), np.int8)
    one, other = (threeup_agents.make("random", seed).act(rows, masks) for seed in (1, 2))
    assert (one != other).any()


@pytest.mark.parametrize(
    ("legal", "expected"),
    [
        pytest.param("lay 3, lay 7, lay C+1", "lay C+1", id="lays its highest"),
        pytest.param("play 4, draw", "draw", id="draws when it may"),
        pytest.param("play 4, play 4 x2, play 9", "play 4 x2", id="the lowest, all copies"),
        pytest.param("play C, play C x2, play C+1", "play C x2", id="Clears too"),
        pytest.param("play C+1, play C+2", "play C+1", id="one at a time"),
        pytest.param("flip", "flip", id="flips"),
        pytest.param("pick up", "pick up", id="picks up"),
    ],
)
def test_greedy_choice(legal: str, expected: str) -> None:
    mask = np.zeros((1, len(ACTION_NAMES)), np.bool_)
    mask[0, [action_id(name) for name in legal.split(", ")]] = True
    rows = np.zeros((1, observation_size(2)), np.int8)
    action = threeup_agents.make("greedy").act(rows, mask)[0]
    assert ACTION_NAMES[action] == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("greedi", r"agent: expected one of random, greedy, careful, .*; got 'greedi'"),
        ("greedy:3", r"agent: expected one of .*; got 'greedy:3'"),
        ("", r"agent: expected one of .*; got ''"),
        ("flat", r"agent 'flat': expected flat:N with an integer N of at least 1"),
        ("search:0", r"agent 'search:0': expected search:N .*; got '0'"),
        ("search:1.5", r"agent 'search:1.5': expected search:N .*; got '1.5'"),
        ("none/policy.safetensors", r"expected the policy file .*; there is none"),
    ],
)
def test_make_refuses_what_it_does_not_know(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        threeup_agents.make(spec)


def test_make_names_the_file_that_a_run_folder_lacks(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected the policy file .*policy\.safetensors"):
        threeup_agents.make(str(tmp_path))


def test_importing_agents_loads_nothing_heavy() -> None:
    code = (
        "import sys, threeup_agents; threeup_agents.make('greedy'); "
        "print([m for m in ('torch', 'stable_baselines3', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_folder_called_as_an_agent_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy").mkdir()
    for spec in ("policy", "policy:net"):
        assert threeup_agents.policy_file(spec) is None
        assert name_of(threeup_agents.make(spec)) == spec
    assert threeup_agents.policy_file("./policy") == Path("policy/policy.safetensors")
