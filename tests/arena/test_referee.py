import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_agents.arena import play as match
from threeup_agents.arena.deals import draw_deals
from threeup_agents.arena.referee import AgentError
from threeup_agents.arena.terms import Terms

Rows = npt.NDArray[Any]


class Scripted:
    """Answers with whatever a function of the masks gives."""

    name = "scripted"

    def __init__(self, answer: Callable[[Rows], Any]) -> None:
        self._answer = answer

    def act(self, observations: Rows, action_masks: Rows) -> Any:
        """As `Agent.act`, or not."""
        return self._answer(action_masks)


def failure_of(answer: Callable[[Rows], Any], **options: Any) -> AgentError:
    decks = draw_deals(3)
    with pytest.raises(AgentError) as raised:
        match.play_block([Scripted(answer), "greedy"], decks, **options)
    assert raised.value.agent == "scripted"
    assert raised.value.where["line_up"] == ("scripted", "greedy")
    return raised.value


def first_legal(masks: Rows) -> Rows:
    return np.asarray(masks.argmax(axis=1))


def broken(masks: Rows) -> Rows:
    raise KeyError("weights")


def test_an_agent_that_raises_is_named() -> None:
    assert "raised KeyError: 'weights'" in str(failure_of(broken))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(lambda masks: masks.argmin(axis=1), "expected one of 'lay", id="illegal"),
        pytest.param(lambda masks: np.full(len(masks), 94), "got 94", id="no such action"),
        pytest.param(lambda masks: np.full(len(masks), -1), "got -1", id="negative"),
        pytest.param(lambda masks: None, "got NoneType None", id="nothing"),
        pytest.param(lambda masks: np.zeros(len(masks)), "integers; got ndarray", id="floats"),
        pytest.param(lambda masks: first_legal(masks)[:-1], "integers; got", id="one too few"),
    ],
)
def test_an_answer_that_is_none_is_named(answer: Callable[[Rows], Any], reason: str) -> None:
    assert reason in str(failure_of(answer))


def test_an_agent_that_marks_every_action_as_legal_is_still_named() -> None:
    def cheat(masks: Rows) -> Rows:
        illegal = np.asarray(masks.argmin(axis=1))
        masks[:] = True
        return illegal

    assert "expected one of 'lay" in str(failure_of(cheat))


def test_the_game_that_shows_an_illegal_action_is_named() -> None:
    def once_wrong(masks: Rows) -> Rows:
        actions = first_legal(masks)
        if len(masks) > 2 and masks[2, 93]:  # a forced pick-up in the third of its rows
            actions[2] = 0
        return actions

    error = failure_of(once_wrong)
    assert "expected one of 'pick up'; got 0 'lay 1'" in str(error)
    assert error.where["deal"] in range(3)
    assert error.where["step"] > 0


def test_an_agent_that_hangs_is_interrupted() -> None:
    def hang(masks: Rows) -> Rows:
        time.sleep(60)
        return first_legal(masks)

    start = time.monotonic()
    error = failure_of(hang, limit=1e-3, terms=Terms(patience=0.3))
    assert "expected at most 0.001 s per decision" in str(error)
    assert time.monotonic() - start < 10


def test_an_agent_that_loses_a_little_time_at_every_call_is_found() -> None:
    def slow(masks: Rows) -> Rows:
        time.sleep(0.005)
        return first_legal(masks)

    error = failure_of(slow, limit=1e-4, terms=Terms(patience=0.2))
    assert error.where["step"] > 5


def test_time_that_an_agent_has_saved_cant_be_spent_in_one_call() -> None:
    calls = []

    def hang_late(masks: Rows) -> Rows:
        calls.append(len(masks))
        if len(calls) == 20:
            time.sleep(60)
        return first_legal(masks)

    error = failure_of(hang_late, limit=0.5, terms=Terms(patience=0.1))
    allowed = 0.1 + 0.5 * calls[-1]
    saved = 0.1 + 0.5 * sum(calls)
    spent = float(error.reason.split("; got ")[1].split(" s ")[0])
    assert allowed - 0.1 < spent < allowed + 2 < saved
    assert f"for {calls[-1]} decisions" in error.reason


def test_a_game_interrupted_by_hand_stays_interrupted() -> None:
    def stopped(masks: Rows) -> Rows:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        match.play_block([Scripted(stopped), "greedy"], draw_deals(1))
