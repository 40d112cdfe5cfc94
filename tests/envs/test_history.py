"""What the faces for one learner tell of the past: the last events, and those since a decision."""

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from threeup_env import EVENT_DTYPE, ThreeUpEnv, ThreeUpVectorEnv, action_id, decode
from threeup_env.engine.events import HIDDEN

FIELDS = EVENT_DTYPE.names or ()
SEAT, ACTION = FIELDS.index("seat"), FIELDS.index("action")


def played(env: ThreeUpEnv) -> list[list[int]]:
    """The running game's events as the engine tells the learner's seat."""
    events = env.games.batch.events(0, int(env.games.seats[0]))
    return [list(map(int, event)) for event in events.tolist()]


@pytest.mark.parametrize("num_players", [2, 3, 6])
@pytest.mark.parametrize("history", [1, 5, 40])
def test_the_last_events_stand_in_the_observation(num_players: int, history: int) -> None:
    env = ThreeUpEnv(num_players, history=history, max_steps=120)
    observation, info = env.reset(seed=history)
    told: list[list[int]] = []
    over = False
    while True:
        events = played(env)
        told += info["events"].tolist()
        assert observation in env.observation_space
        assert observation["events"].dtype == info["events"].dtype == np.int8
        assert (observation["action_mask"] == info["action_mask"]).all()
        none = [[-1] * len(FIELDS)] * max(0, history - len(events))
        assert observation["events"].tolist() == none + events[-history:]
        assert len(told) == len(events) == env.games.batch.lengths[0]
        if over:
            break
        mine = int(info["action_mask"].argmax())
        observation, _, *ends, info = env.step(mine)
        assert info["events"][0, [SEAT, ACTION]].tolist() == [
            decode(observation["observation"])["seat"],
            mine,
        ]
        over = any(ends)
    # What was told at once is what the whole game looks like in the end, but for hidden lays.
    for at_once, later in zip(told, events, strict=True):
        assert at_once == later or at_once[ACTION] == HIDDEN


def test_others_lays_are_hidden_until_all_have_laid() -> None:
    env = ThreeUpEnv(num_players=3, seat=1, history=9)
    observation, info = env.reset(seed=4)
    assert info["events"][:, SEAT].tolist() == [0, 0, 0]
    assert info["events"][:, ACTION].tolist() == [HIDDEN] * 3
    for _ in range(2):
        observation, *_, info = env.step(info["action_mask"].argmax())
        assert observation["events"][-4:-1, ACTION].tolist()[:1] == [HIDDEN]
    observation, *_ = env.step(info["action_mask"].argmax())
    by_seat = observation["events"][np.isin(observation["events"][:, SEAT], [0, 2])]
    lays = by_seat[by_seat[:, ACTION] < action_id("play 1")]
    assert HIDDEN not in lays[:, ACTION]


def test_a_row_of_many_games_is_told_what_one_game_is() -> None:
    options: dict[str, Any] = {"num_players": 3, "history": 6, "max_steps": 60, "seat": 2}
    many = ThreeUpVectorEnv(4, **options)
    one = ThreeUpEnv(**options)
    observations, infos = many.reset(seed=8)
    observation, info = one.reset(seed=8)
    ends = 0
    for _ in range(80):
        assert observations in many.observation_space
        np.testing.assert_equal({name: part[0] for name, part in observations.items()}, observation)
        assert infos["_events"].all()
        assert infos["events"][0].tolist() == info["events"].tolist()
        actions = infos["action_mask"].argmax(axis=1)
        observations, _, terminations, truncations, infos = many.step(actions)
        observation, _, terminated, truncated, info = one.step(actions[0])
        assert (terminations | truncations)[0] == (terminated or truncated)
        if terminated or truncated:
            np.testing.assert_equal(infos["final_obs"][0], observation)
            assert infos["final_info"]["events"][0].tolist() == info["events"].tolist()
            observation, info = one.reset()
            ends += 1
    assert ends > 2


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_an_ended_row_keeps_its_events_until_it_is_dealt_anew(mode: AutoresetMode) -> None:
    envs = ThreeUpVectorEnv(2, autoreset_mode=mode, history=3, seat=0, max_steps=7)
    _, infos = envs.reset(seed=3)
    while True:
        mine = infos["action_mask"].argmax(axis=1)
        observations, _, terminations, truncations, infos = envs.step(mine)
        if (terminations | truncations).all():
            break
    assert observations["events"][0, -1, SEAT] == 0  # the seventh action is seat 0's
    assert infos["events"][0][-1].tolist() == observations["events"][0, -1].tolist()
    if mode is AutoresetMode.NEXT_STEP:
        observations, *_, infos = envs.step(mine)
    else:
        observations, infos = envs.reset(options={"reset_mask": np.ones(2, np.bool_)})
    assert (observations["events"] == -1).all()
    assert [len(events) for events in infos["events"]] == [0, 0]


def test_a_pickled_game_remembers() -> None:
    env = ThreeUpEnv(history=12)
    _, info = env.reset(seed=1)
    for _ in range(5):
        *_, info = env.step(info["action_mask"].argmax())
    other = pickle.loads(pickle.dumps(env))
    one, two = env.step(info["action_mask"].argmax()), other.step(info["action_mask"].argmax())
    np.testing.assert_equal(one, two)


def test_gymnasiums_checker_passes() -> None:
    check_env(gymnasium.make("threeup_env/ThreeUp-v1", history=8).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("make", [ThreeUpEnv, ThreeUpVectorEnv])
@pytest.mark.parametrize("history", [-1, 1.5, "4", True, 1001])
def test_a_wrong_length_is_refused(make: Any, history: Any) -> None:
    with pytest.raises(ValueError, match=r"history: expected .*; got "):
        make(history=history)


def test_nothing_is_told_without_being_asked_for() -> None:
    env = ThreeUpEnv(dict_observation=True)
    observation, info = env.reset(seed=1)
    assert set(observation) == {"observation", "action_mask"}
    assert set(info) == {"action_mask"}
    with pytest.raises(RuntimeError, match="history"):
        env.games.last_events()
