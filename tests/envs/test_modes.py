"""What the faces for one learner can be asked for: how rows go on, what is observed, cut-offs."""

import inspect
import re
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

from threeup_env import Batch, ThreeUpEnv, ThreeUpVectorEnv, decode, env, raw_env
from threeup_env.engine.actions import PICK_UP
from threeup_env.engine.cards import sorted_deck
from threeup_env.envs.learner import LearnerGames

SAME_STEP, NEXT_STEP, DISABLED = (
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
    AutoresetMode.DISABLED,
)
Seen = list[tuple[int, int, float, bool, bool]]


class Engine:
    """Notes what the learners' seats do in the games themselves, below any face."""

    def __init__(self, envs: ThreeUpVectorEnv, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[tuple[int, int]] = []
        self.ends: list[tuple[int, float]] = []
        games, step = envs.games, envs.games.batch.step

        def noting(actions: Any, rows: Any = None) -> None:
            mine = games.batch.seats[rows] == games.seats[rows]
            pairs = zip(rows[mine].tolist(), actions[mine].tolist(), strict=True)
            self.taken += pairs
            step(actions, rows)
            ended = np.flatnonzero(games.batch.terminations | games.batch.truncations).tolist()
            self.ends += [(row, float(games.batch.rewards[row, games.seats[row]])) for row in ended]

        monkeypatch.setattr(games.batch, "step", noting)


def record(envs: ThreeUpVectorEnv, infos: dict[str, Any], steps: int) -> Seen:
    """Play as a learner that knows Gymnasium's modes: each decision, what it brought and ended."""
    mode, waiting = envs.metadata["autoreset_mode"], np.zeros(envs.num_envs, np.bool_)
    counts = np.zeros(envs.num_envs, np.int64)
    seen: Seen = []
    for _ in range(steps):
        if mode is DISABLED and waiting.any():
            _, infos = envs.reset(options={"reset_mask": waiting})
            waiting = np.zeros_like(waiting)
        legal = [np.flatnonzero(mask) for mask in infos["action_mask"]]
        actions = np.array(
            [ids[counts[row] % len(ids)] if len(ids) else -1 for row, ids in enumerate(legal)]
        )
        _, rewards, terminations, truncations, infos = envs.step(actions)
        told = zip(actions, rewards, terminations, truncations, strict=True)
        for row, (action, reward, terminated, truncated) in enumerate(told):
            if mode is NEXT_STEP and waiting[row]:
                assert (reward, terminated, truncated) == (0, False, False)
                continue
            counts[row] += 1
            seen.append((row, int(action), float(reward), bool(terminated), bool(truncated)))
        waiting = terminations | truncations
    return seen


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("max_steps", [1000, 40])
def test_every_decision_is_recorded_and_every_end_seen_once(
    mode: AutoresetMode, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    envs = ThreeUpVectorEnv(3, seat=0, max_steps=max_steps, autoreset_mode=mode)
    engine = Engine(envs, monkeypatch)
    decks = np.stack([sorted_deck("standard"), *[sorted_deck("standard")[::-1]] * 2])
    _, infos = envs.reset(seed=2, options={"decks": decks})
    seen = record(envs, infos, 400)
    assert sorted(engine.taken) == sorted((row, action) for row, action, *_ in seen)
    for row in range(3):
        assert [pair for pair in engine.taken if pair[0] == row] == [
            (row, action) for number, action, *_ in seen if number == row
        ]
    ends = [(row, reward) for row, _, reward, *end in seen if any(end)]
    assert sorted(engine.ends) == sorted(ends)
    assert len(ends) > 5
    assert not any(reward for _, _, reward, *end in seen if not any(end))


@pytest.mark.parametrize("max_steps", [200, 1])
def test_the_games_are_the_same_in_all_modes(max_steps: int) -> None:
    rows: list[list[Seen]] = []
    for mode in AutoresetMode:
        envs = ThreeUpVectorEnv(4, num_players=3, max_steps=max_steps, autoreset_mode=mode)
        seen = record(envs, envs.reset(seed=6)[1], 300)
        rows.append([[step for step in seen if step[0] == row][:140] for row in range(4)])
    assert rows[0] == rows[1] == rows[2]
    assert all(len(row) == 140 for row in rows[0])


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("dict_observation", [False, True])
def test_every_step_is_that_of_gymnasiums_own_vector_env(
    mode: AutoresetMode, dict_observation: bool
) -> None:
    options: dict[str, Any] = {
        "seat": 0,
        "max_steps": 40,
        "illegal_action": "terminate",
        "dict_observation": dict_observation,
    }
    own = ThreeUpVectorEnv(1, autoreset_mode=mode, **options)
    theirs = SyncVectorEnv([lambda: ThreeUpEnv(**options)], autoreset_mode=mode)
    assert own.observation_space == theirs.observation_space
    one: tuple[Any, ...] = own.reset(seed=5)
    other: tuple[Any, ...] = theirs.reset(seed=5)
    ends = 0
    for _ in range(90):
        for infos in (one[-1], other[-1]):
            if "final_obs" in infos:  # NumPy compares no arrays of objects that hold arrays
                infos["final_obs"] = infos["final_obs"].tolist()
        np.testing.assert_equal(one, other)
        assert one[0] in own.observation_space
        if mode is DISABLED and len(one) > 2 and (one[2] | one[3]).any():
            mask = np.ones(1, np.bool_)
            one = own.reset(options={"reset_mask": mask})
            other = theirs.reset(options={"reset_mask": mask})
            continue
        actions = one[-1]["action_mask"].argmax(axis=1)
        one, other = own.step(actions), theirs.step(actions)
        ends += int((one[2] | one[3]).sum())
    assert ends > 2


def test_the_step_after_an_end_ignores_the_action_and_deals() -> None:
    envs = ThreeUpVectorEnv(2, seat=0, max_steps=8, autoreset_mode="NextStep")
    _, infos = envs.reset(seed=0)
    ended = np.zeros(2, np.bool_)
    while not ended.any():
        actions = infos["action_mask"].argmax(axis=1)
        observations, _, terminations, truncations, infos = envs.step(actions)
        ended = terminations | truncations
    assert ended.all(), "both are cut off at their eighth step"
    assert (decode(observations)["steps_left"] == 0).all()
    assert not infos["action_mask"].any()
    assert "final_obs" not in infos
    observations, rewards, terminations, truncations, infos = envs.step(np.array([-7, PICK_UP]))
    assert (decode(observations)["laying"] == 3).all()
    assert infos["action_mask"].any(axis=1).all()
    assert not (rewards.any() or terminations.any() or truncations.any())


def ended_game(**options: Any) -> tuple[ThreeUpVectorEnv, npt.NDArray[np.bool_]]:
    """Two rows, one of which has been ended by an illegal action."""
    envs = ThreeUpVectorEnv(
        2, seat=0, illegal_action="terminate", autoreset_mode=DISABLED, **options
    )
    _, infos = envs.reset(seed=0)
    actions = infos["action_mask"].argmax(axis=1)
    actions[1] = PICK_UP
    return envs, envs.step(actions)[2]


def test_without_autoreset_an_ended_row_is_not_stepped() -> None:
    envs, ended = ended_game()
    assert ended.tolist() == [False, True]
    before = envs.games.observations.copy()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"call reset\(.*reset_mask.*game 1 has ended"):
            envs.step(envs.action_masks().argmax(axis=1))
    options = {"reset_mask": ended}
    observations, infos = envs.reset(options=options)
    assert list(options) == ["reset_mask"], "the caller's own"
    np.testing.assert_array_equal(observations[0], before[0])
    assert decode(observations[1])["laying"] == 3
    assert infos["action_mask"].any(axis=1).all()
    envs.step(infos["action_mask"].argmax(axis=1))


def test_a_reset_mask_deals_given_decks_and_seeds_to_the_marked_rows() -> None:
    envs, ended = ended_game()
    deck = sorted_deck("standard")[::-1]
    observations, _ = envs.reset(seed=3, options={"reset_mask": ended, "decks": deck[None]})
    fresh = ThreeUpVectorEnv(2, seat=0)
    dealt, _ = fresh.reset(options={"decks": np.stack([deck, deck])})
    np.testing.assert_array_equal(observations[1], dealt[1])
    observations, _ = envs.reset(seed=3, options={"reset_mask": ended})
    np.testing.assert_array_equal(observations[1], fresh.reset(seed=3)[0][1])


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False], TypeError),
        (np.array([1, 0]), TypeError),
        (np.array([True]), ValueError),
        (np.array([False, False]), ValueError),
    ],
)
def test_a_wrong_reset_mask_is_refused(mask: Any, error: type[Exception]) -> None:
    envs, _ = ended_game()
    with pytest.raises(error, match=r"reset_mask: expected .*; got "):
        envs.reset(options={"reset_mask": mask})


