"""Training runs: settings, checkpoints, resuming, and what the run says about itself."""

import gc
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from stable_baselines3.common.logger import Logger

from threeup_agents.arena.referee import AgentError
from threeup_agents.commands import USAGE_ERROR
from threeup_agents.players import policy as ppo
from threeup_agents.training import __main__ as train
from threeup_agents.training import callback as watch
from threeup_agents.training import checkpoint, ladder, run
from threeup_agents.training.callback import Watch
from threeup_agents.training.ladder import Measurement
from threeup_agents.training.selfplay import SelfPlayPPO
from threeup_agents.training.settings import PRESETS, Config, check
from threeup_env.engine.state import STATE_DTYPE

ROOT = Path(__file__).parents[2]
torch.set_num_threads(1)  # these networks are too small for more


def learner(num_players: int = 2, **settings: Any) -> SelfPlayPPO:
    """A small learner with its games dealt."""
    small: dict[str, Any] = {"num_games": 16, "hidden": (16, 16)}
    model = run.build(Config(num_players=num_players, **(small | settings)))
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
    header["measurements"] = [measurement | {"seconds": 0} for measurement in facts["measurements"]]
    return header, tensors


def check_same_policy(*runs: Path) -> None:
    """Two runs have ended with the same policy."""
    one, other = (load_file(run / "policy.safetensors") for run in runs)
    assert one.keys() == other.keys() and one
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--num-players", "3"),
        ("--lookahead", "--snapshot-every", "0", "--num-players", "3"),
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
    assert train.main(["--resume", str(tmp_path / "broken")]) == USAGE_ERROR
    (header, tensors), (other_header, other_tensors) = (
        everything_but_time(tmp_path / name) for name in ("whole", "broken")
    )
    assert header == other_header
    assert header["counters"]["num_snapshots"] >= (0 if "--lookahead" in more else 3)
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        torch.testing.assert_close(tensor, other_tensors[name], atol=0, rtol=0, msg=name)
    check_same_policy(tmp_path / "whole", tmp_path / "broken")


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
        assert train.main([*SHORT, "--run-dir", str(run_dir)]) == USAGE_ERROR
    assert "No space left on device" in capsys.readouterr().err
    header, _ = everything_but_time(run_dir)
    assert header["counters"]["num_timesteps"] < 2000
    checkpoint.load(run_dir / "checkpoint.safetensors", run.build(train.parse(SHORT)))


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


def change_header(path: Path, place: tuple[str, ...], value: Any) -> None:
    """Let a checkpoint say something else at a place of its header; LEAVE_OUT: nothing."""
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["threeup_checkpoint"])
    inner = header
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    if value is LEAVE_OUT:
        del inner[place[-1]]
    save_file(load_file(path), path, {"threeup_checkpoint": json.dumps(header)})


