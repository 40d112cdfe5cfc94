import json
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import threeup_agents
from threeup_agents.players import policy as ppo
from threeup_env import Batch, action_id
from threeup_env.agent import name_of
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.observation import observation_fields, observation_size

Rows = tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]


def policy_for(*num_players: int, seed: int = 0, levels: int = 0) -> ppo.Policy:
    """An untrained policy with weights large enough to have opinions."""
    rng = np.random.default_rng(seed)
    sizes = [observation_size(max(num_players)) * (1 + levels), 16, NUM_ACTIONS]
    layers = [
        (rng.normal(0, 0.3, (out, into)).astype(np.float32), rng.normal(0, 1, out).astype("f4"))
        for into, out in pairwise(sizes)
    ]
    return ppo.Policy(layers, num_players, {"seed": seed}, levels=levels)


def decisions(num_players: int = 2, steps: int = 40) -> Rows:
    """Decisions of random games, some way into them."""
    batch = Batch(64, num_players, seed=7)
    batch.reset()
    mover = threeup_agents.make("random", seed=8)
    for _ in range(steps):
        batch.step(mover.act(batch.observations, batch.action_masks))
    return batch.observations, batch.action_masks


@pytest.mark.parametrize("levels", [0, 3])
def test_a_saved_policy_reads_back_as_it_was(levels: int, tmp_path: Path) -> None:
    policy = replace(policy_for(2, levels=levels), temperature=0.5)
    policy.save(tmp_path / "policy.safetensors")
    found = ppo.read(tmp_path / "policy.safetensors")
    np.testing.assert_array_equal(
        found.probabilities(*decisions()), policy.probabilities(*decisions())
    )
    assert (found.temperature, found.num_players, found.training) == (0.5, (2,), {"seed": 0})
    assert [path.name for path in tmp_path.iterdir()] == ["policy.safetensors"]


