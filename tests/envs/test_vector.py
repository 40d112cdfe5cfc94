import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from threeup_env import Batch, IllegalActionError, ThreeUpEnv, ThreeUpVectorEnv, decode
from threeup_env.engine.actions import PICK_UP
from threeup_env.engine.cards import sorted_deck
from threeup_env.envs.learner import LearnerGames, draw_uniformly

Masks = npt.NDArray[np.bool_]


def choose(masks: Masks, step: int) -> npt.NDArray[np.int64]:
    """A legal action a row that depends on the row's own mask and the step alone."""
    counts = masks.sum(axis=1)
    chosen: npt.NDArray[np.int64] = (masks.cumsum(axis=1) == (step % counts + 1)[:, None]).argmax(1)
    return chosen


def run(envs: ThreeUpVectorEnv, steps: int, start: int = 0) -> list[tuple[Any, ...]]:
    """Step on; what each step returned, the infos as the masks and the final observations."""
    seen = []
    for step in range(start, start + steps):
        observations, rewards, terminations, truncations, infos = envs.step(
            choose(envs.action_masks(), step)
        )
        final = infos.get("final_obs", np.full(envs.num_envs, None))
        seen.append((observations, rewards, terminations, truncations, infos["action_mask"], final))
    return seen


def assert_same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]], rows: int) -> None:
    for step, other_step in zip(one, other, strict=True):
        for array, other_array in zip(step, other_step, strict=True):
            for row in range(rows):
                np.testing.assert_array_equal(array[row], other_array[row])


@pytest.mark.parametrize("num_players", [2, 6])
def test_a_row_does_not_depend_on_the_number_of_rows(num_players: int) -> None:
    few = ThreeUpVectorEnv(3, num_players, max_steps=150)
    many = ThreeUpVectorEnv(40, num_players, max_steps=150)
    few.reset(seed=5)
    many.reset(seed=5)
    assert_same(run(few, 120), run(many, 120), rows=3)


