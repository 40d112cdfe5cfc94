import copy
import importlib
import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor

from threeup_agents import make
from threeup_env import ThreeUpEnv, ThreeUpVectorEnv, decode
from threeup_env.engine.cards import sorted_deck
from threeup_env.envs.sb3 import ThreeUpVecEnv


def vec_env(num_envs: int = 8, **options: Any) -> ThreeUpVecEnv:
    return ThreeUpVecEnv(ThreeUpVectorEnv(num_envs, **options))


def choose(masks: Any, step: int) -> Any:
    """A legal action a row that depends on the row's own mask and the step alone."""
    legal = [np.flatnonzero(mask) for mask in masks]
    return np.array([ids[step % len(ids)] for ids in legal])


def run(env: VecEnv, steps: int) -> list[Any]:
    """What each step showed, masks included, in a form that can be compared."""
    seen = []
    for step in range(steps):
        masks = get_action_masks(env)
        env.step_async(choose(masks, step))
        observations, rewards, dones, infos = env.step_wait()
        last = [np.asarray(info.get("terminal_observation", ())).tolist() for info in infos]
        assert isinstance(observations, np.ndarray)
        seen.append((masks.tolist(), observations.tolist(), rewards.tolist(), dones.tolist(), last))
    return seen


def test_masks_are_found_where_sb3_contrib_looks() -> None:
    env = vec_env()
    env.seed(1)
    env.reset()
    assert is_masking_supported(env)
    masks = get_action_masks(env)
    assert masks.shape == (8, 94)
    assert masks.dtype == np.bool_
    np.testing.assert_array_equal(masks, env.env.action_masks())
    np.testing.assert_array_equal(env.env_method("action_masks", indices=[3, 1]), masks[[3, 1]])
    np.testing.assert_array_equal(env.env_method("action_masks", indices=3), masks[[3]])
    np.testing.assert_array_equal([mask() for mask in env.get_attr("action_masks")], masks)
    assert not env.has_attr("no_such_thing")
    with pytest.raises(AttributeError):
        env.env_method("no_such_thing")
    assert get_action_masks(VecMonitor(env)).shape == (8, 94)


def test_the_end_of_a_game_is_told_as_sb3_expects() -> None:
    env = vec_env(num_players=3, max_steps=90, opponents=make("greedy"), seat=2)
    env.seed(0)
    env.reset()
    lengths = np.zeros(8, np.int64)
    outcomes = []
    for step in range(150):
        env.step_async(choose(get_action_masks(env), step))
        observations, rewards, dones, infos = env.step_wait()
        lengths += 1
        assert not rewards[~dones].any()
        for row in range(8):
            if not dones[row]:
                assert infos[row] == {}
                continue
            last = infos[row]["terminal_observation"]
            assert not decode(last)["seats"]["acting"].any()
            assert decode(observations[row])["laying"] > 0  # type: ignore[index]
            assert infos[row]["TimeLimit.truncated"] is False
            assert infos[row]["episode"]["r"] == rewards[row]
            assert infos[row]["episode"]["l"] == lengths[row]
            outcomes.append((float(rewards[row]), bool(decode(last)["steps_left"] == 0)))
            lengths[row] = 0
    assert {True, False} == {is_cut_off for _, is_cut_off in outcomes}
    assert {reward for reward, is_cut_off in outcomes if not is_cut_off} <= {1, -0.5}


def test_seeds_and_decks_reach_the_games() -> None:
    env, direct = vec_env(4, seat=0), ThreeUpVectorEnv(4, seat=0)
    env.seed(9)
    np.testing.assert_array_equal(env.reset(), direct.reset(seed=9)[0])
    np.testing.assert_array_equal(env.reset(), direct.reset()[0])
    deck = sorted_deck("standard")
    env.set_options({"deck": deck})
    decks = np.tile(deck, (4, 1))
    np.testing.assert_array_equal(env.reset(), direct.reset(options={"decks": decks})[0])
    np.testing.assert_array_equal(env.reset(), direct.reset()[0])


def test_an_unknown_option_is_refused() -> None:
    env = vec_env(2)
    env.set_options({"decks": sorted_deck("standard")})
    with pytest.raises(ValueError, match="options: expected 'deck' alone; got 'decks'"):
        env.reset()


def test_pictures_are_those_of_the_games() -> None:
    pytest.importorskip("resvg_py")
    env = vec_env(2, render_mode="rgb_array")
    env.seed(5)
    env.reset()
    pictures: Any = env.env.render()
    np.testing.assert_array_equal(env.get_images(), pictures)
    assert not np.array_equal(*pictures)
    tiled = env.render()
    assert tiled is not None
    assert tiled.shape[2] == 3
    assert tiled.size == 2 * pictures[0].size
    assert vec_env(2).get_images() == [None, None]


def test_an_empty_mask_is_refused() -> None:
    class Broken(ThreeUpVectorEnv):
        def action_masks(self) -> Any:
            """No legal action in game 1."""
            masks = super().action_masks()
            masks[1] = False
            return masks

    with pytest.raises(RuntimeError, match="game 1: expected a legal action; got an empty mask"):
        ThreeUpVecEnv(Broken(2)).reset()


def test_calls_out_of_order_are_told_so() -> None:
    with pytest.raises(RuntimeError, match=r"call step_async\(\) before step_wait\(\)"):
        vec_env(1).step_wait()
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        vec_env(1).step(np.zeros(1, np.int64))


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_identically(clone: Any) -> None:
    env = vec_env(4, num_players=3, opponents=make("random", seed=3), max_steps=100)
    env.seed(2)
    env.reset()
    run(env, 20)
    twin = clone(env)
    assert run(env, 60) == run(twin, 60)


