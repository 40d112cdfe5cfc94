import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from stable_baselines3.common import logger

import threeup_agents
from tests.markdown import table_rows
from tests.players.test_policy import policy_for
from threeup_agents.players import policy as ppo
from threeup_agents.training import __main__ as train
from threeup_agents.training import run
from threeup_agents.training.masked_softmax import log_probs_and_entropies
from threeup_agents.training.privileged import NUM_DRAWS, privileged_size, write_privileged
from threeup_agents.training.rollout_buffer import ChainBuffer
from threeup_agents.training.selfplay import SelfPlayPPO, policy_of
from threeup_agents.training.settings import Config
from threeup_env import Batch
from threeup_env.agent import name_of

ROOT = Path(__file__).parents[2]
torch.set_num_threads(1)  # these networks are too small for more


def learner(num_players: int = 2, **settings: Any) -> SelfPlayPPO:
    """A small learner with its games dealt."""
    small: dict[str, Any] = {
        "num_games": 32,
        "rollout_steps": 40,
        "minibatch": 256,
        "hidden": (32, 32),
    }
    config = Config(num_players=num_players, **(small | settings))
    model = run.build(config)
    model._setup_learn(config.decisions)
    return model


def collect(model: SelfPlayPPO) -> ChainBuffer:
    """One rollout, without an update."""
    buffer = model.rollout_buffer
    model.collect_rollouts(model.env, model._init_callback(None), buffer, model.n_steps)
    return buffer


def train_once(model: SelfPlayPPO) -> None:
    """One rollout and its update."""
    collect(model)
    model.set_logger(logger.configure(None, []))
    model.train()


@pytest.mark.parametrize("num_players", [2, 5])
def test_the_probability_ratio_is_1_before_the_first_update(num_players: int) -> None:
    model = learner(num_players)
    for _ in range(3):
        train_once(model)
    for sample in collect(model).get(256):
        _, log_probs, _ = model.policy.evaluate_actions(
            sample.observations, sample.actions, sample.action_masks
        )
        ratio = (log_probs - sample.old_log_prob).exp()
        torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=1e-6, rtol=0)


@pytest.mark.parametrize("num_players", range(2, 7))
def test_advantages_are_those_of_plain_python(num_players: int) -> None:
    model = learner(num_players, gamma=0.9, gae_lambda=0.8, max_steps=60)
    collect(model)
    buffer = collect(model)
    expected: dict[int, float] = {}
    for rows in by_chain(buffer).values():
        advantage = 0.0
        for row, following in zip(reversed(rows), [None, *reversed(rows[1:])], strict=True):
            value = float(buffer.all_values[row])
            if buffer.ends[row]:
                advantage = float(buffer.rewards[row]) - value
            elif following is not None:
                delta = 0.9 * float(buffer.all_values[following]) - value
                advantage = delta + 0.9 * 0.8 * advantage
            else:
                advantage = 0.0
                continue
            expected[row] = advantage
    assert sorted(expected) == buffer.trained.tolist()
    assert buffer.ends.any()
    plain = np.array([expected[row] for row in sorted(expected)])
    np.testing.assert_allclose(buffer.advantages, plain, atol=1e-5)
    np.testing.assert_allclose(buffer.returns, buffer.advantages + buffer.values)


def by_chain(buffer: ChainBuffer) -> dict[int, list[int]]:
    """Rows of the buffer by game and seat, in order of time."""
    chains = defaultdict(list)
    for row in range(buffer.pos):
        chains[int(buffer.chains[row])].append(row)
    return chains


