import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import threeup_agents
from tests.view.test_picture import faces
from threeup_agents.players.policy import Policy, PolicyPlayer
from threeup_agents.replay import __main__ as command
from threeup_agents.replay.from_run import recording_of
from threeup_agents.replay.judge import judge
from threeup_agents.replay.page import page
from threeup_agents.replay.recording import FORMAT, Recording, deck_of, record
from threeup_env import ACTION_NAMES, Batch, action_id, env, raw_env
from threeup_env.engine.cards import sorted_deck
from threeup_env.engine.observation import observation_size
from threeup_env.view.picture import draw
from threeup_env.view.table import OPEN, SPECTATOR, Viewer, look

SEVEN = 6


def random_game(
    num_players: int, seed: int, variant: str = "standard", steps: int = 1000
) -> Recording:
    """A game of random moves, of `steps` actions at most."""
    game = raw_env(num_players, variant, max_steps=400)
    game.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        legal = np.flatnonzero(game.last()[0]["action_mask"])
        if not len(legal):
            break
        game.step(int(rng.choice(legal)))
    return Recording.from_env(game, ["random"] * num_players)


def final_states(recording: Recording) -> Any:
    *_, (batch, _) = recording.play()
    return batch.states[0]


def test_agents_are_recorded_at_play() -> None:
    line_up: list[str | threeup_agents.Agent] = ["greedy", threeup_agents.make("careful"), "random"]
    recording = record(line_up, seed=6)
    assert recording == record(line_up, seed=6)
    assert recording.agents == ("greedy", "careful", "random")
    assert recording.deck != record(line_up, seed=7).deck
    assert final_states(recording)["winner"] >= 0
    greedy = threeup_agents.make("greedy")
    for (batch, _), action in zip(recording.play(), recording.actions, strict=False):
        if batch.seats[0] == 0:
            assert greedy.act(batch.observations, batch.action_masks)[0] == action


def test_an_agent_that_marks_every_action_as_legal_is_not_recorded() -> None:
    class Cheat:
        name = "cheat"

        def act(self, observations: Any, action_masks: Any) -> Any:
            illegal = action_masks.argmin(axis=1)
            action_masks[:] = True
            return illegal

    with pytest.raises(ValueError, match="game 0, seat 0: expected one of"):
        record([Cheat(), "greedy"])


def test_a_recorded_game_may_be_cut_off() -> None:
    recording = record(["random", "random"], variant="mini", max_steps=5)
    assert (len(recording.actions), recording.max_steps, recording.variant) == (5, 5, "mini")


@pytest.mark.parametrize(
    ("num_players", "variant"), [(2, "standard"), (6, "standard"), (3, "listed"), (2, "mini")]
)
def test_a_game_is_played_again_exactly(num_players: int, variant: str, tmp_path: Path) -> None:
    game = env(num_players, variant, max_steps=300)
    game.reset(seed=8)
    for _ in game.agent_iter():
        _, _, terminated, truncated, info = game.last()
        over = terminated or truncated
        game.step(None if over else int(info["action_mask"].argmax()))
    recording = Recording.from_env(game)
    assert recording.agents == tuple(f"player_{seat}" for seat in range(num_players))
    recording.save(tmp_path / "game.json")
    again = Recording.load(tmp_path / "game.json")
    assert again == recording
    assert (tmp_path / "game.json").stat().st_size < 4000
    expected, found = game.unwrapped._batch.states[0], final_states(again)
    for field in expected.dtype.names:
        if field != "rng":
            assert np.array_equal(expected[field], found[field]), field


def test_an_illegal_action_that_ends_the_game_is_not_part_of_it() -> None:
    game = env(2)
    game.reset(seed=1)
    game.step(int(game.last()[4]["action_mask"].argmax()))
    game.step(action_id("pick up"))
    assert len(Recording.from_env(game).actions) == 1


