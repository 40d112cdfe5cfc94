"""Runs of train.py: settings, checkpoints, resuming, and what the run says about itself."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import train
from agents import checkpoint, ladder, ppo
from agents.ladder import Rung
from agents.referee import AgentError
from agents.selfplay import SelfPlayPPO
from agents.watch import Watch

ROOT = Path(__file__).parents[1]
torch.set_num_threads(1)  # these networks are too small for more


def learner(num_players: int = 2) -> SelfPlayPPO:
    """A small learner with its games dealt."""
    model = train.build(train.Config(num_players=num_players, num_games=16, hidden=(16, 16)))
    model._setup_learn(1000)
    return model


SHORT = [
    *("--num-games", "32", "--rollout-steps", "16", "--minibatch", "256", "--hidden", "16", "16"),
    *("--decisions", "4000", "--snapshot-every", "1200", "--pool-size", "2"),
    *("--opponents", "random", "greedy", "--opponent-share", "0.5", "--num-threads", "1"),
    *("--ladder-every", "3000", "--ladder-deals", "10", "--checkpoint-every", "1500"),
]


def everything_but_time(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A run's last checkpoint; the caller's facts hold wall-clock times."""
    header, tensors = checkpoint._read(folder / "checkpoint.safetensors")
    facts = header.pop("facts")
    header["rungs"] = [rung | {"seconds": 0} for rung in facts["rungs"]]
    return header, tensors


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--num-players", "3"),
        ("--lookahead", "--teacher", "careful", "--levels", "2", "--num-players", "3"),
    ],
)
def test_a_resumed_run_equals_an_unbroken_one(
    more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train.main([*SHORT, *more, "--run-dir", str(tmp_path / "whole")]) == 0

    def save_and_stop(watch: Watch) -> None:
        save(watch)
        if watch.num_timesteps > 0:
            raise KeyboardInterrupt

    save = Watch._save
    with monkeypatch.context() as context:
        context.setattr(Watch, "_save", save_and_stop)
        stopped = train.main([*SHORT, *more, "--run-dir", str(tmp_path / "broken")])
        assert stopped == train.INTERRUPTED
    assert train.main(["--resume", str(tmp_path / "broken")]) == 0
    assert train.main(["--resume", str(tmp_path / "broken")]) == train.USAGE_ERROR
    (header, tensors), (other_header, other_tensors) = (
        everything_but_time(tmp_path / name) for name in ("whole", "broken")
    )
    assert header == other_header
    assert header["counters"]["num_snapshots"] >= 3
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        torch.testing.assert_close(tensor, other_tensors[name], atol=0, rtol=0, msg=name)
    policies = [(tmp_path / name / "policy.safetensors") for name in ("whole", "broken")]
    for ours, theirs in zip(*(ppo.read(path).layers for path in policies), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    long = [*SHORT, "--decisions", "30000"]  # so that it is killed long before its end
    command = [sys.executable, "train.py", *long, "--run-dir", str(tmp_path / "run")]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    path = tmp_path / "run" / "checkpoint.safetensors"
    while not path.exists() or checkpoint._read(path)[0]["counters"]["num_timesteps"] == 0:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)  # somewhere between two checkpoints
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert checkpoint._read(path)[0]["counters"]["num_timesteps"] < 20000
    assert train.main(["--resume", str(tmp_path / "run")]) == 0
    assert train.main([*long, "--run-dir", str(tmp_path / "whole")]) == 0
    (header, tensors), (other_header, other_tensors) = (
        everything_but_time(tmp_path / name) for name in ("run", "whole")
    )
    assert header == other_header
    assert all(torch.equal(tensor, other_tensors[name]) for name, tensor in tensors.items())


def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_half(tensors: Any, path: Path, metadata: Any) -> None:
        save_file(tensors, path, metadata)
        if json.loads(metadata["threeup_checkpoint"])["counters"]["num_timesteps"] > 2000:
            path.write_bytes(path.read_bytes()[:1000])
            raise SafetensorError("I/O error: No space left on device")

    run_dir = tmp_path / "run"
    with monkeypatch.context() as context:
        context.setattr(checkpoint, "save_file", write_half)
        assert train.main([*SHORT, "--run-dir", str(run_dir)]) == train.USAGE_ERROR
    assert "No space left on device" in capsys.readouterr().err
    header, _ = everything_but_time(run_dir)
    assert header["counters"]["num_timesteps"] < 2000
    checkpoint.load(run_dir / "checkpoint.safetensors", train.build(train.parse(SHORT)))


@pytest.mark.parametrize("spoil", ["truncated", "foreign", "policy"])
def test_what_is_no_checkpoint_is_refused_by_name(tmp_path: Path, spoil: str) -> None:
    model = learner()
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, model, {})
    if spoil == "truncated":
        path.write_bytes(path.read_bytes()[:-1])
    elif spoil == "foreign":
        save_file(load_file(path), path)
    else:
        model.export((2,)).save(path)
    with pytest.raises(ValueError, match=r"checkpoint '.*checkpoint.safetensors': expected"):
        checkpoint.load(path, model)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, learner(2), {})
    with pytest.raises(ValueError, match=r"checkpoint .* expected"):
        checkpoint.load(path, learner(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--num-players", "7"], "num_players: expected 2 to 6"),
        (["--num-games", "0"], "num_games: expected at least 1; got 0"),
        (["--opponents", "nobody"], "agent: expected one of"),
        (["--seed", "-1"], "seed: expected at least 0; got -1"),
        (["--num-threads", "-1"], "num_threads: expected at least 0; got -1"),
        (["--snapshot-every", "-1"], "snapshot_every: expected at least 0; got -1"),
        (["--temperature", "0"], "temperature: expected more than 0; got 0.0"),
        (["--learning-rate", "nan"], "learning_rate: expected more than 0; got nan"),
        (["--hidden", "64", "0"], "hidden: expected sizes of at least 1; got (64, 0)"),
        (["--opponents", "greedy"], "opponents: expected one_seat or an opponent_share above 0"),
        (["--snapshot-every", "9"], "snapshot_every: expected one_seat or an opponent_share above"),
        (["--opponent-share", "0.5"], "opponent_share: expected opponents or snapshot_every"),
        (["--teacher", "careful"], "teacher: expected teacher_decisions above 0 beside it"),
        (["--levels", "-1"], "levels: expected at least 0; got -1"),
        (["--lookahead"], "lookahead: expected a teacher for all of the run"),
        (
            ["--lookahead", "--teacher", "careful", "--teacher-decisions", "9"],
            "got 'careful' and teacher_decisions 9",
        ),
        (["--resume", "nowhere"], "--resume: expected a run folder"),
        (["--resume", "nowhere", "--seed", "3"], "--resume: expected no other option"),
        (["--resume", "nowhere", "--decisions", "9"], "--resume: expected a run folder"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(options) == train.USAGE_ERROR
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings",
    [
        {"one_seat": True, "opponents": ("random",)},
        {"one_seat": True, "snapshot_every": 9},
        {"opponent_share": 0.5, "snapshot_every": 9},
        {"opponent_share": 0.5, "opponents": ("random",)},
        {"num_players": 6, "variant": "listed"},
        {"lookahead": True, "teacher": "greedy"},
    ],
)
def test_settings_that_work_are_not_refused(settings: dict[str, Any]) -> None:
    train.check(train.Config(**settings))


@pytest.mark.parametrize("option", ["--ladder", "--opponents"])
def test_a_policy_for_another_table_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.safetensors"
    learner(3).export((3,)).save(path)
    assert train.main([option, str(path), "--one-seat"]) == train.USAGE_ERROR
    assert f"train.py: agent '{path}': " in capsys.readouterr().err


def test_an_agent_that_breaks_a_rule_ends_training_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: Any) -> None:
        raise AgentError("greedy", "expected 'draw'; got 'flip'", 0)

    monkeypatch.setattr(train, "run", fail)
    assert train.main([]) == train.USAGE_ERROR
    assert capsys.readouterr().err == "train.py: agent 'greedy': expected 'draw'; got 'flip'\n"


@pytest.mark.parametrize(
    "missing",
    [
        "torch",
        *(pytest.param(m, marks=pytest.mark.slow) for m in ("stable_baselines3", "sb3_contrib")),
    ],
)
def test_a_missing_extra_is_named(missing: str) -> None:
    code = (
        "import runpy, sys; from importlib import abc\n"
        "class Missing(abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "runpy.run_path('train.py', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == train.USAGE_ERROR
    assert done.stderr == f"train.py: training needs {missing}: pip install 'threeup[train]'\n"


def test_presets_give_values_that_options_override() -> None:
    full = train.parse(["--preset", "full", "--seed", "5"])
    assert full == replace(train.PRESETS["full"], seed=5)
    assert train.parse([]) == train.PRESETS["quick"]


def test_a_run_never_overwrites_another(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert train.main(["--run-dir", str(tmp_path)]) == train.USAGE_ERROR


def test_a_fall_in_strength_is_noticed() -> None:
    def rung(decisions: int, share: float) -> Rung:
        return Rung(decisions, 0.0, "greedy", "best", share, share - 0.02, share + 0.02, 0.0)

    earlier = [rung(1, 0.3), rung(2, 0.5)]
    assert ladder.falls(earlier, [rung(3, 0.47)]) == []
    assert ladder.falls(earlier, [rung(3, 0.45)])[0].startswith("weaker than at 2 decisions: ")


def test_measurements_leave_no_figures_in_memory(tmp_path: Path) -> None:
    gc.disable()  # or a collection by chance would hide what is left behind
    try:
        before = sum(type(each) is Figure for each in gc.get_objects())
        assert train.main([*SHORT, "--run-dir", str(tmp_path / "run")]) == 0
        after = sum(type(each) is Figure for each in gc.get_objects())
    finally:
        gc.enable()
    assert (tmp_path / "run" / "curve.png").exists()
    assert after <= before