def test_the_first_reset_deals_all_games() -> None:
    mask = np.array([True, False])
    with pytest.raises(RuntimeError, match=r"call reset\(\) before reset\(options="):
        ThreeUpVectorEnv(2).reset(options={"reset_mask": mask})
    ThreeUpVectorEnv(2).reset(options={"reset_mask": np.array([True, True])})


def test_the_mode_is_the_instances() -> None:
    made = [ThreeUpVectorEnv(1), ThreeUpVectorEnv(1, autoreset_mode="NextStep")]
    assert [envs.autoreset_mode for envs in made] == [SAME_STEP, NEXT_STEP]
    assert [envs.metadata["autoreset_mode"] for envs in made] == [SAME_STEP, NEXT_STEP]
    assert ThreeUpVectorEnv.metadata["autoreset_mode"] is SAME_STEP
    with pytest.raises(ValueError, match=r"autoreset_mode: expected 'NextStep' or .*; got 'never'"):
        ThreeUpVectorEnv(1, autoreset_mode="never")


counted_right = pytest.mark.skipif(
    tuple(map(int, gymnasium.__version__.split(".")[:2])) < (1, 4),
    reason="Gymnasium's wrapper misses steps before 1.4",
)


@pytest.mark.parametrize(
    "mode", [pytest.param(SAME_STEP, marks=counted_right), NEXT_STEP, DISABLED]
)
def test_episode_statistics_count_the_decisions(mode: AutoresetMode) -> None:
    envs = RecordEpisodeStatistics(
        ThreeUpVectorEnv(4, seat=0, max_steps=30, autoreset_mode=mode), buffer_length=10_000
    )
    seen = record(envs, envs.reset(seed=1)[1], 150)  # type: ignore[arg-type]
    lengths, returns, running = [], [], dict.fromkeys(range(4), 0)
    for row, _, reward, *end in seen:
        running[row] += 1
        if any(end):
            lengths.append(running[row])
            returns.append(reward)
            running[row] = 0
    assert len(lengths) > 10
    assert list(envs.length_queue) == lengths
    assert list(envs.return_queue) == returns