@pytest.mark.parametrize("variant", ["standard", "mini"])
def test_a_record_tells_a_deck_that_deals_it(variant: str) -> None:
    batch = Batch(1, 2, variant, seed=9, autoreset=False)
    batch.reset()
    again = Batch(1, 2, variant, seed=9, autoreset=False)
    again.reset(decks=[deck_of(batch.states[0])])
    dealt = again.states.copy()
    dealt["rng"] = batch.states["rng"]
    assert dealt[0] == batch.states[0]
    batch.step([int(batch.action_masks[0].argmax())])
    with pytest.raises(ValueError, match="expected one just dealt; got one after 1 actions"):
        deck_of(batch.states[0])


def test_only_a_game_that_has_been_dealt_is_recorded() -> None:
    game = env(2)
    with pytest.raises(ValueError, match=r"call reset\(\)"):
        Recording.from_env(game)
    game.reset(seed=1)
    with pytest.raises(ValueError, match="agents: expected 2 names; got 3"):
        Recording.from_env(game, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"format": "chess"}, f'the file says no "format": "{FORMAT}"'),
        ({"version": 2}, "expected version 1 of threeup-v1; got 2 of threeup-v1"),
        ({"deck": None}, "it says nothing about 'deck'"),
        ({"deck": [1, 2]}, "deck"),
        ({"deck": [0.5]}, "float"),
        ({"actions": [93]}, r"action 1: .*expected one of"),
        ({"actions": [999]}, r"action 1: .*expected one of"),
        ({"agents": ["random"]}, "agents: expected 2; got 1"),
        ({"num_players": 7, "agents": ["x"] * 7}, "num_players: expected 2 to 6"),
        ({"variant": "big"}, "variant: expected one of"),
        ({"max_steps": 10**30}, "max_steps"),
        ({"deck": [10**30]}, "deck"),
        ({"actions": [10**30]}, "action 1: "),
        ({"weights": [{"0": 10**400}] * 5}, "too large"),
        ({"max_steps": 1}, "action 2: expected none, the game has ended"),
        ({"weights": [None]}, "weights: expected 5; got 1"),
        ({"weights": [{"0": -1}] * 5}, "weights: expected a number of an action"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_by_name(
    change: dict[str, Any], error: str, tmp_path: Path
) -> None:
    path = tmp_path / "game.json"
    random_game(2, seed=1, steps=5).save(path)
    facts = json.loads(path.read_text())
    for name, value in change.items():
        facts[name] = value
        if value is None:
            del facts[name]
    path.write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=error) as raised:
        Recording.load(path)
    assert str(raised.value).startswith(f"{path}: expected a recorded game; ")


