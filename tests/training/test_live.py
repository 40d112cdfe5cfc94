from typing import Any

import pytest
import torch

from threeup_agents.training import run
from threeup_agents.training.live import LiveCurves
from threeup_agents.training.settings import Config

torch.set_num_threads(1)  # these networks are too small for more


class Screen:
    """Counts how often it is drawn anew."""

    def __init__(self) -> None:
        self.updates = 0

    def update(self, shown: Any) -> None:
        """Draw it."""
        self.updates += 1
        assert shown._repr_svg_().startswith("<svg")


def test_curves_are_drawn_while_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("IPython.display.display", lambda shown, display_id: screen)
    config = Config(num_games=16, rollout_steps=40, minibatch=256, hidden=(32, 32))
    curves = LiveCurves(["random"], every=700, deals=5)
    run.build(config).learn(1900, callback=curves)
    decisions = [measurement.decisions for measurement in curves.measurements]
    assert decisions[0] == 0
    assert len(decisions) == 3
    assert decisions == sorted(set(decisions))
    assert screen.updates == len(curves.measurements) + 3  # and after each rollout of 640
    assert "against random" in curves._repr_svg_()
