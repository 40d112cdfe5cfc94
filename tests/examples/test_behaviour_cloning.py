from pathlib import Path

import pytest

import threeup_agents
from tests.examples.witness import Note, learning_from

pytestmark = [pytest.mark.slow, pytest.mark.part]


def test_a_clone_is_as_strong_as_its_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Note
) -> None:
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    from examples import behaviour_cloning, minari_dataset

    minari_dataset.main(minari_dataset.Config())
    file = str(tmp_path / "behaviour_cloning.pt")
    with learning_from("3,000 games of `careful`", record_property):
        clone = behaviour_cloning.train(behaviour_cloning.Config(file=file))
    run = threeup_agents.round_robin(
        [("clone", clone), "careful", "greedy", "random"], deals=2000, mixed=False
    )
    share = {(row["agent"], row["against"]): row["win_share"] for row in run.results["pairings"]}
    for pair in (("clone", "greedy"), ("careful", "greedy"), ("clone", "careful")):
        record_property("{} against {}".format(*pair), f"{share[pair]:.3f}")
    assert abs(share["clone", "greedy"] - share["careful", "greedy"]) < 0.03
    assert abs(share["clone", "careful"] - 0.5) < 0.03
    assert share["clone", "random"] > 0.8
    again, first = (
        net.state_dict()["layers.0.bias"] for net in (clone, behaviour_cloning.load(file))
    )
    assert again.tolist() == first.tolist()
