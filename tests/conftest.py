"""What every test shares."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tests import chromium

settings.register_profile("threeup", deadline=None)  # the first example compiles
settings.load_profile("threeup")

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame's windows need no display


@pytest.fixture(autouse=True)
def frames_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody watches."""
    monkeypatch.setattr("threeup_env.view.screen.FRAMES_PER_SECOND", 0)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A headless Chromium."""
    driver = chromium.start(tmp_path / "profile")
    yield driver
    driver.quit()


if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    np.seterr(over="ignore")  # splitmix64 wraps around, which only uncompiled numpy remarks on
