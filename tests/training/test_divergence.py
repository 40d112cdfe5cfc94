"""Training that leaves the finite numbers: it stops by name, and what was good stays."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.test_checkpoint import SHORT
from tests.training.test_training import collect, learner, train_once
from threeup_agents.commands import USAGE_ERROR
from threeup_agents.players import policy as ppo
from threeup_agents.search import positional
from threeup_agents.training import __main__ as train
from threeup_agents.training import checkpoint
from threeup_agents.training.callback import Watch
from threeup_agents.training.selfplay import DivergedError

LOOKAHEAD = ("--lookahead", "--snapshot-every", "0")
TAUGHT = ("--teacher", "careful", "--teacher-decisions", "3000")


@pytest.mark.parametrize("more", [(), TAUGHT, LOOKAHEAD], ids=["ppo", "taught", "lookahead"])
def test_a_run_that_diverges_stops_by_name_and_keeps_what_was_good(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*SHORT, *more, "--learning-rate", "1e30", "--checkpoint-every", "1"]
    assert train.main([*options, "--run-dir", str(tmp_path)]) == USAGE_ERROR
    said = " ".join(capsys.readouterr().err.split())
    decisions = checkpoint.decisions(tmp_path / "checkpoint.safetensors")
    assert "threeup train: training diverged at " in said
    assert "decisions: expected finite numbers in " in said
    assert f"; --resume {tmp_path} goes on from {decisions:,} decisions" in said
    _, tensors = checkpoint._read(tmp_path / "checkpoint.safetensors")
    numbers = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
    assert all(torch.isfinite(tensor).all() for tensor in numbers)
    if (tmp_path / "policy.safetensors").exists():
        (positional.read if more == LOOKAHEAD else ppo.read)(tmp_path / "policy.safetensors")


def test_a_run_that_diverges_late_goes_on_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(watch: Watch) -> None:
        rollout_end(watch)
        if watch.model.num_timesteps > 3500:
            with torch.no_grad():
                watch.model.policy.actor[0].weight[0, 0] = math.nan  # type: ignore[operator]

    rollout_end = Watch._on_rollout_end
    with monkeypatch.context() as context:
        context.setattr(Watch, "_on_rollout_end", spoil)
        assert train.main([*SHORT, "--run-dir", str(tmp_path)]) == USAGE_ERROR
    decisions = checkpoint.decisions(tmp_path / "checkpoint.safetensors")
    assert 3000 <= decisions < 3500
    assert f"goes on from {decisions:,} decisions" in capsys.readouterr().err
    assert ppo.read(tmp_path / "policy.safetensors").training["decisions"] < 3500
    assert train.main(["--resume", str(tmp_path)]) == 0


@pytest.mark.parametrize("part", ["actor", "critic", "scorer"])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_network_with_a_number_that_is_none_does_not_train(part: str, number: float) -> None:
    model = learner(lookahead=part == "scorer")
    train_once(model)
    collect(model)
    with torch.no_grad():
        getattr(model.policy, part)[0].bias[0] = number
    with pytest.raises(DivergedError, match=r"diverged at [0-9,]+ decisions: expected finite num"):
        model.train()


@pytest.mark.parametrize("part", ["actor", "critic"])
def test_a_network_with_a_number_that_is_none_does_not_play(part: str) -> None:
    model = learner()
    with torch.no_grad():
        getattr(model.policy, part)[-1].bias[0] = math.nan
    with pytest.raises(DivergedError, match=f"expected finite numbers in the {part}'s"):
        collect(model)


def test_a_checkpoint_that_has_diverged_is_not_written(tmp_path: Path) -> None:
    model = learner()
    train_once(model)
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, model, {})
    before = path.read_bytes()
    state = next(iter(model.policy.optimizer.state.values()))
    state["exp_avg"][0] = np.inf
    with pytest.raises(ValueError, match=r"checkpoint '.*': expected finite numbers in optimizer"):
        checkpoint.save(path, model, {})
    assert path.read_bytes() == before