def test_the_facts_of_a_policy_are_json_in_the_header(tmp_path: Path) -> None:
    policy_for(3).save(tmp_path / "policy.safetensors")
    data = (tmp_path / "policy.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    facts = json.loads(header["__metadata__"]["threeup_policy"])
    assert facts["env"] == "threeup-v1"
    assert facts["num_players"] == [3]
    assert facts["architecture"] == {"layers": [168, 16, 94], "activation": "relu", "levels": 0}


def test_illegal_actions_have_no_probability_and_are_never_drawn() -> None:
    agent = ppo.PolicyPlayer(policy_for(2), "ppo", seed=1)
    observations, masks = decisions()
    probabilities = policy_for(2).probabilities(observations, masks)
    assert (probabilities[~masks] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    for _ in range(200):
        actions = agent.act(observations, masks)
        assert masks[np.arange(len(masks)), actions].all()


def test_sampled_play_follows_the_probabilities_at_its_temperature() -> None:
    policy = replace(policy_for(2), temperature=2.0)
    rows, legal = decisions(steps=0)
    observations, masks = np.tile(rows[:1], (20_000, 1)), np.tile(legal[:1], (20_000, 1))
    drawn = np.bincount(
        ppo.PolicyPlayer(policy, "ppo", seed=1).act(observations, masks), minlength=94
    )
    expected = policy.probabilities(observations[:1], masks[:1], temperature=2.0)[0]
    np.testing.assert_allclose(drawn / 20_000, expected, atol=0.015)


def test_best_action_is_the_likeliest() -> None:
    observations, masks = decisions()
    best = ppo.PolicyPlayer(policy_for(2), "ppo", best_action=True).act(observations, masks)
    probabilities = policy_for(2).probabilities(observations, masks)
    np.testing.assert_array_equal(best, probabilities.argmax(axis=1))


def test_choosing_row_by_row_is_choosing_at_once() -> None:
    whole, single = (ppo.PolicyPlayer(policy_for(2), "ppo", seed=3) for _ in range(2))
    observations, masks = decisions()
    rows = [single.act(observations[i : i + 1], masks[i : i + 1])[0] for i in range(64)]
    np.testing.assert_array_equal(whole.act(observations, masks), rows)


def test_levels_say_which_features_are_at_least_so_high() -> None:
    observations, _ = decisions()
    size = observations.shape[1]
    weights = np.zeros((NUM_ACTIONS, 5 * size), np.float32)
    hand_size = observation_fields(2)["hand_size[0]"].start
    for level in range(5):  # the counts themselves, then four levels
        weights[level, level * size + hand_size] = 1
    policy = ppo.Policy([(weights, np.zeros(NUM_ACTIONS, np.float32))], (2,), levels=4)
    logits = policy.logits(observations)
    cards = observations[:, hand_size]
    assert {2, 3, 4} <= set(cards.tolist())
    np.testing.assert_array_equal(logits[:, 0], cards)
    for level in (1, 2, 3, 4):
        np.testing.assert_array_equal(logits[:, level], np.where(cards < level, 0, 1))


@pytest.mark.parametrize("levels", [0, 3])
def test_a_policy_for_several_tables_pads_the_smaller_ones(levels: int) -> None:
    policy = policy_for(2, 4, levels=levels)
    observations, _ = decisions(num_players=2)
    padded = np.pad(observations, ((0, 0), (0, observation_size(4) - observation_size(2))))
    np.testing.assert_allclose(policy.logits(observations), policy.logits(padded), atol=1e-5)
    with pytest.raises(ValueError, match="expected a table of 2 or 4 players; got 3"):
        policy.probabilities(*decisions(num_players=3))


def test_make_finds_a_policy_by_file_and_by_run_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my-run"
    folder.mkdir()
    policy_for(2).save(folder / "policy.safetensors")
    by_folder, by_file = (
        threeup_agents.make(str(folder)),
        threeup_agents.make(str(folder / "policy.safetensors")),
    )
    assert name_of(by_folder) == "my-run"
    np.testing.assert_array_equal(by_folder.act(*decisions()), by_file.act(*decisions()))


LEAVE_OUT = object()


def facts_changed(**changes: Any) -> Callable[[Path], None]:
    """A writer of policy files that state other facts, or not all."""

    def write(path: Path) -> None:
        policy_for(2).save(path)
        with safe_open(path, framework="numpy") as file:
            facts = json.loads(file.metadata()["threeup_policy"]) | changes
            facts = {name: fact for name, fact in facts.items() if fact is not LEAVE_OUT}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        save_file(tensors, path, metadata={"threeup_policy": json.dumps(facts)})

    return write


def write_truncated(path: Path) -> None:
    policy_for(2).save(path)
    path.write_bytes(path.read_bytes()[:-100])


def write_foreign(path: Path) -> None:
    save_file({"weights": np.zeros(3, np.float32)}, path, metadata={"format": "pt"})


def write_weight(number: float) -> Callable[[Path], None]:
    """A writer of policy files with a weight that is no number."""

    def write(path: Path) -> None:
        facts_changed()(path)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        tensors["1.biases"][3] = number
        save_file(tensors, path, metadata=metadata)

    return write


def write_header(header: str) -> Callable[[Path], None]:
    """A writer of policy files with other words for facts."""

    def write(path: Path) -> None:
        save_file({"x": np.zeros(3)}, path, metadata={"threeup_policy": header})

    return write


class Bomb:
    """Whoever unpickles it fails."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was executed",))


def write_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Bomb()))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        pytest.param(write_truncated, "expected a policy file", id="truncated"),
        pytest.param(lambda path: path.write_text("weights"), "expected a policy file", id="text"),
        pytest.param(lambda path: path.write_bytes(b""), "expected a policy file", id="empty"),
        pytest.param(
            lambda path: path.write_bytes(pickle.dumps(Bomb())),
            "expected a policy file",
            id="pickle",
        ),
        pytest.param(write_foreign, "expected the facts 'threeup_policy'", id="foreign tensors"),
        pytest.param(facts_changed(env="threeup-v0"), "expected env 'threeup-v1'", id="env"),
        pytest.param(facts_changed(layout="0" * 16), "expected layout", id="layout"),
        pytest.param(facts_changed(format=99), "expected format 1; got 99", id="format"),
        pytest.param(
            facts_changed(architecture={"layers": [136, 32, 94]}), "expected tensor", id="shapes"
        ),
        pytest.param(facts_changed(num_players=[6]), "expected 264 inputs", id="table size"),
        *(
            pytest.param(
                facts_changed(**{name: value}),
                f"expected {name}, .*; got {got}",
                id=f"{name} {got}",
            )
            for name, value, got in (
                ("temperature", 0, "0"),
                ("temperature", -1, "-1"),
                ("temperature", float("nan"), "nan"),
                ("temperature", "hot", "'hot'"),
                ("temperature", True, "True"),
                ("temperature", LEAVE_OUT, "none"),
                ("architecture", LEAVE_OUT, "none"),
                ("architecture", [136, 16, 94], r"\[136"),
                ("training", LEAVE_OUT, "none"),
                ("training", None, "None"),
                ("num_players", LEAVE_OUT, "none"),
                ("num_players", 2, "2"),
                ("num_players", [], r"\[\]"),
                ("num_players", ["2"], r"\['2'\]"),
                ("num_players", [2, 7], r"\[2, 7\]"),
            )
        ),
        *(
            pytest.param(
                facts_changed(architecture={"layers": [136, 16, 94]} | {name: value}),
                f"architecture: expected {name}, .*; got {got}",
                id=f"{name} {got}",
            )
            for name, value, got in (
                ("layers", [136], r"\[136\]"),
                ("layers", [136, "16", 94], r"\[136, '16', 94\]"),
                ("layers", None, "None"),
                ("activation", "tanh", "'tanh'"),
                ("activation", None, "None"),
                ("levels", -1, "-1"),
                ("levels", "2", "'2'"),
            )
        ),
        pytest.param(write_weight(np.nan), "expected finite numbers in tensor '1.bia", id="nan"),
        pytest.param(write_weight(np.inf), "expected finite numbers in tensor '1.bia", id="inf"),
        pytest.param(write_header("[" * 100_000), "expected the facts", id="brackets"),
        pytest.param(write_header("[]"), "expected a JSON object; got list", id="list"),
        pytest.param(
            facts_changed(architecture={"layers": [136, 16, 94], "levels": 2}),
            "expected 408 inputs",
            id="levels",
        ),
    ],
)
def test_what_is_no_policy_for_this_environment_is_refused_by_name(
    tmp_path: Path, write: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "policy.safetensors"
    write(path)
    with pytest.raises(ValueError, match=message) as refusal:
        threeup_agents.make(str(path))
    assert str(path) in str(refusal.value)


def test_a_policy_that_has_diverged_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    policy_for(2).save(path)
    before = path.read_bytes()
    diverged = policy_for(2, seed=1)
    diverged.layers[0][0][2, 3] = np.nan
    with pytest.raises(ValueError, match=r"policy\.safetensors': expected finite weights"):
        diverged.save(path)
    assert path.read_bytes() == before


def test_laying_is_decided_by_the_policy_too() -> None:
    observations, masks = decisions(steps=0)
    actions = ppo.PolicyPlayer(policy_for(2), "ppo", best_action=True).act(observations, masks)
    assert (actions < action_id("play 1")).all()