def test_three_resets_of_one_env_equal_three_fresh_envs() -> None:
    kept = vec_env(3, max_steps=100)
    for seed in (3, 1, 3):
        fresh = vec_env(3, max_steps=100)
        for env in (kept, fresh):
            env.seed(seed)
            env.reset()
        assert run(kept, 60) == run(fresh, 60)


def test_without_stable_baselines3_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("stable_baselines3")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "threeup_env.envs.sb3")
    with pytest.raises(ModuleNotFoundError, match=r"needs stable-baselines3: pip install 'threeup"):
        importlib.import_module("threeup_env.envs.sb3")


def small_ppo(env: VecEnv) -> MaskablePPO:
    return MaskablePPO(
        "MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu"
    )


def watch_deals(env: ThreeUpVecEnv, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bytes]]:
    """A list that grows by the row and the cards of each game that is dealt from now on."""
    dealt: list[tuple[int, bytes]] = []
    batch = env.env.games.batch
    reset = batch.reset

    def noting(seed: Any = None, decks: Any = None, rows: Any = None) -> None:
        reset(seed=seed, decks=decks, rows=rows)
        numbers = range(batch.num_games) if rows is None else rows.tolist()
        dealt.extend((row, batch.states[row]["draw_pile"].tobytes()) for row in numbers)

    monkeypatch.setattr(batch, "reset", noting)
    return dealt


@pytest.mark.slow
def test_equal_runs_are_dealt_equal_games(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for _ in range(2):
        env = vec_env(max_steps=60)
        dealt = watch_deals(env, monkeypatch)
        small_ppo(env).learn(500)
        runs.append(list(dealt))
    assert runs[0] == runs[1]
    assert len(runs[0]) > 8


@pytest.mark.slow
@pytest.mark.parametrize("same_env", [True, False])
@pytest.mark.parametrize("how", ["load(seed=)", "set_random_seed"])
def test_a_loaded_model_learns_from_new_deals_under_a_new_seed(
    how: str, same_env: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = vec_env(max_steps=60)
    dealt = watch_deals(env, monkeypatch)
    model = small_ppo(env)
    model.learn(500)
    for run in range(1, 3):  # it goes on, and goes on again
        model.save(tmp_path / "model")
        before = set(dealt)
        if not same_env:
            env = vec_env(max_steps=60)
        fresh = watch_deals(env, monkeypatch)
        options: dict[str, Any] = {"seed": run} if how == "load(seed=)" else {}
        model = MaskablePPO.load(tmp_path / "model", env=env, **options)
        if how == "set_random_seed":
            model.set_random_seed(model.num_timesteps)
        model.learn(500, reset_num_timesteps=False)
        assert len(fresh) > 8
        assert not before & set(fresh)
        dealt += fresh


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_an_env_with_another_autoreset_mode_is_refused(mode: AutoresetMode) -> None:
    with pytest.raises(
        ValueError, match=f"env: expected autoreset_mode .*SAME_STEP; got AutoresetMode.{mode.name}"
    ):
        vec_env(2, autoreset_mode=mode)


@pytest.mark.parametrize(("seed", "error"), [("a", TypeError), (1.5, TypeError), (-1, ValueError)])
def test_a_wrong_seed_is_refused_by_name(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="seed: expected None or an integer of at least 0; got "):
        vec_env(2).seed(seed)


@pytest.mark.slow
def test_maskable_ppo_learns_from_dictionaries() -> None:
    env = vec_env(num_players=3, max_steps=60, dict_observation=True)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=64, batch_size=64, n_epochs=1)
    model.learn(800)
    assert model.num_timesteps >= 800


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        pytest.param(partial(vec_env, num_players=3, max_steps=60), id="ThreeUpVecEnv"),
        pytest.param(
            lambda: DummyVecEnv([partial(ThreeUpEnv, num_players=3, max_steps=60)] * 4),
            id="DummyVecEnv",
        ),
    ],
)
def test_maskable_ppo_learns_with_legal_actions_only(env: Any) -> None:
    model = small_ppo(env())
    model.learn(800)  # an illegal action would raise
    assert model.num_timesteps >= 800


@pytest.mark.slow
def test_maskable_ppo_logs_the_episodes() -> None:
    model = small_ppo(vec_env(max_steps=60))
    model.learn(800)
    assert model.ep_info_buffer
    assert {episode["r"] for episode in model.ep_info_buffer} <= {-1, 0, 1}


@pytest.mark.slow
def test_a_predicted_action_is_legal_under_its_mask() -> None:
    env = vec_env(16, num_players=4)
    model = small_ppo(env)
    observations: Any = env.reset()
    for _ in range(64):
        masks = get_action_masks(env)
        actions, _ = model.predict(observations, action_masks=masks)
        assert masks[np.arange(16), actions].all()
        observations, *_ = env.step(actions)


@pytest.mark.slow
def test_processes_of_their_own_play_the_same_games() -> None:
    makers = [partial(ThreeUpEnv, num_players=3, max_steps=60)] * 2
    inside = DummyVecEnv(list(makers))
    outside = SubprocVecEnv(list(makers), start_method="spawn")
    try:
        for env in (inside, outside):
            env.seed(4)
            env.reset()
        assert is_masking_supported(outside)
        assert run(inside, 64) == run(outside, 64)
    finally:
        outside.close()
