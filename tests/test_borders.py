"""Hostile inputs at every border: a clear error that says what was expected, or a sound result."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import threeup_agents
import threeup_env
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.match import Match
from threeup_agents.arena.run_folder import Folder
from threeup_agents.competition import check
from threeup_agents.evaluation import Config, main
from threeup_agents.replay.from_run import replay
from threeup_agents.replay.recording import Recording
from threeup_agents.search import positional, value
from threeup_agents.specs import SPECS
from threeup_env.engine.actions import IllegalActionError
from threeup_env.envs.gym_env import ThreeUpEnv
from threeup_env.envs.vector_env import ThreeUpVectorEnv

EXAMPLES: Final = 150
# The same examples in every run: whoever hunts for others raises EXAMPLES and takes this out.
few = settings(max_examples=EXAMPLES, deadline=None, derandomize=True)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from([2**31, 2**63, 2**64, -(2**63) - 1])
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=8)
    | st.binary(max_size=4)
)
things = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
json_things = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def damaged(data: st.DataObject, whole: bytes) -> bytes:
    """A file with some bytes changed, cut off, put in twice or left out."""
    raw = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        # Headers are short: half of the damage is done in the first 2,000 bytes.
        end = data.draw(st.sampled_from([min(2000, len(raw)), len(raw)]))
        place = data.draw(st.integers(0, max(0, end - 1)))
        kind = data.draw(st.sampled_from(["change", "cut", "repeat", "leave out", "put in"]))
        if kind == "change":
            raw[place : place + 1] = data.draw(st.binary(min_size=1, max_size=1))
        elif kind == "cut":
            del raw[place:]
        elif kind == "repeat":
            raw[place:place] = raw[place : place + 20]
        elif kind == "leave out":
            del raw[place : place + 5]
        else:
            raw[place:place] = data.draw(st.binary(max_size=8))
    return bytes(raw)


def changed(data: st.DataObject, facts: Any) -> Any:
    """JSON with one value in it, at any depth, replaced, left out or doubled."""
    keys: list[Any] = list(facts) if isinstance(facts, dict) else list(range(len(facts)))
    if not keys:
        return data.draw(json_things)
    key = data.draw(st.sampled_from(keys))
    facts = facts.copy()
    inner = facts[key]
    if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
        facts[key] = changed(data, inner)
    elif data.draw(st.booleans()):
        del facts[key]
    else:
        facts[key] = data.draw(json_things)
    return facts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder, with a recording of one of its games in it."""
    out = tmp_path_factory.mktemp("run")
    quiet = ["--agents", "random", "greedy", "--variant", "mini", "--deals", "4"]
    assert main([*quiet, "--out", str(out / "run")]) == 0
    decks = draw_deals(1, 2, "mini")
    games = Recording(tuple(decks[0].tolist()), ("a", "b"), (), "mini", 1000, ())
    games.save(out / "game.json")
    return out


def refused_by_name(path: Path, reads: Callable[[Path], object], whole: bytes) -> None:
    """Reading gives something, or an error that names the file or one of its folder."""
    path.write_bytes(whole)
    try:
        reads(path)
    except ValueError as error:
        assert path.name in str(error) or path.parent.name in str(error), error


