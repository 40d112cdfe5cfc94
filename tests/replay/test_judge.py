import numpy as np
import pandas as pd
import pytest

from threeup_agents.replay.judge import judge, odds
from threeup_agents.replay.recording import Recording, record
from threeup_agents.search.searchers import Flat
from threeup_env import ACTION_NAMES


def test_only_choices_are_judged() -> None:
    recording = record(["careful", "random"], seed=3)
    judgement = judge(recording, 5)
    choices = [
        (step, int(batch.seats[0]), ACTION_NAMES[recording.actions[step]])
        for step, (batch, _) in enumerate(recording.play())
        if batch.action_masks[0].sum() > 1
    ]
    found = zip(judgement.step.tolist(), judgement.seat.tolist(), judgement.taken, strict=True)
    assert list(found) == choices


def test_an_agent_finds_no_fault_with_itself() -> None:
    recording = record([Flat(10, seed=4), Flat(10, seed=4)], variant="mini", seed=1)
    judgement = judge(recording, 10, seed=4)
    assert judgement.taken == judgement.best
    assert judgement.cost.tolist() == [0] * len(judgement.cost)


def missed_wins(recording: Recording) -> list[int]:
    """Steps at which another action would have won at once."""
    found = []
    for step, (batch, _) in enumerate(recording.play()):
        for action in np.flatnonzero(batch.action_masks[0]):
            tried = batch.copy()
            tried.step([action])
            if tried.terminations[0] and action != recording.actions[step]:
                found.append(step)
    return found


def test_a_win_given_away_costs_what_it_was_worth() -> None:
    recording = record(["random", "random"], seed=22)
    judgement = judge(recording, 20)
    missed = np.isin(judgement.step, missed_wins(recording))
    assert missed.any()
    assert (judgement.value[missed] > 0.9).all()
    assert judgement.cost[missed].mean() > 0.1


def test_the_mean_cost_is_not_too_high_by_chance() -> None:
    games = [record(["greedy", "careful"], seed=seed) for seed in range(4)]
    few = np.concatenate([judge(game, 5).cost for game in games])
    many = np.concatenate([judge(game, 100).cost for game in games])
    assert (few < 0).any()
    assert few.mean() < many.mean() + 2 * few.std() / np.sqrt(len(few))


def test_a_judgement_is_a_table_and_a_picture() -> None:
    judgement = judge(record(["greedy", "random"], seed=2), 5)
    table = pd.DataFrame(judgement.columns())
    assert table["agent"].tolist() == [("greedy", "random")[seat] for seat in judgement.seat]
    picture = judgement._repr_html_()
    assert picture == odds(judgement)
    worst = int(np.argmax(judgement.cost))
    assert f"{judgement.taken[worst]}, not {judgement.best[worst]}" in picture
    assert "seat 1 random" in picture


@pytest.mark.parametrize("num_players", [2, 6])
def test_a_game_without_choices_gives_an_empty_picture(num_players: int) -> None:
    recording = record(["random"] * num_players, seed=1)
    nothing = Recording(recording.deck, recording.agents, ())
    judgement = judge(nothing, 1)
    assert len(judgement.cost) == 0
    assert judgement._repr_html_().startswith("<svg")
