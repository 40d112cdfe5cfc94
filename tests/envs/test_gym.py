import copy
import pickle
import random
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.utils.env_checker import check_env

from threeup_env import Batch, IllegalActionError, ThreeUpEnv, ThreeUpVectorEnv, decode
from threeup_env.agent import Agent
from threeup_env.engine.actions import PICK_UP
from threeup_env.engine.cards import sorted_deck

Step = tuple[bytes, bytes, float, bool, bool]


def make(**options: Any) -> ThreeUpEnv:
    env = gymnasium.make("threeup_env/ThreeUp-v1", **options).unwrapped
    assert isinstance(env, ThreeUpEnv)
    return env


def play(env: ThreeUpEnv, info: dict[str, Any], steps: int = 1000) -> list[Step]:
    """Play on, with actions that depend on the mask and the step alone, to the end at most."""
    seen: list[Step] = []
    for step in range(steps):
        legal = np.flatnonzero(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(legal[step % len(legal)])
        mask = info["action_mask"].tobytes()
        seen.append((observation.tobytes(), mask, reward, terminated, truncated))
        if terminated or truncated:
            break
    return seen


@pytest.mark.parametrize("num_players", range(2, 7))
@pytest.mark.parametrize("options", [{}, {"skip_forced": True}, {"variant": "listed"}])
def test_gymnasiums_checker_passes(num_players: int, options: dict[str, Any]) -> None:
    check_env(make(num_players=num_players, **options), skip_render_check=True)


def test_gymnasiums_checker_passes_on_the_smallest_deck() -> None:
    check_env(make(variant="mini"))


@pytest.mark.parametrize("num_players", [2, 5])
def test_every_observation_and_mask_is_in_its_space(num_players: int) -> None:
    env = make(num_players=num_players)
    observation, info = env.reset(seed=3)
    for _ in range(600):
        assert observation in env.observation_space
        assert decode(observation)["seats"]["acting"][0] == 1, "not the learner's turn"
        np.testing.assert_array_equal(info["action_mask"], env.action_masks())
        action = env.action_space.sample(info["action_mask"])
        assert env.action_masks()[action]
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            assert observation in env.observation_space
            assert not info["action_mask"].any()
            observation, info = env.reset()


def test_a_game_is_row_0_of_the_vector_face() -> None:
    envs = ThreeUpVectorEnv(3, num_players=4)
    batch_obs, infos = envs.reset(seed=11)
    env = ThreeUpEnv(num_players=4)
    observation, info = env.reset(seed=11)
    for step in range(300):
        np.testing.assert_array_equal(observation, batch_obs[0])
        np.testing.assert_array_equal(info["action_mask"], infos["action_mask"][0])
        legal = [np.flatnonzero(mask) for mask in infos["action_mask"]]
        actions = np.array([ids[step % len(ids)] for ids in legal])
        batch_obs, rewards, terminations, truncations, infos = envs.step(actions)
        observation, reward, terminated, truncated, info = env.step(actions[0])
        assert (reward, terminated, truncated) == (rewards[0], terminations[0], truncations[0])
        if terminated or truncated:
            np.testing.assert_array_equal(observation, infos["final_obs"][0])
            observation, info = env.reset()


def test_a_seed_deals_the_games_of_a_batch() -> None:
    env = ThreeUpEnv(num_players=3, seat=0)
    batch = Batch(1, num_players=3)
    batch.reset(seed=5)
    first, _ = env.reset(seed=5)
    np.testing.assert_array_equal(first, batch.observations[0])
    batch.reset()
    second, _ = env.reset()
    np.testing.assert_array_equal(second, batch.observations[0])


def test_unseeded_games_differ() -> None:
    first = {ThreeUpEnv(seat=0).reset()[0].tobytes() for _ in range(4)}
    assert len(first) == 4


def test_an_illegal_action_raises_and_changes_nothing() -> None:
    env, twin = ThreeUpEnv(seat=1), ThreeUpEnv(seat=1)
    _, info = env.reset(seed=1)
    twin.reset(seed=1)
    for action in np.flatnonzero(info["action_mask"] == 0):
        with pytest.raises(IllegalActionError, match=rf"seat 1: expected one of .*; got {action} "):
            env.step(action)
    for unknown in (-1, 94):
        with pytest.raises(IllegalActionError, match=r"ids are 0\.\.93"):
            env.step(unknown)
    assert play(env, info) == play(twin, info)


def test_an_illegal_action_may_end_the_game_instead() -> None:
    env = make(num_players=3, seat=2)
    observation, _ = env.reset(seed=1)
    after, reward, terminated, truncated, info = env.step(PICK_UP)
    assert (reward, terminated, truncated) == (-1, True, False)
    np.testing.assert_array_equal(observation, after)
    assert not info["action_mask"].any()
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(PICK_UP)


def test_calls_out_of_order_are_told_so() -> None:
    env = ThreeUpEnv()
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step(0)
    _, info = env.reset(seed=0)
    play(env, info)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step(0)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"seat": 2}, r"seat: expected None or 0\.\.1; got 2"),
        ({"num_players": 7}, "num_players: expected 2 to 6"),
        ({"variant": "big"}, "variant: expected one of 'standard', 'listed', 'mini'; got 'big'"),
        ({"illegal_action": "ignore"}, "illegal_action: expected 'raise' or 'terminate'"),
        ({"render_mode": "gif"}, "render_mode: expected None or 'ansi' or .*; got 'gif'"),
        ({"num_players": 4, "opponents": []}, "opponents: expected 3, .*; got 0"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        ThreeUpEnv(**options)


@pytest.mark.parametrize("opponents", ["greedy", ["greedy"], [None], len, Agent])
def test_opponents_that_are_no_agents_are_refused(opponents: Any) -> None:
    with pytest.raises(TypeError, match=r"opponents: expected .* act, e\.g\. threeup_agents\.make"):
        ThreeUpEnv(opponents=opponents)


def test_a_given_deck_is_dealt() -> None:
    deck = sorted_deck("standard")[::-1]
    batch = Batch(1)
    batch.reset(decks=deck[None])
    observation, _ = ThreeUpEnv(seat=0).reset(options={"deck": deck})
    np.testing.assert_array_equal(observation, batch.observations[0])
    with pytest.raises(ValueError, match="options: expected 'deck' alone; got 'decks'"):
        ThreeUpEnv().reset(options={"decks": [deck]})
    with pytest.raises(ValueError, match="deck of game 0: expected a permutation"):
        ThreeUpEnv().reset(options={"deck": np.zeros_like(deck)})


def test_the_seat_is_drawn_afresh_for_each_game() -> None:
    env = ThreeUpEnv(num_players=3)
    seats = [int(decode(env.reset(seed=seed)[0])["seat"]) for seed in range(60)]
    assert min(seats.count(seat) for seat in range(3)) > 10  # 20 expected, deviation 3.7
    env.reset(seed=0)
    seats = [int(decode(env.reset()[0])["seat"]) for _ in range(60)]
    assert min(seats.count(seat) for seat in range(3)) > 10
    assert {int(decode(ThreeUpEnv(seat=1).reset()[0])["seat"]) for _ in range(5)} == {1}


def test_nobody_wins_a_game_that_is_cut_off_at_its_last_step() -> None:
    env = ThreeUpEnv(num_players=2, max_steps=20, seat=0)
    ahead = set()
    for seed in range(30):
        _, info = env.reset(seed=seed)
        *_, (observation, _, reward, terminated, truncated) = play(env, info)
        assert (terminated, truncated) == (False, True)
        view = decode(np.frombuffer(observation, np.int8))
        assert view["steps_left"] == 0
        seats = view["seats"]
        mine, other = seats["hand_size"] + seats["face_down_size"] + seats["face_up"].sum(axis=1)
        ahead.add(int(np.sign(int(other) - int(mine))))
        assert reward == -1
    assert ahead == {-1, 0, 1}


@pytest.mark.parametrize("max_steps", [1, 3])
@pytest.mark.parametrize("illegal_action", ["raise", "terminate"])
def test_a_game_that_ends_before_my_first_decision_is_one_step(
    max_steps: int, illegal_action: str
) -> None:
    env = ThreeUpEnv(max_steps=max_steps, seat=1, illegal_action=illegal_action)
    observation, info = env.reset(seed=0)
    assert observation in env.observation_space
    assert not decode(observation)["seats"]["acting"].any()
    assert np.flatnonzero(info["action_mask"]).tolist() == [PICK_UP]
    after, reward, terminated, truncated, info = env.step(PICK_UP)
    np.testing.assert_array_equal(observation, after)
    assert (reward, terminated, truncated) == (-1, False, True)
    assert not info["action_mask"].any()


def test_a_game_in_which_all_my_moves_were_forced_is_one_step() -> None:
    env = ThreeUpEnv(variant="mini", max_steps=2, skip_forced=True, seat=0)
    # Seat 0 has three of rank 0 to lay from; the cut-off comes once both have laid.
    observation, info = env.reset(options={"deck": [1, 1, 0, 0, 0, 1, 10, 10, 11, 12]})
    assert decode(observation)["steps_left"] == 0
    assert np.flatnonzero(info["action_mask"]).tolist() == [PICK_UP]
    assert env.step(PICK_UP)[1:4] == (-1, False, True)


def free_choices(env: ThreeUpEnv, seed: int) -> tuple[list[bytes], float, int]:
    """Play one game; the views of every real choice, the return, and the forced moves."""
    observation, info = env.reset(seed=seed)
    views: list[bytes] = []
    total, forced, over = 0.0, 0, False
    while not over:
        legal = np.flatnonzero(info["action_mask"])
        if len(legal) > 1:
            views.append(observation.tobytes())
        else:
            forced += 1
        observation, reward, terminated, truncated, info = env.step(legal[len(views) % len(legal)])
        total += reward
        over = terminated or truncated
    return views, total, forced


@pytest.mark.parametrize("variant", ["standard", "mini"])
def test_forced_moves_are_played_for_me(variant: str) -> None:
    skipping = ThreeUpEnv(variant=variant, skip_forced=True)
    by_hand = ThreeUpEnv(variant=variant)
    skipped = 0
    for seed in range(8):
        views, total, forced = free_choices(by_hand, seed)
        assert free_choices(skipping, seed) == (views, total, 0 if views else 1)
        skipped += forced
    assert skipped > 0


def test_the_table_is_drawn_as_the_learner_sees_it() -> None:
    env = ThreeUpEnv(render_mode="ansi", seat=1)
    env.reset(seed=4)
    text = env.render()
    assert text is not None
    assert "seen by seat 1" in text
    assert ThreeUpEnv().render() is None


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("steps", [0, 1, 25])
def test_a_copy_goes_on_identically(clone: Any, steps: int) -> None:
    env = ThreeUpEnv(num_players=3)
    _, info = env.reset(seed=8)
    play(env, info, steps)
    twin = clone(env)
    for _ in range(3):
        info = {"action_mask": env.action_masks().astype(np.int8)}
        assert play(env, info) == play(twin, info)
        np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_before_the_first_reset_is_possible(clone: Any) -> None:
    env = ThreeUpEnv()
    twin = clone(env)
    np.testing.assert_array_equal(env.reset(seed=1)[0], twin.reset(seed=1)[0])


def test_three_games_in_one_env_equal_three_fresh_envs() -> None:
    kept = ThreeUpEnv(num_players=4)
    for seed in (3, 1, 3):
        fresh = ThreeUpEnv(num_players=4)
        observation, info = kept.reset(seed=seed)
        other, _ = fresh.reset(seed=seed)
        np.testing.assert_array_equal(observation, other)
        assert play(kept, info) == play(fresh, info)


def global_states() -> tuple[object, str]:
    """What `random` and NumPy's old functions would draw from."""
    return random.getstate(), repr(np.random.get_state())  # noqa: NPY002 - it must not change


def test_global_random_numbers_are_left_alone() -> None:
    before = global_states()
    env = ThreeUpEnv()
    _, info = env.reset()
    play(env, info)
    assert global_states() == before


def test_what_is_returned_is_the_callers_own() -> None:
    env, twin = ThreeUpEnv(), ThreeUpEnv()
    observation, info = env.reset(seed=2)
    twin.reset(seed=2)
    kept = {"action_mask": info["action_mask"].copy()}
    observation[:], info["action_mask"][:], env.action_masks()[:] = 0, 0, False
    assert play(env, kept) == play(twin, kept)


class Watcher:
    """Plays the first legal action and notes which seats it was asked for."""

    def __init__(self) -> None:
        self.seats: list[int] = []

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """The first legal action."""
        self.seats += decode(observations)["seat"].tolist()
        actions: npt.NDArray[np.int64] = action_masks.argmax(axis=1)
        return actions


def test_opponents_sit_clockwise_from_the_learner() -> None:
    watchers = [Watcher() for _ in range(3)]
    env = ThreeUpEnv(num_players=4, opponents=watchers, seat=2)
    _, info = env.reset(seed=0)
    play(env, info)
    assert [set(watcher.seats) for watcher in watchers] == [{3}, {0}, {1}]


def test_an_opponent_that_plays_illegally_is_named() -> None:
    class Cheat(Watcher):
        def act(
            self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
        ) -> npt.NDArray[np.int64]:
            """Always turns over a card."""
            return np.full(len(observations), 92)

    with pytest.raises(IllegalActionError, match=r"seat 0: expected one of .*; got 92 'flip'"):
        ThreeUpEnv(opponents=Cheat(), seat=1).reset(seed=0)