@given(data=st.data())
@few
@pytest.mark.parametrize(
    ("source", "reads"),
    [
        (positional.shipped_file(2), positional.read),
        (value.shipped_file(2), lambda path: value.read(path, 2)),
    ],
    ids=["policy", "value network"],
)
def test_a_damaged_network_is_read_or_refused_by_name(
    source: Path, reads: Callable[[Path], Any], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as place:
        whole = damaged(data, source.read_bytes())
        refused_by_name(Path(place) / "x.safetensors", reads, whole)


@given(data=st.data())
@few
def test_a_damaged_block_of_games_is_refused_by_name(folder: Path, data: st.DataObject) -> None:
    whole = next((folder / "run" / "games").iterdir()).read_bytes()
    with tempfile.TemporaryDirectory() as place:
        refused_by_name(Path(place) / "block.npz", Match.load, damaged(data, whole))


@given(data=st.data())
@few
def test_a_damaged_recording_is_read_or_refused_by_name(folder: Path, data: st.DataObject) -> None:
    whole = (folder / "game.json").read_bytes()
    text = json.dumps(changed(data, json.loads(whole))).encode()
    if data.draw(st.booleans()):
        text = damaged(data, whole)
    with tempfile.TemporaryDirectory() as place:
        refused_by_name(Path(place) / "game.json", Recording.load, text)


@given(data=st.data())
@few
@pytest.mark.parametrize("name", ["results.json", "run.json"])
def test_edited_facts_of_a_run_are_read_or_refused_by_name(
    folder: Path, name: str, data: st.DataObject
) -> None:
    kept = folder / "run" / name
    whole = kept.read_bytes()
    facts = json.loads(whole)

    def reads(path: Path) -> None:
        if name == "run.json":
            Folder(path.parent, facts)
        else:
            list(replay(path.parent, 0))

    try:
        refused_by_name(kept, reads, json.dumps(changed(data, facts)).encode())
    finally:
        kept.write_bytes(whole)


words = st.text(max_size=12) | st.sampled_from([*SPECS, "/", "..", "policy:", "search:", "\0"])


@given(spec=st.lists(words, max_size=3).map("".join) | scalars)
@few
def test_any_name_makes_an_agent_or_is_refused(spec: Any) -> None:
    try:
        agent = threeup_agents.make(spec)
    except ValueError as error:
        assert str(error).startswith("agent")
    else:
        assert callable(agent.act)


def or_refused(make: Callable[[], Any]) -> Any:
    """What it makes, or None after an error that says what was expected."""
    try:
        return make()
    except (ValueError, TypeError) as error:  # TypeError: no integer, an opponent without act
        assert "expected" in str(error), error
        return None


TABLE: Final = ("num_players", "variant", "max_steps")
LEARNER: Final = (
    *("opponents", "seat", "skip_forced", "illegal_action"),
    *("dict_observation", "cut_off", "history"),
)
NAMES: Final[dict[Any, tuple[str, ...]]] = {
    threeup_env.raw_env: (*TABLE, "render_mode", "cut_off"),
    ThreeUpEnv: (*TABLE, *LEARNER, "render_mode"),
    ThreeUpVectorEnv: (*TABLE, *LEARNER, "autoreset_mode"),
    threeup_env.Batch: (*TABLE, "seed", "autoreset", "num_threads", "history"),
}


@given(data=st.data())
@few
@pytest.mark.parametrize("face", NAMES, ids=lambda face: face.__name__)
def test_any_argument_makes_an_environment_or_is_refused(face: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES[face]))
    given = {name: data.draw(things)}
    first = (1,) if face is threeup_env.Batch else ()
    made = or_refused(lambda: face(*first, **given))
    if made is not None:
        made.reset()


@pytest.mark.filterwarnings("ignore:reset options. expected")
@given(action=things, seed=things, options=things)
@few
def test_any_call_of_an_environment_is_answered_or_refused(
    action: Any, seed: Any, options: Any
) -> None:
    env = ThreeUpEnv(variant="mini")
    table = threeup_env.raw_env(variant="mini")
    for each in (env, table):
        each.reset(seed=1)
        for call in (
            lambda each=each: each.step(action),
            lambda each=each: each.reset(seed=seed),
            lambda each=each: each.reset(seed=1, options=options),
        ):
            or_refused(call)


@given(data=st.data())
@few
def test_any_array_given_to_a_batch_is_used_or_refused(data: st.DataObject) -> None:
    batch = threeup_env.Batch(2, variant="mini")
    batch.reset()
    arrays = things | st.lists(st.integers(-2, 95), min_size=2, max_size=2)
    kind = data.draw(st.sampled_from([np.int8, np.int64, np.uint64, np.float32, np.bool_, None]))
    given: Any = data.draw(arrays)
    if kind is not None and isinstance(given, list):
        given = or_refused(lambda: np.array(given, kind)) if _is_flat(given) else given
    before = batch.states.copy()

    def deal(decks: Any) -> None:
        batch.reset(decks=decks)

    for call in (batch.step, batch.observe, batch.load, deal):
        try:
            call(given)
        except (ValueError, IllegalActionError):
            assert (batch.states == before).all()
        before = batch.states.copy()


def _is_flat(values: list[Any]) -> bool:
    return all(type(each) is int and 0 <= each < 100 for each in values)


SETTINGS: Final = ["agents", "num_players", "deals", "variant", "max_steps", "seed", "workers"]


@given(name=st.sampled_from([*SETTINGS, "half_width", "seconds_per_decision"]), given=things)
@few
def test_any_setting_of_a_round_robin_is_used_or_refused(name: str, given: Any) -> None:
    or_refused(lambda: check(Config(**{name: given})))
