"""Ctrl-C and SIGTERM: a run that is asked to stop keeps what it has learnt."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from tests.training.test_checkpoint import SHORT, check_same_policy, everything_but_time
from threeup_agents import evaluation
from threeup_agents.commands import USAGE_ERROR
from threeup_agents.files import hold
from threeup_agents.players import policy as ppo
from threeup_agents.search import positional
from threeup_agents.training import __main__ as train
from threeup_agents.training import checkpoint
from threeup_agents.training.callback import Watch
from threeup_agents.training.interruption import StopRequest

ROOT = Path(__file__).parents[2]
EXIT_CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture(autouse=True)
def usual_handlers() -> Iterator[None]:
    """Python's own, also where the tests run in the background."""
    before = {number: signal.getsignal(number) for number, _ in EXIT_CODES}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupt(context: pytest.MonkeyPatch, number: int, times: int = 1, after: int = 1000) -> None:
    """Let a signal come in the rollout in which a run passes so many decisions."""

    def end(watch: Watch) -> None:
        rollout_end(watch)
        if watch.model.num_timesteps > after and not sent:
            sent.append(number)
            for _ in range(times):
                signal.raise_signal(number)

    sent: list[int] = []
    rollout_end = Watch._on_rollout_end
    context.setattr(Watch, "_on_rollout_end", end)


@pytest.mark.parametrize(
    ("number", "code", "more"),
    [(*EXIT_CODES[0], ()), (*EXIT_CODES[1], ("--lookahead", "--snapshot-every", "0"))],
)
def test_a_run_that_is_asked_to_stop_can_be_evaluated_and_goes_on_as_if_it_never_had(
    number: int,
    code: int,
    more: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert train.main([*SHORT, *more, "--run-dir", str(tmp_path / "whole")]) == 0
    run = tmp_path / "broken"
    with monkeypatch.context() as context:
        interrupt(context, number)
        assert train.main([*SHORT, *more, "--run-dir", str(run)]) == code
    stopped_at = checkpoint.decisions(run / "checkpoint.safetensors")
    assert 1000 < stopped_at < 1600  # within the rollout
    assert capsys.readouterr().err.endswith(
        f"threeup train: interrupted; --resume {run} goes on from decision {stopped_at:,}\n"
    )
    reads = positional.read if "--lookahead" in more else ppo.read
    assert reads(run / "policy.safetensors").training["decisions"] == stopped_at
    assert evaluation.main(["--agents", "random", str(run), "--deals", "2"]) == 0

    assert train.main(["--resume", str(run)]) == 0
    (header, tensors), (other_header, other_tensors) = (
        everything_but_time(tmp_path / name) for name in ("whole", "broken")
    )
    assert header == other_header
    for name, tensor in tensors.items():
        torch.testing.assert_close(tensor, other_tensors[name], atol=0, rtol=0, msg=name)
    check_same_policy(tmp_path / "whole", run)


@pytest.mark.parametrize(("number", "code"), EXIT_CODES)
def test_a_second_signal_ends_a_run_at_once(
    number: int,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt(monkeypatch, number, times=2)
    assert train.main([*SHORT, "--run-dir", str(tmp_path)]) == code
    said = capsys.readouterr().err
    assert "stopping after this update" in said
    assert f"interrupted; --resume {tmp_path} goes on from decision 0\n" in said


def test_a_run_that_is_asked_to_stop_in_its_last_rollout_ends_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, signal.SIGINT, after=3999)
    assert train.main([*SHORT, "--run-dir", str(tmp_path)]) == 0


def test_signals_are_heard_only_while_asked_for() -> None:
    heard: list[str] = []
    with StopRequest(heard.append) as request:
        signal.raise_signal(signal.SIGTERM)
        assert request.number == signal.SIGTERM and len(heard) == 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_was_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with StopRequest(pytest.fail) as request:
        signal.raise_signal(signal.SIGINT)
    assert request.number is None


def test_a_run_beside_the_main_thread_hears_no_signals() -> None:
    def enter() -> None:
        with StopRequest(pytest.fail):
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    with ThreadPoolExecutor(1) as pool:
        pool.submit(enter).result()


def test_two_runs_do_not_train_in_one_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*SHORT, "--decisions", "1000", "--run-dir", str(tmp_path)]
    with hold(tmp_path):
        assert train.main(command) == USAGE_ERROR
    holder = f"{tmp_path}: expected a folder that no other run works in; process {os.getpid()} on "
    assert holder in capsys.readouterr().err
    assert train.main(command) == 0
    with hold(tmp_path):
        assert train.main(["--resume", str(tmp_path), "--decisions", "2000"]) == USAGE_ERROR
    assert holder in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_that_is_asked_to_stop_goes_on(tmp_path: Path) -> None:
    long = [*SHORT, "--decisions", "200000", "--run-dir", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "train.py", *long], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "policy.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    assert "goes on from decision" in process.communicate()[1]
    assert process.returncode == 143
    decisions = checkpoint.decisions(tmp_path / "checkpoint.safetensors")
    assert ppo.read(tmp_path / "policy.safetensors").training["decisions"] == decisions
    assert decisions < 200_000