def test_observations_can_be_normalized_with_next_step() -> None:
    envs = NormalizeObservation(ThreeUpVectorEnv(4, autoreset_mode=NEXT_STEP))
    observations, infos = envs.reset(seed=0)
    for _ in range(20):
        observations, *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    assert np.isfinite(observations).all()


COMBINATIONS = list(product([False, True], ["truncation", "termination"]))


@pytest.mark.parametrize(("dict_observation", "cut_off"), COMBINATIONS)
@pytest.mark.parametrize("max_steps", [1, 1000])
def test_gymnasiums_checker_passes(dict_observation: bool, cut_off: str, max_steps: int) -> None:
    made = gymnasium.make(
        "threeup_env/ThreeUp-v1",
        dict_observation=dict_observation,
        cut_off=cut_off,
        max_steps=max_steps,
    )
    check_env(made.unwrapped, skip_render_check=True)


@pytest.mark.parametrize(("dict_observation", "cut_off"), COMBINATIONS)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_gymnasium_makes_them_by_name(
    dict_observation: bool, cut_off: str, mode: AutoresetMode
) -> None:
    envs = gymnasium.make_vec(
        "threeup_env/ThreeUp-v1",
        num_envs=3,
        dict_observation=dict_observation,
        cut_off=cut_off,
        autoreset_mode=mode,
    )
    assert isinstance(envs, ThreeUpVectorEnv)
    assert envs.metadata["autoreset_mode"] is mode
    assert envs.reset(seed=0)[0] in envs.observation_space
    assert isinstance(envs.observation_space, gymnasium.spaces.Dict) == dict_observation
    assert envs.games.cut_off == cut_off


def test_a_dictionary_holds_the_observation_and_its_mask() -> None:
    plain, masked = (ThreeUpEnv(3, dict_observation=masked) for masked in (False, True))
    observation, info = plain.reset(seed=4)
    both, _ = masked.reset(seed=4)
    for step in range(1000):
        np.testing.assert_array_equal(both["observation"], observation)
        np.testing.assert_array_equal(both["action_mask"], info["action_mask"])
        assert both in masked.observation_space
        legal = np.flatnonzero(both["action_mask"])
        observation, _, *ends, info = plain.step(legal[step % len(legal)])
        both, *_ = masked.step(legal[step % len(legal)])
        if any(ends):
            break
    assert not both["action_mask"].any()


