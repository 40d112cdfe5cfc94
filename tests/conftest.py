"""What every test shares."""

import os

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("threeup", deadline=None)  # the first example compiles
settings.load_profile("threeup")

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame's windows need no display


@pytest.fixture(autouse=True)
def frames_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody watches."""
    monkeypatch.setattr("threeup_env.view.screen.FRAMES_PER_SECOND", 0)


if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    np.seterr(over="ignore")  # splitmix64 wraps around, which only uncompiled numpy remarks on
