import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
import onnx
import pytest
import sb3_contrib
import stable_baselines3
import torch
from onnx import TensorProto, helper, numpy_helper

import threeup_agents
from threeup_agents import evaluation
from threeup_agents.arena.provenance import agent_hash
from threeup_env import Batch
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.observation import observation_size
from threeup_env.envs.spaces import masked_space, observation_box

F2 = observation_size(2)
SMALL: dict[str, Any] = {"net_arch": [8]}
Layer: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


def layer(seed: int = 0, size: int = F2, outputs: int = NUM_ACTIONS) -> Layer:
    """Weights `[F, A]` and biases `[A]` of a network of one layer."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(size, outputs)).astype(np.float32)
    return weights, rng.normal(size=outputs).astype(np.float32)


def write_onnx(
    path: Path,
    weights: npt.NDArray[np.float32],
    biases: npt.NDArray[np.float32],
    rows: str | int = "B",
) -> str:
    node = helper.make_node("Gemm", ["seen", "weights", "biases"], ["logits"])
    graph = helper.make_graph(
        [node],
        "policy",
        [helper.make_tensor_value_info("seen", TensorProto.FLOAT, [rows, len(weights)])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [rows, len(biases)])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(biases, "biases")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return str(path)


def write_torchscript(
    path: Path, weights: npt.NDArray[np.float32], biases: npt.NDArray[np.float32]
) -> str:
    linear = torch.nn.Linear(*weights.shape)
    linear.load_state_dict(
        {"weight": torch.from_numpy(weights.T.copy()), "bias": torch.from_numpy(biases)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(linear).save(path)  # type: ignore[no-untyped-call]
    return str(path)


class Face(gymnasium.Env[Any, np.int64]):
    """The spaces of a face, and no games."""

    def __init__(self, num_players: int, masked: bool) -> None:
        space = masked_space(num_players) if masked else observation_box(num_players)
        self.observation_space: Any = space
        self.action_space: Any = gymnasium.spaces.Discrete(NUM_ACTIONS)


def write_zip(path: Path, algorithm: str, num_players: int = 2, masked: bool = False) -> str:
    library = stable_baselines3 if hasattr(stable_baselines3, algorithm) else sb3_contrib
    options = {"buffer_size": 10} if algorithm == "DQN" else {}
    policy = "MultiInputPolicy" if masked else "MlpPolicy"
    face = Face(num_players, masked)
    model = getattr(library, algorithm)(policy, face, policy_kwargs=SMALL, seed=3, **options)
    model.save(path)
    return str(path)


WRITERS: dict[str, Callable[[Path], str]] = {
    "policy.onnx": lambda path: write_onnx(path, *layer()),
    "policy.pt": lambda path: write_torchscript(path, *layer()),
    "ppo.zip": lambda path: write_zip(path, "PPO"),
    "a2c.zip": lambda path: write_zip(path, "A2C"),
    "dqn.zip": lambda path: write_zip(path, "DQN"),
    "maskable.zip": lambda path: write_zip(path, "MaskablePPO"),
    "maskable-dict.zip": lambda path: write_zip(path, "MaskablePPO", masked=True),
    "dqn-dict.zip": lambda path: write_zip(path, "DQN", masked=True),
}


def decisions(num_players: int = 2) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    batch = Batch(40, num_players, seed=1)
    batch.reset()
    mover = threeup_agents.make("random", seed=2)
    for _ in range(12):
        batch.step(mover.act(batch.observations, batch.action_masks))
    return batch.observations.copy(), batch.action_masks.copy()


@pytest.mark.parametrize("name", WRITERS)
def test_a_network_of_another_library_plays_a_round_robin(name: str, tmp_path: Path) -> None:
    spec = WRITERS[name](tmp_path / name)
    config = evaluation.Config((spec, f"best={spec}:best", "random"), deals=3, trust=True)
    results = evaluation.run(config)
    assert results["failures"] == []
    assert {row["agent"] for row in results["standings"]} == {spec, "best", "random"}
    assert len({row["hash"] for row in results["agents"]}) == 3


@pytest.mark.parametrize("name", WRITERS)
def test_its_choices_are_legal_and_follow_from_its_seed(name: str, tmp_path: Path) -> None:
    spec = WRITERS[name](tmp_path / name)
    views, masks = decisions()
    chosen = [
        threeup_agents.make(spec, seed, trust=True).act(views, masks).tolist() for seed in (4, 4, 5)
    ]
    assert masks[np.arange(len(masks)), chosen[0]].all()
    assert chosen[0] == chosen[1]
    assert (chosen[0] == chosen[2]) == name.startswith("dqn")


@pytest.mark.parametrize("kind", ["onnx", "pt"])
def test_the_best_action_is_that_of_the_highest_legal_logit(kind: str, tmp_path: Path) -> None:
    spec = WRITERS[f"policy.{kind}"](tmp_path / f"policy.{kind}")
    views, masks = decisions()
    weights, biases = layer()
    logits = views.astype(np.float64) @ weights + biases
    expected = np.where(masks, logits, -np.inf).argmax(axis=1)
    agent = threeup_agents.make(f"{spec}:best", trust=True)
    assert agent.act(views, masks).tolist() == expected.tolist()


def test_sampling_follows_the_softmax_of_the_legal_logits(tmp_path: Path) -> None:
    weights = np.zeros((F2, NUM_ACTIONS), np.float32)
    biases = np.full(NUM_ACTIONS, 50, np.float32)
    biases[:3] = np.log([1, 2, 5])
    spec = write_onnx(tmp_path / "policy.onnx", weights, biases)
    views, masks = decisions()
    masks = np.tile(np.arange(NUM_ACTIONS) < 3, (8000, 1))
    actions = threeup_agents.make(spec, seed=1).act(np.repeat(views, 200, axis=0), masks)
    # Shares 1/8, 2/8, 5/8 of 8,000; four standard deviations are at most .022.
    np.testing.assert_allclose(np.bincount(actions) / 8000, [0.125, 0.25, 0.625], atol=0.022)


def test_dqn_takes_the_highest_legal_value_as_its_library_has_it(tmp_path: Path) -> None:
    spec = write_zip(tmp_path / "dqn.zip", "DQN")
    views, masks = decisions()
    model = stable_baselines3.DQN.load(spec)
    with torch.no_grad():
        values = model.q_net(torch.from_numpy(views.astype(np.float32)))
    assert isinstance(values, torch.Tensor)
    expected = np.where(masks, values.numpy(), -np.inf).argmax(axis=1)
    actions = threeup_agents.make(spec, trust=True).act(views, masks)
    assert actions.tolist() == expected.tolist()


def test_maskable_ppo_takes_the_action_that_its_library_predicts(tmp_path: Path) -> None:
    spec = write_zip(tmp_path / "maskable.zip", "MaskablePPO", masked=True)
    views, masks = decisions()
    model = sb3_contrib.MaskablePPO.load(spec)
    seen = {"observation": views, "action_mask": masks.astype(np.int8)}
    expected, _ = model.predict(seen, deterministic=True, action_masks=masks)
    actions = threeup_agents.make(f"{spec}:best", trust=True).act(views, masks)
    assert actions.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ppo.zip", "it holds pickles, and loading a pickle runs whatever code is in it"),
        ("policy.pt", "it holds a program, whose operators can read and write files"),
    ],
)
def test_a_file_that_could_run_code_is_refused_unless_trusted(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = WRITERS[name](tmp_path / name)
    options = ["--agents", spec, "random", "--deals", "2"]
    assert evaluation.main(options) == 2
    error = capsys.readouterr().err
    assert (
        f"agent {spec!r}: expected trust (threeup evaluate --trust, in Python trust=True)" in error
    )
    assert reason in error
    assert evaluation.main([*options, "--trust"]) == 0


def test_trust_reaches_every_worker(tmp_path: Path) -> None:
    spec = WRITERS["ppo.zip"](tmp_path / "ppo.zip")
    results = [
        evaluation.run(evaluation.Config((spec, "random"), deals=3, trust=True, workers=workers))
        for workers in (1, 2)
    ]
    assert results[0]["standings"] == results[1]["standings"]


def test_the_algorithm_is_told_without_loading_a_pickle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threeup_agents.outside.sb3_zip import algorithm_of

    paths = {name: tmp_path / f"{name}.zip" for name in ("PPO", "A2C", "DQN", "MaskablePPO")}
    for name, path in paths.items():
        write_zip(path, name)
    for module in ("torch", "stable_baselines3", "sb3_contrib"):
        monkeypatch.setitem(sys.modules, module, None)
    assert {name: algorithm_of(path) for name, path in paths.items()} == {n: n for n in paths}


@pytest.mark.parametrize("name", ["policy.onnx", "policy.pt", "ppo.zip", "dqn-dict.zip"])
def test_a_policy_for_another_table_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = WRITERS[name](tmp_path / name)
    options = ["--agents", spec, "random", "--deals", "2", "--num-players", "3", "--trust"]
    assert evaluation.main(options) == 2
    error = capsys.readouterr().err
    assert f"agent {spec!r}: policy {spec!r}: expected " in error
    assert f"{observation_size(3)}" in error
    assert error.count("\n") == 1


def nothing(path: Path) -> str:
    return str(path)


def noise(path: Path) -> str:
    path.write_bytes(b"noise")
    return str(path)


def pickled(path: Path) -> str:
    torch.save({"weights": torch.zeros(3)}, path)
    return str(path)


def not_a_number(path: Path) -> str:
    weights, biases = layer()
    biases[:] = np.nan
    return write_onnx(path, weights, biases)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("none.onnx", nothing, "expected the policy file .*; there is none"),
        ("noise.onnx", noise, "expected an ONNX file; got "),
        ("noise.pt", noise, r"expected a TorchScript file, of torch\.jit\.save; got "),
        ("pickle.pt", pickled, r"expected a TorchScript file, of torch\.jit\.save; got "),
        ("noise.zip", noise, r"expected a file of Stable-Baselines3's model\.save; got "),
        (
            "trpo.zip",
            lambda path: write_zip(path, "QRDQN"),
            "expected a policy of PPO, A2C, DQN, MaskablePPO; got one of sb3_contrib.qrdqn",
        ),
        ("nan.onnx", not_a_number, "expected finite logits for legal actions; got nan"),
        (
            "one-row.onnx",
            lambda path: write_onnx(path, *layer(), rows=1),
            "expected an input of any number of rows .*dynamic first axis.*; got 1",
        ),
        (
            "short.onnx",
            lambda path: write_onnx(path, *layer(outputs=5)),
            r"expected logits, floats \[B, 94\], here \(40, 94\); got float32 of shape \(40, 5\)",
        ),
        (
            "short.pt",
            lambda path: write_torchscript(path, *layer(outputs=5)),
            r"expected logits, floats .* got float32 of shape \(40, 5\)",
        ),
    ],
)
def test_a_file_that_is_no_policy_is_named(
    name: str, write: Callable[[Path], str], message: str, tmp_path: Path
) -> None:
    spec = write(tmp_path / name)
    with pytest.raises(ValueError, match=message) as refusal:
        threeup_agents.make(spec, trust=True).act(*decisions())
    assert spec in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        ("policy.onnx", "onnxruntime", "onnx"),
        ("policy.pt", "torch", "train"),
        ("ppo.zip", "sb3_contrib", "train"),
    ],
)
def test_a_library_that_is_missing_is_named(
    name: str, library: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = WRITERS[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'threeup\[{extra}\]'"):
        threeup_agents.make(spec, trust=True)


def test_the_hash_is_that_of_the_weights_and_of_the_way_of_choosing(tmp_path: Path) -> None:
    spec = write_onnx(tmp_path / "policy.onnx", *layer())
    first = agent_hash(spec, 2)
    assert agent_hash(f"{spec}:best", 2) != first
    copy = write_onnx(tmp_path / "copy.onnx", *layer())
    assert agent_hash(copy, 2) == first
    write_onnx(tmp_path / "policy.onnx", *layer(seed=1))
    assert agent_hash(spec, 2) != first


def test_torch_keeps_its_number_of_threads(tmp_path: Path) -> None:
    spec = WRITERS["policy.pt"](tmp_path / "policy.pt")
    before = torch.get_num_threads()
    threeup_agents.make(spec, trust=True).act(*decisions())
    assert torch.get_num_threads() == before
