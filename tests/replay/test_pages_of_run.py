from pathlib import Path

import pytest

import threeup_agents
from threeup_agents.replay import pages_of_run


def test_pages_may_take_a_tenth_of_what_the_run_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    threeup_agents.round_robin(["random", "greedy"], deals=20, out=folder)
    monkeypatch.setattr(pages_of_run, "MOST_SECONDS", 0.0)
    assert pages_of_run.write_pages(folder, [0, 3], seconds=0.0) == set()
    assert not list((folder / "replays").iterdir())
    assert pages_of_run.write_pages(folder, [0, 3], seconds=600.0) == {0, 3}
    assert {path.name for path in (folder / "replays").iterdir()} == {"0.html", "3.html"}