@pytest.mark.parametrize(
    "words",
    ["", "{", "[1, 2]", "3", '{"format": "threeup recording"}', "\xff", "[" * 100_000],
)
def test_any_other_file_is_refused_by_name(words: str, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_bytes(words.encode("latin1"))
    with pytest.raises(ValueError, match=re.escape(str(path))):
        Recording.load(path)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        random_game(2, seed=1, steps=5).save(tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_game_of_a_run_is_loaded(tmp_path: Path) -> None:
    from threeup_agents import evaluation

    evaluation.run(evaluation.Config(deals=4, out=tmp_path))
    recording = recording_of(tmp_path, 3)
    assert final_states(recording)["winner"] >= 0
    out = tmp_path / "r.html"
    given = [str(tmp_path), "--game", "3", "--worlds", "20", "--out", str(out)]
    assert command.main(given) == 0
    assert out.read_text() == page(recording, judgement=judge(recording, 20)).html


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_players": "2"}, "expected num_players, an integer from 2 to 6; got '2'"),
        ({"num_players": None}, "expected num_players, an integer from 2 to 6; got none"),
        ({"num_players": 3}, "expected line_ups of 3 agents; got "),
        ({"deals_played": 4.5}, "expected deals_played, an integer from 1 to "),
        ({"deals_played": 10**9}, "expected deals_played as the folder games holds; got 10000"),
        ({"line_ups": [["greedy", 3]]}, "expected line_ups, a list of at least 1, each a list"),
        ({"line_ups": None}, "expected line_ups, a list of at least 1, each a list of at least 2"),
        ({"settings": []}, "expected settings, an object with variant, deal_set, seed, max_steps"),
        ({"settings": {"variant": "big"}}, "expected settings, an object with variant"),
        ({"stopping": 3}, "expected stopping, null or an object with looks; got 3"),
    ],
)
def test_results_that_were_edited_are_refused_by_name(
    change: dict[str, Any], message: str, run: Path, tmp_path: Path
) -> None:
    results = json.loads((run / "results.json").read_text()) | change
    kept = {name: value for name, value in results.items() if value is not None}
    (tmp_path / "results.json").write_text(json.dumps({"stopping": None} | kept))
    (tmp_path / "games").symlink_to(run / "games")
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        recording_of(tmp_path, 3)
    assert str(refusal.value).startswith(f"{tmp_path / 'results.json'}: ")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run."""
    from threeup_agents import evaluation

    folder = tmp_path_factory.mktemp("run")
    evaluation.run(evaluation.Config(("random", "greedy"), deals=4, out=folder))
    return folder


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path / "none.json")]) == 2
    random_game(2, seed=1, steps=5).save(tmp_path / "game.json")
    out = str(tmp_path / "page.html")
    assert command.main([str(tmp_path / "game.json"), "--viewers", "all", "--out", out]) == 2
    assert "viewer: expected a seat in 0..1" in capsys.readouterr().err
    assert command.main([str(tmp_path / "game.json"), "--viewers", "1", "--out", out]) == 0


def data_of(written: str) -> Any:
    """What the page's script reads."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', written, re.S)
    assert found
    return json.loads(found[1])


def frame(data: Any, view: int, step: int, form: str = "wide") -> str:
    return "\n".join(data["lines"][line] for line in data["views"][view][form][step])


@pytest.mark.parametrize("num_players", [2, 5])
def test_the_page_shows_the_same_drawings(num_players: int) -> None:
    recording = random_game(num_players, seed=3, steps=30)
    data = data_of(page(recording).html)
    viewers: list[Viewer] = [OPEN, SPECTATOR, *range(num_players)]
    names = [f"seat {viewer}" if isinstance(viewer, int) else viewer for viewer in viewers]
    assert [view["name"] for view in data["views"]] == names
    for step, (batch, last) in enumerate(recording.play()):
        for view, viewer in enumerate(viewers):
            table = look(batch, 0, viewer, last)
            for form in ("wide", "tall"):
                expected = draw(table, recording.agents, tall=form == "tall")
                assert frame(data, view, step, form) == expected


def twin_game(recording: Recording, viewer: int, rng: np.random.Generator) -> Recording:
    """The same actions on another deck, such that the viewer sees the same at each step."""

    def seen(game: Recording) -> list[tuple[bytes, int]]:
        return [(b.observe([viewer])[0].tobytes(), int(b.seats[0])) for b, _ in game.play()]

    expected = seen(recording)
    for _ in range(400):
        deck = list(recording.deck)
        here, there = rng.choice(len(deck), 2, replace=False)
        deck[here], deck[there] = deck[there], deck[here]
        other = Recording(
            tuple(deck), recording.agents, recording.actions, recording.variant, recording.max_steps
        )
        try:
            if deck[here] != deck[there] and seen(other) == expected:
                recording = other
        except ValueError:  # an action that this deck forbids
            continue
    return recording


@pytest.mark.parametrize(("num_players", "steps"), [(2, 1), (2, 14), (3, 25), (6, 22)])
def test_a_page_for_a_seat_is_the_same_for_all_that_it_may_not_know(
    num_players: int, steps: int
) -> None:
    recording = random_game(num_players, seed=num_players, steps=steps)
    rng = np.random.default_rng(1)
    for viewer in (0, num_players - 1):
        other = twin_game(recording, viewer, rng)
        assert other.deck != recording.deck
        assert page(other, [viewer]) == page(recording, [viewer])
        assert page(other, [SPECTATOR]) == page(recording, [SPECTATOR])
        assert page(other, [OPEN]) != page(recording, [OPEN])