LEAVE_OUT = object()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("pool",), "x", "expected pool, a list, each an integer from 1"),
        (("pool",), [4], "expected a training state; got 'pool.0.3.weights'"),
        (("counters",), LEAVE_OUT, "expected counters, an object; got none"),
        (("counters", "num_timesteps"), "9", "counters: expected num_timesteps, an integer from 0"),
        (("counters", "num_snapshots"), LEAVE_OUT, "counters: expected num_snapshots, an integer"),
        (("tally",), 3, "expected tally, an object, each of it a finite number; got 3"),
        (("tally",), {"games": "many"}, "expected tally, an object, each of it a finite"),
        (("rng",), {}, "expected a training state; got "),
        (("rng", "state", "inc"), -1, "expected a training state; got "),
        (("facts",), [], "expected facts, an object; got []"),
        (("facts", "seconds"), "1", "expected seconds, a finite number of at least 0; got '1'"),
        (("facts", "due"), {}, "expected due, an object with checkpoint, ladder, snapshot; got {}"),
        (("facts", "measurements"), [{}], "expected measurements, a list, each an object with"),
        (("facts", "started_from"), "ppo", "expected started_from, null or an object; got 'ppo'"),
    ],
)
def test_a_checkpoint_that_was_edited_is_refused_by_name(
    place: tuple[str, ...],
    value: Any,
    message: str,
    short_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(short_run, tmp_path / "run")
    path = tmp_path / "run" / "checkpoint.safetensors"
    change_header(path, place, value)
    assert train.main(["--resume", str(tmp_path / "run"), "--decisions", "2000"]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert message in error


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("torch_rng", None),
        ("torch_rng", torch.zeros(3)),
        ("optimizer.x.step", torch.zeros(1)),
        ("optimizer.0.exp_avg", None),
        ("policy.actor.0.bias", torch.full((16,), torch.nan)),
        ("policy.actor.0.bias", torch.zeros(16, dtype=torch.bfloat16)),
        ("carried.actions", None),
        ("states", torch.zeros(32, STATE_DTYPE.itemsize, dtype=torch.uint8)),
    ],
)
def test_a_checkpoint_with_other_tensors_is_refused_by_name(
    name: str, value: torch.Tensor | None, short_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    with safe_open(short_run / "checkpoint.safetensors", framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(short_run / "checkpoint.safetensors")
    tensors.pop(name, None)
    save_file(tensors | ({} if value is None else {name: value}), path, metadata)
    with pytest.raises(ValueError, match=r"checkpoint '.*checkpoint.safetensors': expected"):
        checkpoint.load(path, run.build(train.parse(SHORT)))


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of a few updates."""
    folder = tmp_path_factory.mktemp("short") / "run"
    assert train.main([*SHORT, "--decisions", "1000", "--run-dir", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_players": 3}, r"checkpoint '.*': expected policy\..* of shape"),
        ({"hidden": (16, 16, 16)}, r"checkpoint '.*': expected policy\..* of shape"),
        ({"num_games": 17}, r"checkpoint '.*': expected states of shape \(17, .*got \(16, "),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, learner(), {})
    with pytest.raises(ValueError, match=message):
        checkpoint.load(path, learner(**settings))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "expected the settings of a run under 'config'; got None"),
        ('{"config": 3}', "expected the settings of a run under 'config'; got 3"),
        ('{"config": {"seed": 1, "lr": 2}}', "expected settings of a training run; got lr too"),
        ('{"config": {"seed": null}}', "expected seed like 0; got None"),
        ('{"config": {"seed": true}}', "expected seed like 0; got True"),
        ('{"config": {"hidden": ["a"]}}', "expected hidden like (128, 128); got ['a']"),
        ('{"config": {"opponents": [1]}}', "expected opponents like (); got [1]"),
        ("[" * 100_000, "expected a JSON file; too many brackets in each other"),
        ('{"config": {"hidden": 5}}', "expected hidden like (128, 128); got 5"),
        ('{"config": {"ladder": "greedy"}}', "expected ladder like ('greedy',); got 'greedy'"),
        ('{"config": {"se', "expected a JSON file; Unterminated string"),
        ("[]", "expected a JSON object; got list"),
    ],
)
def test_what_is_no_config_is_refused_by_name(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(text)
    assert train.main(["--resume", str(tmp_path)]) == USAGE_ERROR
    assert f"threeup train: {tmp_path / 'config.json'}: {message}" in capsys.readouterr().err


def test_a_run_stopped_before_its_first_checkpoint_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(watch: Watch) -> None:
        raise KeyboardInterrupt

    command = [*SHORT, "--run-dir", str(tmp_path / "run")]
    with monkeypatch.context() as context:
        context.setattr(Watch, "_save", stop)
        assert train.main(command) == train.INTERRUPTED
    assert capsys.readouterr().err.endswith("threeup train: interrupted before the run began\n")
    with monkeypatch.context() as context:
        context.setattr(Watch, "_measure", stop)
        assert train.main(command) == train.INTERRUPTED
    said = capsys.readouterr().err
    assert f"interrupted; --resume {tmp_path / 'run'} goes on from decision 1," in said
    assert train.main(["--resume", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"policy: {tmp_path / 'run' / 'policy.safetensors'}, its course: ")
    assert told.endswith(f"threeup evaluate --agents greedy {tmp_path / 'run'}\n")


def test_a_run_of_an_earlier_version_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_without(path: Path, model: SelfPlayPPO, facts: dict[str, Any]) -> None:
        save(path, model, {k: v for k, v in facts.items() if k != "started_from"})

    save = checkpoint.save
    monkeypatch.setattr(checkpoint, "save", save_without)
    assert train.main([*SHORT, "--decisions", "1000", "--run-dir", str(tmp_path)]) == 0
    facts = json.loads((tmp_path / "config.json").read_text())
    for name in ("levels", "lookahead", "start_from"):
        del facts["config"][name]
    (tmp_path / "config.json").write_text(json.dumps(facts))
    assert train.main(["--resume", str(tmp_path), "--decisions", "2000"]) == 0


def test_a_run_goes_on_without_the_policy_that_it_started_from(tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    learner().export((2,), made_by="hand").save(start)
    command = [*SHORT, "--decisions", "1000", "--run-dir", str(tmp_path / "run")]
    assert train.main([*command, "--start-from", str(start)]) == 0
    start.unlink()
    assert train.main(["--resume", str(tmp_path / "run"), "--decisions", "2000"]) == 0
    training = ppo.read(tmp_path / "run" / "policy.safetensors").training
    assert training["started_from"] == {"made_by": "hand"}
    assert training["decisions"] >= 2000


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
        (
            ["--num-games", "32", "--rollout-steps", "16", "--minibatch", "513"],
            "minibatch: expected at most the 512 decisions of a rollout, num_games 32 times "
            "rollout_steps 16; got 513",
        ),
        (["--learning-rate", "inf"], "learning_rate: expected a finite number; got inf"),
        (["--minibatch", "1"], "minibatch: expected at least 2; got 1"),
        (["--entropy", "nan"], "entropy: expected at least 0; got nan"),
        (["--clip", "0"], "clip: expected more than 0; got 0.0"),
        (["--gamma", "1.5"], "gamma: expected 0 to 1; got 1.5"),
        (["--gae-lambda", "-1"], "gae_lambda: expected 0 to 1; got -1.0"),
        (["--levels", "-1"], "levels: expected at least 0; got -1"),
        (["--lookahead", "--hidden", "9"], "lookahead: expected two hidden sizes; got (9,)"),
        (["--lookahead", "--levels", "2"], "lookahead: expected no levels; got 2"),
        (["--lookahead", "--start-from", "x"], "lookahead: expected no start_from; got 'x'"),
        (["--lookahead", "--snapshot-every", "9"], "lookahead: expected no snapshot_every; got 9"),
        (
            ["--lookahead", "--teacher", "careful", "--teacher-decisions", "9"],
            "lookahead: expected no teacher; got 'careful'",
        ),
        (["--resume", "nowhere"], "resume: expected a run folder"),
        (["--resume", "nowhere", "--seed", "3"], "resume: expected no other option"),
        (["--resume", "nowhere", "--decisions", "9"], "resume: expected a run folder"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(options) == USAGE_ERROR
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings",
    [
        {"one_seat": True, "opponents": ("random",)},
        {"one_seat": True, "snapshot_every": 9},
        {"opponent_share": 0.5, "snapshot_every": 9},
        {"opponent_share": 0.5, "opponents": ("random",)},
        {"num_players": 6, "variant": "listed"},
        {"lookahead": True},
        {"lookahead": True, "opponents": ("random",), "opponent_share": 1.0},
    ],
)
def test_settings_that_work_are_not_refused(settings: dict[str, Any]) -> None:
    check(Config(**settings))


@pytest.mark.parametrize("option", ["--ladder", "--opponents"])
def test_a_policy_for_another_table_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.safetensors"
    learner(3).export((3,)).save(path)
    assert train.main([option, str(path), "--one-seat"]) == USAGE_ERROR
    assert f"threeup train: agent '{path}': " in capsys.readouterr().err


def test_an_agent_that_breaks_a_rule_ends_training_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: Any) -> None:
        raise AgentError("greedy", "expected 'draw'; got 'flip'", 0)

    monkeypatch.setattr(run, "run", fail)
    assert train.main([]) == USAGE_ERROR
    assert capsys.readouterr().err == "threeup train: agent 'greedy': expected 'draw'; got 'flip'\n"


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
    assert done.returncode == USAGE_ERROR
    assert done.stderr == f"train.py: training needs {missing}: pip install 'threeup[train]'\n"


def test_presets_give_values_that_options_override() -> None:
    full = train.parse(["--preset", "full", "--seed", "5"])
    assert full == replace(PRESETS["full"], seed=5)
    assert train.parse([]) == PRESETS["quick"]


def test_a_run_never_overwrites_another(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert train.main(["--run-dir", str(tmp_path)]) == USAGE_ERROR


def test_a_fall_in_strength_is_noticed() -> None:
    def measurement(decisions: int, share: float) -> Measurement:
        return Measurement(decisions, 0.0, "greedy", "best", share, share - 0.02, share + 0.02, 0.0)

    earlier = [measurement(1, 0.3), measurement(2, 0.5)]
    assert ladder.regressions(earlier, [measurement(3, 0.47)]) == []
    assert ladder.regressions(earlier, [measurement(3, 0.45)])[0].startswith(
        "weaker than at 2 decisions: "
    )


def test_a_fall_in_strength_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(*given: Any, decisions: int, **more: Any) -> list[Measurement]:
        share = 0.6 if decisions < 3500 else 0.4
        return [
            Measurement(decisions, 0.0, "greedy", "best", share, share - 0.02, share + 0.02, 0.0)
        ]

    monkeypatch.setattr(ladder, "measure", measure)
    assert train.main([*SHORT, "--run-dir", str(tmp_path / "run")]) == 0
    assert "weaker than at 3," in capsys.readouterr().err


def test_decisions_a_second_are_those_of_the_time_that_they_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(own: Logger, key: str, value: Any, *more: Any, **given: Any) -> None:
        record(own, key, value, *more, **given)
        if key == "time/decisions_per_second":
            speeds.append(value)

    record, seconds = Logger.record, itertools.count()
    speeds: list[float] = []
    monkeypatch.setattr(Logger, "record", note)
    monkeypatch.setattr(watch, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    options = ["--num-games", "32", "--rollout-steps", "16", "--minibatch", "512"]
    options += ["--decisions", "2048"]
    assert train.main([*options, "--ladder-deals", "2", "--run-dir", str(tmp_path / "run")]) == 0
    # The clock is read twice between two updates: they are a second apart.
    assert speeds == [32 * 16] * 4


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