def test_the_last_observation_of_a_row_is_a_dictionary_too() -> None:
    envs = ThreeUpVectorEnv(2, seat=0, max_steps=8, dict_observation=True)
    observations, infos = envs.reset(seed=0)
    while "final_obs" not in infos:
        actions = observations["action_mask"].argmax(axis=1)
        observations, *_, infos = envs.step(actions)
    for last in infos["final_obs"]:
        assert last in envs.single_observation_space
        assert decode(last["observation"])["steps_left"] == 0
        assert not last["action_mask"].any()
    assert observations in envs.observation_space
    assert (observations["action_mask"].sum(axis=1) > 0).all()


@pytest.mark.parametrize(("cut_off", "ends"), [("truncation", 1), ("termination", 0)])
def test_a_cut_off_is_reported_as_wished_with_the_same_reward(cut_off: str, ends: int) -> None:
    for seed in range(5):
        plain = ThreeUpEnv(max_steps=20, seat=0)
        wished = ThreeUpEnv(max_steps=20, seat=0, cut_off=cut_off)
        told = []
        for one in (plain, wished):
            _, info = one.reset(seed=seed)
            over: list[bool] = []
            while not any(over):
                *_, reward, terminated, truncated, info = one.step(info["action_mask"].argmax())
                over = [terminated, truncated]
            told.append((reward, over.index(True), sum(over)))
        assert told == [(told[0][0], 1, 1), (told[0][0], ends, 1)]


@pytest.mark.parametrize("make", [env, raw_env])
def test_a_cut_off_is_reported_as_wished_to_all_agents(make: Callable[..., Any]) -> None:
    told = {}
    for cut_off in ("truncation", "termination"):
        game = make(max_steps=20, cut_off=cut_off)
        game.reset(seed=1)
        while not any((game.terminations | game.truncations).values()) and game.agents:
            game.step(int(game.last()[-1]["action_mask"].argmax()))
            if any(game.truncations.values()) or any(game.terminations.values()):
                break
        told[cut_off] = (dict(game.terminations), dict(game.truncations), dict(game.rewards))
    yes, no = dict.fromkeys(game.possible_agents, True), dict.fromkeys(game.possible_agents, False)
    rewards = told["truncation"][2]
    assert told == {"truncation": (no, yes, rewards), "termination": (yes, no, rewards)}


@pytest.mark.parametrize("make", [env, raw_env, ThreeUpEnv, ThreeUpVectorEnv])
def test_an_unknown_way_to_report_a_cut_off_is_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="cut_off: expected 'truncation' or 'termination'; got 'x"):
        make(cut_off="x")


@pytest.mark.parametrize("make", [env, raw_env, ThreeUpEnv, ThreeUpVectorEnv])
@pytest.mark.parametrize(
    ("seed", "error"),
    [("a", TypeError), (1.5, TypeError), (True, TypeError), ([1], TypeError), (-1, ValueError)],
)
def test_a_wrong_seed_is_refused_by_name(
    make: Callable[..., Any], seed: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="seed: expected None or an integer of at least 0; got "):
        make().reset(seed=seed)


@pytest.mark.parametrize("make", [raw_env, ThreeUpEnv, ThreeUpVectorEnv])
def test_a_seed_may_be_one_of_numpys(make: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().reset(seed=np.int64(3))


@pytest.mark.parametrize("make", [ThreeUpEnv, ThreeUpVectorEnv])
@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_nothing_is_drawn_before_a_game_is_dealt(
    make: Callable[..., Any], render_mode: str
) -> None:
    with pytest.raises(RuntimeError, match=r"call reset\(\) before render\(\)"):
        make(render_mode=render_mode).render()
    with pytest.raises(RuntimeError, match=r"call reset\(\) before picture\(\)"):
        ThreeUpEnv(render_mode=render_mode).picture()


@pytest.mark.parametrize(
    "public", [env, raw_env, ThreeUpEnv, ThreeUpVectorEnv, LearnerGames, Batch]
)
def test_help_lists_every_argument(public: Any) -> None:
    words = (public.__doc__ or "").partition("Args:")[2]
    listed = re.findall(r"^ {4,8}([a-z_]+): ", words.partition("\n\n")[0], re.MULTILINE)
    assert listed == list(inspect.signature(public).parameters)
