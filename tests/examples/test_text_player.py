import sys
from pathlib import Path

import numpy as np
import pytest

import threeup_agents
from examples import text_player
from tests.examples.witness import Note, Witness
from threeup_env import ACTION_NAMES, Batch

pytestmark = [pytest.mark.slow]
LEGAL = ["play 7", "play 7 x2", "play 10", "play C", "play C+1", "draw"]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("play 7", "play 7"),
        ("I'll play 7 x2.", "play 7 x2"),
        ("Play C+1!", "play C+1"),
        ("PLAY C", "play C"),
        ("Not play 7, that's weak: play 10", "play 10"),
        ("The draw pile is high, so: play 7", "play 7"),
        ("play 7, then pick up", "play 7"),
        ("play 1", None),
        ("play 7 x3", None),
        ("play 7 x9", None),
        ("play C+2", None),
        ("replay 7", None),
        ("seven", None),
        ("", None),
    ],
)
def test_the_longest_name_counts_and_of_several_the_last_legal_one(
    answer: str, name: str | None
) -> None:
    assert text_player.parse(answer, LEGAL) == name


def test_every_action_is_read_as_itself() -> None:
    for name in ACTION_NAMES:
        assert text_player.parse(f"I think I {name}.", ACTION_NAMES) == name


def play(player: text_player.TextPlayer, num_players: int, seed: int) -> tuple[Batch, list[str]]:
    """A whole game with the player at every seat; the questions that the model got."""
    batch = Batch(1, num_players, seed=seed, autoreset=False)
    batch.reset()
    questions: list[str] = []
    model = player.model

    def ask(question: str) -> str:
        questions.append(question)
        return model(question)

    player.model = ask
    while batch.action_masks.any():
        legal = [ACTION_NAMES[action] for action in np.flatnonzero(batch.action_masks[0])]
        name = player.choose(batch.observations[0].tolist(), legal)
        batch.step([ACTION_NAMES.index(name)])
    return batch, questions


@pytest.mark.parametrize("num_players", [2, 3])
def test_a_scripted_model_plays_a_whole_game(
    num_players: int, monkeypatch: pytest.MonkeyPatch, record_property: Note
) -> None:
    witness = Witness(monkeypatch)
    player = text_player.TextPlayer(text_player.scripted)
    batch, questions = play(player, num_players, seed=5)
    (game,) = witness.games
    assert batch.rewards[0].tolist() == list(game.outcomes)
    assert player.answers == len(questions) == sum(game.choices)
    assert player.refused == player.drawn == 0
    length = np.mean(list(map(len, questions)))
    record_property(f"characters of a question at {num_players} players", f"{length:.0f}")
    assert length < 450 + 50 * (num_players - 2)


def test_a_model_that_never_answers_rightly_is_asked_thrice_and_then_luck_decides() -> None:
    player = text_player.TextPlayer(lambda question: "play 7 x9")
    _, questions = play(player, 2, seed=5)
    assert player.drawn > 10
    assert player.answers == player.refused == len(questions) == 3 * player.drawn
    assert "You said 'play 7 x9'" in questions[1]


def test_it_plays_in_the_arena_as_a_program(tmp_path: Path) -> None:
    program = f"program:{sys.executable} {text_player.__file__}"
    run = threeup_agents.round_robin([("text", program), "random"], deals=20, out=tmp_path / "run")
    assert run.failures == []
    shares = {row["agent"]: row["win_share"] for row in run.results["standings"]}
    assert shares["text"] > 0
    said = "".join(path.read_text() for path in (tmp_path / "run" / "programs").rglob("*.log"))
    assert " 0 refused" in said