@pytest.mark.parametrize("viewers", [[1], [SPECTATOR], [1, SPECTATOR]])
def test_no_hidden_card_stands_in_the_source_of_a_page(viewers: Sequence[Viewer]) -> None:
    # All 7s are among the face-down cards and seat 0's hand.
    rest = [rank for rank in sorted_deck("standard").tolist() if rank != SEVEN]
    recording = Recording((*[SEVEN] * 7, *rest), ("a", "b"), (0,))
    written = page(recording, viewers).html
    data = data_of(written)
    for view in range(len(viewers)):
        for step in range(2):
            for form in ("wide", "tall"):
                assert SEVEN not in faces(frame(data, view, step, form))
    assert str(list(recording.deck))[1:-1].replace(" ", "") not in written


def test_bars_are_for_those_who_know_the_choices() -> None:
    recording = random_game(2, seed=5, steps=12)
    recording = recording.explained(
        [threeup_agents.make("search:20"), threeup_agents.make("random")]
    )
    assert len(recording.weights) == 12
    told = [step for step, weights in enumerate(recording.weights) if weights]
    seats = [int(batch.seats[0]) for batch, _ in recording.play()]
    assert told and {seats[step] for step in told} == {0}
    views = data_of(page(recording).html)["views"]
    bars = {view["name"]: [s for s, b in enumerate(view["bars"]) if b] for view in views}
    assert bars == {"open": told, "spectator": [], "seat 0": told, "seat 1": []}
    for step in told:
        rows = views[0]["bars"][step]
        assert sum(share for _, share, _ in rows) == pytest.approx(1, abs=0.01)
        taken = [action_id(name) for name, _, is_taken in rows if is_taken]
        assert taken == [recording.actions[step]]


def test_weights_are_kept_in_the_file(tmp_path: Path) -> None:
    recording = random_game(2, seed=5, steps=8).explained([threeup_agents.make("flat:10"), None])
    recording.save(tmp_path / "game.json")
    assert Recording.load(tmp_path / "game.json") == recording


def test_a_policy_tells_its_probabilities() -> None:
    size = observation_size(2)
    silent = (
        np.zeros((len(ACTION_NAMES), size), np.float32),
        np.zeros(len(ACTION_NAMES), np.float32),
    )
    even = PolicyPlayer(Policy([silent], (2,)), "even")
    weights = random_game(2, seed=5, steps=3).explained([even, even]).weights[0]
    assert weights
    assert set(weights.values()) == {round(1 / len(weights), 4)}


def test_a_name_can_not_break_the_page(tmp_path: Path) -> None:
    recording = random_game(2, seed=1, steps=3)
    evil = Recording(recording.deck, ("</script><b>", 'a"&'), recording.actions)
    page(evil, [0]).save(tmp_path / "page.html")
    written = (tmp_path / "page.html").read_text()
    assert "</script><b>" not in written
    assert written.count("</script>") == 2
    assert "seat 1 a&quot;&amp;<" in frame(data_of(written), 0, 0)


def test_a_page_needs_nothing_else_and_shows_itself_in_a_notebook() -> None:
    recording = random_game(2, seed=1, steps=3)
    written = page(recording).html
    assert not re.findall(r'(?:src|href)="(?!#)', written.split('<script id="data"')[0])
    assert set(re.findall(r"https?://[^\"\\]+", written)) == {"http://www.w3.org/2000/svg"}
    assert page(recording)._repr_html_().startswith(f'<iframe srcdoc="{html.escape(written)}"')


def test_the_events_are_those_that_a_seat_was_shown() -> None:
    game = raw_env(3)
    game.reset(seed=5)
    for _ in range(60):
        game.step(int(game.last()[0]["action_mask"].argmax()))
    recording = Recording.from_env(game)
    for seat, agent in enumerate(game.possible_agents):
        assert (recording.events(seat) == game.events(agent)).all()
        assert len(recording.events(seat)) == 60
    with pytest.raises(ValueError, match=r"seat: expected an integer in 0\.\.2; got 3"):
        recording.events(3)