@pytest.mark.parametrize("num_players", range(2, 7))
def test_every_seat_is_paid_its_own_outcome(num_players: int) -> None:
    model = learner(num_players, max_steps=300)
    outcomes = record_outcomes(model.env.batch)
    paid: dict[tuple[int, int], list[float]] = defaultdict(list)
    for _ in range(8):
        buffer = collect(model)
        for row in np.flatnonzero(buffer.ends[: buffer.pos]):
            chain = int(buffer.chains[row])
            paid[chain // num_players, chain % num_players].append(float(buffer.rewards[row]))
        unpaid = ~buffer.ends[: buffer.pos]
        assert (buffer.rewards[: buffer.pos][unpaid] == 0).all()
    assert sum(map(len, outcomes.values())) > 20
    for game, rewards in outcomes.items():
        table = np.array([paid[game, seat] for seat in range(num_players)])
        np.testing.assert_array_equal(table.T, rewards)
        lost = np.float32(-1 / (num_players - 1))
        won = table == 1
        assert ((table == lost) | won).all()
        assert (won.sum(axis=0) <= 1).all()  # none if the game was cut off


def record_outcomes(batch: Batch) -> dict[int, list[npt.NDArray[np.float32]]]:
    """Write down the rewards of every game that ends, by its row."""
    outcomes: dict[int, list[npt.NDArray[np.float32]]] = defaultdict(list)
    step = batch.step

    def recorded(actions: Any, rows: Any = None) -> None:
        step(actions, rows)
        for game in np.flatnonzero(batch.terminations | batch.truncations):
            outcomes[int(game)].append(batch.rewards[game].copy())

    batch.step = recorded  # type: ignore[method-assign]
    return outcomes


def test_every_decision_is_trained_on_once() -> None:
    model = learner(3)
    trained = sum(collect(model).num_trained for _ in range(4))
    assert model.carried is not None
    assert trained + len(model.carried["chains"]) == model.num_timesteps


@pytest.mark.parametrize(("num_players", "variant"), [(4, "standard"), (2, "mini")])
def test_forced_moves_never_reach_the_network(num_players: int, variant: str) -> None:
    buffer = collect(learner(num_players, variant=variant, num_games=200))
    assert (buffer.action_masks[: buffer.pos].sum(axis=1) > 1).all()
    rows = np.arange(buffer.pos)
    assert buffer.action_masks[rows, buffer.actions[: buffer.pos]].all()


@pytest.mark.parametrize("num_players", [2, 4])
def test_one_seat_learns_and_greedy_plays_the_others(num_players: int) -> None:
    model = learner(num_players, one_seat=True, num_games=256)
    assert list(map(name_of, model.env.opponents)) == ["greedy"]
    assert (np.sum(model.env.seat_agents == 0, axis=1) == 1).all()
    seats = np.bincount((model.env.seat_agents == 0).argmax(axis=1), minlength=num_players)
    assert seats.min() > 256 / num_players / 2
    collect(model)
    learning = set(zip(*np.nonzero(model.env.seat_agents == 0), strict=True))
    still_open = {divmod(int(chain), num_players) for chain in (model.carried or {})["chains"]}
    assert still_open <= learning


def test_a_share_of_the_games_is_against_the_pool() -> None:
    model = learner(3, opponents=("random",), opponent_share=0.25, num_games=512)
    for _ in range(3):
        model.add_snapshot(pool_size=2)
    assert list(map(name_of, model.env.opponents)) == ["random", "snapshot", "snapshot"]
    model.env.reset()
    with_opponent = (model.env.seat_agents > 0).any(axis=1)
    assert 0.15 < with_opponent.mean() < 0.35
    assert set(np.unique(model.env.seat_agents)) == {0, 1, 2, 3}
    collect(model)


def test_a_teacher_plays_first_and_is_imitated() -> None:
    model = learner(
        3, teacher="careful", teacher_decisions=20_000, num_games=128, learning_rate=3e-3
    )
    careful = threeup_agents.make("careful")

    def as_the_teacher(buffer: ChainBuffer) -> npt.NDArray[np.bool_]:
        rows = slice(0, buffer.pos)
        seen = buffer.observations[rows, : model.policy.num_seen]
        return np.asarray(
            careful.act(seen, buffer.action_masks[rows]) == buffer.actions[rows], np.bool_
        )

    assert as_the_teacher(collect(model)).all()
    while model.num_timesteps < 20_000:
        train_once(model)
    imitated = as_the_teacher(collect(model))
    assert not imitated.all()  # now the policy itself plays
    assert imitated.mean() > 0.6
    assert as_the_teacher(collect(learner(3, num_games=128))).mean() < 0.4


def test_the_teachers_last_rollout_is_imitated_too() -> None:
    model = learner(teacher="careful", teacher_decisions=100)
    train_once(model)  # takes more decisions than that
    assert model.num_timesteps > 100
    assert "train/teacher_agreement" in model.logger.name_to_value
    train_once(model)
    assert "train/approx_kl" in model.logger.name_to_value


def test_training_starts_from_a_policy() -> None:
    start = policy_for(3, levels=2)
    model = learner(3, hidden=(16,), levels=2)
    model.policy.load_actor(start)
    batch = Batch(50, 3, seed=1)
    batch.reset()
    seen = batch.observations, batch.action_masks
    exported = model.export((3,))
    np.testing.assert_allclose(exported.probabilities(*seen), start.probabilities(*seen), atol=1e-5)
    with pytest.raises(ValueError, match=r"start from: expected layers \[\(64, "):
        learner(3, hidden=(64,)).policy.load_actor(start)
    with pytest.raises(ValueError, match=r"hidden \[16\], levels 2\)"):
        learner(3, hidden=(16,), levels=9).policy.load_actor(start)
    with pytest.raises(ValueError, match="'greedy': expected a policy, such as a run's folder"):
        policy_of("greedy")


def test_a_run_that_learns_nothing_ends_as_the_policy_that_it_starts_from(tmp_path: Path) -> None:
    policy_for(3, levels=2).save(tmp_path / "start.safetensors")
    options = ["--num-players", "3", "--num-games", "32", "--rollout-steps", "16"]
    options += ["--hidden", "16", "--levels", "2"]
    options += ["--minibatch", "512", "--decisions", "500", "--learning-rate", "1e-12"]
    options += ["--num-threads", "1", "--ladder-deals", "5", "--run-dir", str(tmp_path / "run")]
    start = tmp_path / "start.safetensors"
    assert train.main([*options, "--start-from", str(start)]) == 0
    exported = ppo.read(tmp_path / "run" / "policy.safetensors")
    for own, other in zip(exported.layers, ppo.read(start).layers, strict=True):
        np.testing.assert_allclose(own[0], other[0], atol=1e-6)


def test_games_that_are_dealt_anew_have_no_earlier_decisions() -> None:
    model = learner(3)
    model.learn(2000)
    assert model.carried is not None
    model._setup_learn(2000)
    buffer = collect(model)
    assert buffer.pos == model.num_timesteps  # what was played since, and nothing carried
    assert (buffer.last < buffer.pos).all()


@pytest.mark.parametrize("settings", [{}, {"lookahead": True}])
def test_sb3_saves_and_loads_a_learner(settings: dict[str, Any], tmp_path: Path) -> None:
    model = learner(3, opponents=("greedy",), opponent_share=0.5, **settings)
    train_once(model)
    model.save(tmp_path / "model")
    games = learner(3, seed=5, opponent_share=0.5).env
    loaded = type(model).load(tmp_path / "model", env=games)
    assert loaded.num_timesteps == model.num_timesteps
    assert loaded.rng.random() == model.rng.random()
    assert loaded.rollout_buffer.rng is loaded.rng
    assert list(map(name_of, games.opponents)) == ["greedy"]
    weights, others = loaded.policy.state_dict(), model.policy.state_dict()
    for name, own in weights.items():
        torch.testing.assert_close(own, others[name], atol=0, rtol=0)
    assert loaded.carried is None
    with pytest.raises(ValueError, match="env: expected the games to learn from; got None"):
        type(model).load(tmp_path / "model")
    with pytest.raises(ValueError, match=r"device: expected 'cpu'.*; got 'cuda'"):
        type(model)(games, device="cuda")
    loaded.learn(500, reset_num_timesteps=False)
    assert loaded.num_timesteps >= model.num_timesteps + 500


@pytest.mark.parametrize(("num_trained", "sizes"), [(2, {2}), (3, {3}), (7, {2, 3}), (9, {2, 3})])
def test_no_minibatch_is_a_single_decision(num_trained: int, sizes: set[int]) -> None:
    buffer = collect(learner())
    for name in ("trained", "values", "advantages", "returns"):
        setattr(buffer, name, getattr(buffer, name)[:num_trained])
    buffer.num_trained = num_trained
    assert {len(sample.actions) for sample in buffer.get(2)} == sizes


def test_rollouts_of_next_to_nothing_are_survived() -> None:
    model = learner(num_games=1, rollout_steps=1, minibatch=2)
    for _ in range(20):
        train_once(model)
    assert np.isfinite(model.export((2,)).layers[0][0]).all()


def test_illegal_actions_have_no_probability() -> None:
    model = learner()
    buffer = collect(model)
    with torch.no_grad():
        for parameter in model.policy.actor.parameters():
            parameter.mul_(10)
    masks = buffer.action_masks[: buffer.pos]
    observations = buffer.observations[: buffer.pos]
    probabilities = torch_probabilities(model, observations, masks)
    assert probabilities[~masks].max() < 1e-8


def torch_probabilities(
    model: SelfPlayPPO, observations: npt.NDArray[np.int8], masks: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """The probabilities that SB3 itself works with."""
    distribution: Any = model.policy.get_distribution(torch.from_numpy(observations), masks)
    probabilities: npt.NDArray[np.float32] = distribution.distribution.probs.detach().numpy()
    return probabilities


def test_the_masked_softmax_is_torchs_and_so_is_its_gradient() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(50, 94, dtype=torch.float64, generator=generator, requires_grad=True)
    masks = torch.rand(50, 94, generator=generator) < 0.1
    masks[:, 5] = True
    actions = torch.multinomial(masks.double(), 1, generator=generator).squeeze(1)
    expected = torch.log_softmax(logits.masked_fill(~masks, -1e8), dim=1)
    entropies = -(expected.exp() * expected).sum(1)
    pairs = zip(
        log_probs_and_entropies(logits, masks, actions),
        (expected.gather(1, actions[:, None]).squeeze(1), entropies),
        strict=True,
    )
    weights = torch.randn(50, dtype=torch.float64, generator=generator)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)
        gradients = [
            torch.autograd.grad((values * weights).sum(), logits, retain_graph=True)[0]
            for values in (ours, theirs)
        ]
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("levels", [0, 4])
def test_the_policy_does_not_see_what_only_the_critic_may(levels: int) -> None:
    model = learner(3, levels=levels)
    train_once(model)
    buffer = collect(model)
    seen = torch.from_numpy(buffer.observations[: buffer.pos])
    changed = seen.clone()
    hidden = changed[:, model.policy.num_seen :]
    hidden[:] = hidden.flip(0)
    with torch.no_grad():
        logits, values = model.policy.both(seen)
        other_logits, other_values = model.policy.both(changed)
    torch.testing.assert_close(logits, other_logits, atol=0, rtol=0)
    assert (values != other_values).any()
    assert learner(3, privileged_critic=False).observation_space.shape == (168,)


@pytest.mark.parametrize("levels", [0, 4])
def test_numpy_and_torch_give_the_same_probabilities(levels: int) -> None:
    model = learner(hidden=(128, 128), levels=levels)
    for _ in range(3):
        train_once(model)
    buffer = collect(model)
    with torch.no_grad():
        for parameter in model.policy.actor.parameters():
            parameter.mul_(1.5)
    observations = buffer.observations[: buffer.pos]
    masks = buffer.action_masks[: buffer.pos]
    theirs = torch_probabilities(model, observations, masks)
    ours = model.export((2,)).probabilities(observations[:, : model.policy.num_seen], masks)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("num_players", [2, 6])
def test_privileged_input_is_the_hidden_cards(num_players: int) -> None:
    batch = Batch(1, num_players, seed=3)
    batch.reset()
    mover = np.random.default_rng(4)
    vector = np.empty(privileged_size(num_players), np.int8)
    for _ in range(60):
        game = batch.states[0]
        write_privileged(game, game.seat, vector)
        pile = game.draw_pile[: game.draw_pile_size][::-1][:NUM_DRAWS]
        assert vector[:NUM_DRAWS].tolist() == [*(pile + 1), *[0] * (NUM_DRAWS - len(pile))]
        blocks = vector[NUM_DRAWS + 3 :].reshape(num_players - 1, 16)
        for i, block in enumerate([vector[NUM_DRAWS : NUM_DRAWS + 3], *blocks]):
            seat = (game.seat + i) % num_players
            down = game.face_down[seat, : game.face_down_size[seat]][::-1] + 1
            assert block[:3].tolist() == [*down, *[0] * (3 - len(down))]
            if i:
                laid = game.face_up[seat] if game.laying else 0 * game.face_up[seat]
                assert block[3:].tolist() == (game.hand[seat] + laid).tolist()
        batch.step(mover.choice(np.flatnonzero(batch.action_masks[0]), 1))


def test_only_training_imports_what_only_the_critic_may_see() -> None:
    importers = []
    for path in [
        *ROOT.glob("threeup_env/**/*.py"),
        *ROOT.glob("agents/**/*.py"),
        *ROOT.glob("*.py"),
    ]:
        imported: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
        if any(name.startswith("threeup_agents.training.privileged") for name in imported):
            importers.append(path.name)
    assert importers == ["games.py"]


@pytest.mark.slow
def test_the_learner_finds_the_winning_move_of_the_smallest_deck(tmp_path: Path) -> None:
    """To shed one's last cards at once is never wrong (R20): look where it's one of several."""
    config = Config(
        variant="mini",
        decisions=2_000_000,  # half of it leaves a rare winning move to luck
        num_games=256,
        ladder=("greedy", "random"),
        ladder_every=10**9,
        run_dir=tmp_path / "run",
    )
    policy = ppo.read(run.run(config))
    chances, taken = winning_moves(policy)
    assert chances > 100
    assert taken > 0.95 * chances
    shares = {
        r["opponent"]: r["win_share"] for r in policy.training["curve"] if r["mode"] == "best"
    }
    assert shares["random"] > 0.6
    assert shares["greedy"] > 0.5


def winning_moves(policy: ppo.Policy) -> tuple[float, float]:
    """Positions where one action of several wins at once, and the probability given to it."""
    batch = Batch(2048, variant="mini", seed=9)
    batch.reset()
    rng = np.random.default_rng(1)
    chances = taken = 0.0
    for _ in range(200):
        masks = batch.action_masks
        rows, actions = np.nonzero(masks & (masks.sum(axis=1) > 1)[:, None])
        branches = Batch(len(rows), variant="mini", autoreset=False)
        branches.load(batch.states[rows])
        seats = branches.seats.copy()
        branches.step(actions)
        wins = branches.terminations & (branches.states["winner"] == seats)
        probabilities = policy.probabilities(batch.observations, masks)
        chances += wins.sum()
        taken += probabilities[rows[wins], actions[wins]].sum()
        batch.step((rng.random(masks.shape) * masks).argmax(axis=1))
    return chances, taken


@pytest.mark.slow
def test_every_metric_of_a_run_is_explained_in_the_pages(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = ["--num-games", "32", "--rollout-steps", "16", "--minibatch", "256"]
    options += ["--decisions", "6000"]
    options += ["--ladder-every", "3000", "--ladder-deals", "10", "--num-threads", "1"]
    taught = ["--teacher", "careful", "--teacher-decisions", "600"]
    logged: set[str] = set()
    exact = ["--variant", "mini", "--magnet", "0.1"]
    for name, more in (("ppo", taught), ("lookahead", ["--lookahead"]), ("exact", exact)):
        assert train.main([*options, *more, "--run-dir", str(tmp_path / name)]) == 0
        events = EventAccumulator(str(tmp_path / name / "logs"))
        events.Reload()
        logged |= set(events.Tags()["scalars"])
    named = [
        name
        for row in table_rows("docs/train.md", "metric")
        for name in re.findall("`([^`]+)`", row[0])
    ]
    assert sorted(named) == sorted(logged)
