"""What every test shares."""

import os
from collections.abc import Generator, Iterator
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


ALLOWED = ("platform: ", "Skipping benchmark ")


def strict(report: Any) -> Any:
    """In CI a test that isn't run has failed, but for what the platform doesn't have.

    Elsewhere whoever lacks an extra may run the rest.
    """
    if os.environ.get("THREEUP_SKIPS") == "platform" and report.skipped:
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if not hasattr(report, "wasxfail") and not reason.startswith(ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"skipped, which only the platform excuses here: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Judge the skips of tests."""
    return strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Judge the skips of whole modules."""
    return strict((yield))


if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    np.seterr(over="ignore")  # splitmix64 wraps around, which only uncompiled numpy remarks on