def test_spaces_modes_and_masks_are_as_gymnasium_wants_them() -> None:
    envs = gymnasium.make_vec("threeup_env/ThreeUp-v1", num_envs=5, num_players=3)
    assert isinstance(envs, ThreeUpVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, infos = envs.reset(seed=0)
    for step in range(100):
        assert observations in envs.observation_space
        assert observations.dtype == np.int8
        assert infos["action_mask"].dtype == np.int8
        np.testing.assert_array_equal(infos["action_mask"], envs.action_masks())
        assert (decode(observations)["seats"]["acting"][:, 0] == 1).all()
        actions = envs.action_space.sample(tuple(infos["action_mask"]))
        assert envs.action_masks()[np.arange(5), actions].all()
        observations, rewards, _, _, infos = envs.step(choose(envs.action_masks(), step))
        assert rewards.dtype == np.float32


def test_a_finished_row_is_dealt_anew_in_the_same_step() -> None:
    envs = ThreeUpVectorEnv(30, num_players=3, max_steps=90, seat=1)
    envs.reset(seed=1)
    finished = 0
    for step in range(120):
        observations, rewards, terminations, truncations, infos = envs.step(
            choose(envs.action_masks(), step)
        )
        ended = terminations | truncations
        assert not rewards[~ended].any()
        assert ("final_obs" in infos) == ended.any()
        for row in np.flatnonzero(ended):
            last = infos["final_obs"][row]
            assert infos["_final_obs"][row]
            assert last in envs.single_observation_space
            assert not decode(last)["seats"]["acting"].any()
            assert decode(last)["seat"] == 1
            assert truncations[row] == (decode(last)["steps_left"] == 0 and not terminations[row])
            assert not infos["final_info"]["action_mask"][row].any()
            assert decode(observations[row])["laying"] > 0
        finished += ended.sum()
    assert finished > 30


def test_the_games_are_those_of_a_batch_with_the_same_seed() -> None:
    envs = ThreeUpVectorEnv(20, max_steps=60, seat=0)
    batch = Batch(20, max_steps=60)
    batch.reset(seed=4)
    first, _ = envs.reset(seed=4)
    np.testing.assert_array_equal(first, batch.observations)
    batch.reset()
    ended = np.zeros(20, np.bool_)
    for step in range(100):
        observations, _, terminations, truncations, _ = envs.step(choose(envs.action_masks(), step))
        new = (terminations | truncations) & ~ended
        np.testing.assert_array_equal(observations[new], batch.observations[new])
        ended |= new
    assert ended.all()


def test_infos_are_those_of_gymnasiums_own_vector_env() -> None:
    own = ThreeUpVectorEnv(4, max_steps=40, seat=0)
    theirs = SyncVectorEnv(
        [lambda: ThreeUpEnv(max_steps=40, seat=0)] * 4, autoreset_mode=AutoresetMode.SAME_STEP
    )

    def shapes(infos: dict[str, Any]) -> dict[str, Any]:
        return {
            key: shapes(value) if isinstance(value, dict) else (value.shape, value.dtype)
            for key, value in infos.items()
        }

    one, other = own.reset(seed=0)[1], theirs.reset(seed=0)[1]
    assert shapes(one) == shapes(other)
    ends = 0
    while ends < 5:
        one = own.step(one["action_mask"].argmax(axis=1))[-1]
        other = theirs.step(other["action_mask"].argmax(axis=1))[-1]
        if "final_obs" in one and "final_obs" in other:
            assert shapes(one) == shapes(other)
            ends += 1


def test_gymnasiums_vector_wrappers_work() -> None:
    envs = DictInfoToList(RecordEpisodeStatistics(ThreeUpVectorEnv(6, max_steps=60)))
    _, listed = envs.reset(seed=0)
    episodes = []
    for _ in range(100):
        actions = np.array([info["action_mask"].argmax() for info in listed])
        _, _, terminations, truncations, listed = envs.step(actions)
        ended = np.flatnonzero(terminations | truncations)
        episodes += [listed[row]["episode"] for row in ended]
        assert all("final_obs" in listed[row] for row in ended)
    assert len(episodes) > 6
    assert {float(episode["r"]) for episode in episodes} <= {-1, 0, 1}


class Watcher:
    """Plays the first legal action and notes how many rows it got and for which seats."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, set[int]]] = []

    def act(self, observations: npt.NDArray[np.int8], action_masks: Masks) -> npt.NDArray[np.int64]:
        """The first legal action."""
        self.calls.append((len(observations), set(decode(observations)["seat"].tolist())))
        assert action_masks.any(axis=1).all()
        actions: npt.NDArray[np.int64] = action_masks.argmax(axis=1)
        return actions


def test_all_that_wait_for_one_opponent_act_in_one_call() -> None:
    watcher = Watcher()
    envs = ThreeUpVectorEnv(50, num_players=4, opponents=watcher, seat=3)
    envs.reset(seed=0)
    # Three seats lay three cards each, in all fifty games at once.
    assert watcher.calls == [(50, {seat}) for seat in (0, 1, 2) for _ in range(3)]
    watcher.calls.clear()
    run(envs, 60)
    most = max(rows for rows, _ in watcher.calls)
    assert most > 25, "the rows are played together"
    assert len({frozenset(seats) for _, seats in watcher.calls}) > 3, "seats are mixed in one call"


def test_each_of_several_opponents_sits_at_its_place_from_the_learner() -> None:
    near, far = Watcher(), Watcher()
    envs = ThreeUpVectorEnv(40, num_players=4, opponents=[near, far, near], seat=1)
    envs.reset(seed=0)
    run(envs, 30)
    assert set().union(*(seats for _, seats in near.calls)) == {2, 0}
    assert set().union(*(seats for _, seats in far.calls)) == {3}


def test_an_opponents_bad_answer_is_refused() -> None:
    class Vague(Watcher):
        def act(self, observations: npt.NDArray[np.int8], action_masks: Masks) -> Any:
            """Not integers."""
            return np.zeros(len(observations))

    envs = ThreeUpVectorEnv(3, opponents=Vague(), seat=1)
    with pytest.raises(ValueError, match=r"opponent .*: expected integers of shape \(3,\); got fl"):
        envs.reset(seed=0)


def test_an_illegal_action_raises_and_changes_nothing() -> None:
    envs, twin = ThreeUpVectorEnv(4, seat=0), ThreeUpVectorEnv(4, seat=0)
    for env in (envs, twin):
        env.reset(seed=2)
    actions = choose(envs.action_masks(), 0)
    actions[2] = PICK_UP
    with pytest.raises(IllegalActionError, match=r"game 2, seat 0: expected one of .* 'pick up'"):
        envs.step(actions)
    for wrong in (actions[:3], actions.astype(np.float32)):
        with pytest.raises(ValueError, match=r"actions: expected integers of shape \(4,\); got"):
            envs.step(wrong)
    assert_same(run(envs, 20), run(twin, 20), rows=4)
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        ThreeUpVectorEnv(1).step([0])


def test_an_illegal_action_may_end_its_own_game_instead() -> None:
    envs = ThreeUpVectorEnv(4, num_players=3, seat=0, illegal_action="terminate")
    twin = ThreeUpVectorEnv(4, num_players=3, seat=0)
    before, _ = envs.reset(seed=2)
    twin.reset(seed=2)
    actions = choose(envs.action_masks(), 0)
    expected, *_ = twin.step(actions)
    actions[2] = PICK_UP
    observations, rewards, terminations, truncations, infos = envs.step(actions)
    assert rewards.tolist() == [0, 0, -1, 0]
    assert terminations.tolist() == [False, False, True, False]
    assert not truncations.any()
    np.testing.assert_array_equal(infos["final_obs"][2], before[2])
    assert decode(observations[2])["laying"] == 3
    kept = [0, 1, 3]
    np.testing.assert_array_equal(observations[kept], expected[kept])
    for action in (-1, 94):
        assert envs.step(np.full(4, action))[1].tolist() == [-1, -1, -1, -1]


def test_games_over_before_my_first_decision_are_one_step_and_keep_their_reward() -> None:
    envs = ThreeUpVectorEnv(3000, variant="mini", skip_forced=True)
    observations, _ = envs.reset(seed=0)
    undecided, lost = 0, 0.0
    for step in range(30):
        ended = ~decode(observations)["seats"]["acting"].any(axis=1)
        masks = envs.action_masks()
        assert (masks[ended].nonzero()[1] == PICK_UP).all()
        views = observations[ended]
        observations, rewards, terminations, truncations, infos = envs.step(choose(masks, step))
        assert (terminations | truncations)[ended].all()
        for view, last in zip(views, infos["final_obs"][ended], strict=True):
            np.testing.assert_array_equal(view, last)
        undecided += ended.sum()
        lost += rewards[ended].sum()
    assert undecided > 0
    assert lost == -undecided, "without a single choice such games are lost"


@pytest.mark.parametrize("max_steps", [1, 5, 6])
def test_a_very_small_step_limit_works_in_every_seat(max_steps: int) -> None:
    envs = ThreeUpVectorEnv(12, num_players=3, max_steps=max_steps)
    envs.reset(seed=0)
    for _ in range(12):
        _, rewards, _, truncations, _ = envs.step(choose(envs.action_masks(), 0))
        assert (rewards == np.where(truncations, -0.5, 0)).all()
    assert truncations.any()


def test_decks_can_be_given() -> None:
    decks = np.stack([sorted_deck("standard"), sorted_deck("standard")[::-1]])
    batch = Batch(2)
    batch.reset(decks=decks)
    envs = ThreeUpVectorEnv(2, seat=0)
    observations, _ = envs.reset(options={"decks": decks})
    np.testing.assert_array_equal(observations, batch.observations)
    with pytest.raises(ValueError, match="options: expected 'decks' or 'reset_mask'; got 'deck'"):
        envs.reset(options={"deck": decks[0]})


def test_seats_are_drawn_afresh_and_fairly() -> None:
    envs = ThreeUpVectorEnv(600, num_players=5, max_steps=1)
    seats = []
    observations, _ = envs.reset(seed=0)
    for _ in range(3):
        seats.append(decode(observations)["seat"].copy())
        observations, *_ = envs.step(envs.action_masks().argmax(axis=1))
    counts = np.bincount(np.concatenate(seats), minlength=5)
    assert np.abs(counts - 360).max() < 70  # four standard deviations of 17
    assert (seats[0] != seats[1]).any()


def test_default_opponents_play_every_legal_action_alike() -> None:
    streams = np.zeros(6000, np.uint64)
    streams[:] = np.random.SeedSequence(0).generate_state(6000, np.uint64)
    masks = np.zeros((6000, 94), np.bool_)
    masks[:, [3, 40, 93]] = True
    drawn = np.zeros(6000, np.int64)
    draw_uniformly(streams, np.arange(6000), masks, drawn)
    counts = np.bincount(drawn, minlength=94)[[3, 40, 93]]
    assert counts.sum() == 6000
    assert np.abs(counts - 2000).max() < 150  # four standard deviations of 37


def test_a_draw_without_a_choice_leaves_the_stream_alone() -> None:
    streams = np.array([7], np.uint64)
    masks = np.zeros((1, 94), np.bool_)
    masks[0, 50] = True
    drawn = np.zeros(1, np.int64)
    draw_uniformly(streams, np.array([0]), masks, drawn)
    assert (drawn[0], streams[0]) == (50, 7)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
@pytest.mark.parametrize("opponents", [None, Watcher()])
def test_a_copy_goes_on_identically(clone: Any, opponents: Watcher | None) -> None:
    envs = ThreeUpVectorEnv(8, num_players=3, opponents=opponents)
    envs.reset(seed=3)
    run(envs, 25)
    twin = clone(envs)
    assert_same(run(envs, 100), run(twin, 100), rows=8)
    assert_same([envs.reset()[:1]], [twin.reset()[:1]], rows=8)


def test_three_resets_of_one_env_equal_three_fresh_envs() -> None:
    kept = ThreeUpVectorEnv(4, num_players=3)
    for seed in (3, 1, 3):
        fresh = ThreeUpVectorEnv(4, num_players=3)
        for envs in (kept, fresh):
            envs.reset(seed=seed)
        assert_same(run(kept, 60), run(fresh, 60), rows=4)


def test_the_tables_are_drawn_as_the_learners_see_them() -> None:
    envs = ThreeUpVectorEnv(2, seat=1, render_mode="ansi")
    envs.reset(seed=0)
    texts = envs.render()
    assert texts is not None
    assert all("seen by seat 1" in text for text in texts)
    assert ThreeUpVectorEnv(2).render() is None


def test_a_learner_sees_nothing_but_its_own_seat() -> None:
    games = LearnerGames(50, 4, "standard", 1000, None, None, False, "raise")
    games.reset(seed=0)
    for step in range(60):
        games.step(choose(games.action_masks, step))
        np.testing.assert_array_equal(games.observations, games.batch.observe(games.seats))
        if games.ended.any():
            games.reset(rows=np.flatnonzero(games.ended))


LONG_RUN = """
import resource, sys
from pathlib import Path
import numpy as np
from threeup_env import ThreeUpEnv, ThreeUpVectorEnv

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024

def step_vector(count):
    for _ in range(count // 50):
        masks = envs.action_masks()
        envs.step((rng.random(masks.shape) * masks).argmax(axis=1))

def step_gym(count):
    for _ in range(count):
        legal = np.flatnonzero(env.action_masks())
        _, _, terminated, truncated, _ = env.step(rng.choice(legal))
        if terminated or truncated:
            env.reset()

rng = np.random.default_rng(0)
envs, env = ThreeUpVectorEnv(50, num_players=3), ThreeUpEnv(num_players=3)
envs.reset(seed=0)
env.reset(seed=0)
step = {"vector": step_vector, "gym": step_gym}[sys.argv[1]]
step(20_000)
before = resident()
step(100_000)
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="platform: the size is read from /proc"
)
@pytest.mark.parametrize("face", ["vector", "gym"])
def test_memory_stays_flat_over_100_000_steps(face: str) -> None:
    # A process of its own: in this one, memory that an earlier test gave back would hide growth.
    command = [sys.executable, "-c", LONG_RUN, face]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    assert int(done.stdout) < 4096, f"{done.stdout.strip()} KiB more"
