"""The same decks and actions are the same games, whichever face they are played through."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from threeup_agents import make
from threeup_env import STATE_DTYPE, Batch
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import VARIANT_NAMES, VARIANTS, sorted_deck
from threeup_env.engine.observation import observation_size, write_observation
from threeup_env.engine.rules import apply_action, deal, win_share, write_legal_actions
from threeup_env.engine.state import CUT_OFF, EMPTY
from threeup_env.envs.aec import Env, env, raw_env
from threeup_env.envs.gym_env import ThreeUpEnv
from threeup_env.envs.sb3 import ThreeUpVecEnv
from threeup_env.envs.vector_env import ThreeUpVectorEnv

Decks = npt.NDArray[np.int8]
Decision = tuple[bytes, bytes, int]  # observation, mask as int8, action


@dataclass
class Game:
    """What one game showed: every decision by seat, and how it ended."""

    decisions: dict[int, list[Decision]] = field(default_factory=dict)
    rewards: list[float] = field(default_factory=list)
    is_cut_off: bool = False
    last: list[bytes] = field(default_factory=list)  # each seat's view of the end


@dataclass
class Episode:
    """What one learner saw of one game."""

    decisions: list[Decision] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    is_cut_off: bool = False
    last: bytes = b""  # the final observation


class Player:
    """Plays by what it sees alone: mostly as `greedy` does, now and then by a checksum."""

    def __init__(self) -> None:
        self.greedy = make("greedy")

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """One legal action a row; the same sight gets the same action."""
        actions = self.greedy.act(observations, action_masks)
        for row, observation in enumerate(observations):
            checksum = zlib.crc32(observation.tobytes())
            if checksum % 3 == 0:
                legal = np.flatnonzero(action_masks[row])
                actions[row] = legal[checksum // 3 % len(legal)]
        return actions

    def decide(self, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.bool_]) -> Decision:
        """One decision, as a trace keeps it."""
        action = int(self.act(observation[None], mask[None])[0])
        return observation.tobytes(), mask.astype(np.int8).tobytes(), action


PLAYER = Player()


def shuffled(variant: str, count: int, seed: int) -> Decks:
    rng = np.random.default_rng(seed)
    return rng.permuted(np.tile(sorted_deck(variant), (count, 1)), axis=1)


def through_record(num_players: int, variant: str, deck: Decks, max_steps: int) -> Game:
    game = Game()
    record = np.zeros(1, STATE_DTYPE)[0]
    record["variant"] = VARIANT_NAMES.index(variant)
    record["num_seats"] = num_players
    record["max_steps"] = max_steps
    deal(record, deck)
    legal = np.zeros(NUM_ACTIONS, np.int64)
    observation = np.zeros(observation_size(num_players), np.int8)
    while record["winner"] == EMPTY:
        mask = np.zeros(NUM_ACTIONS, np.bool_)
        mask[legal[: write_legal_actions(record, legal)]] = True
        seat = int(record["seat"])
        write_observation(record, seat, observation)
        decision = PLAYER.decide(observation, mask)
        game.decisions.setdefault(seat, []).append(decision)
        apply_action(record, decision[-1])
    shares = [win_share(record, seat) for seat in range(num_players)]
    game.rewards = [(num_players * share - 1) / (num_players - 1) for share in shares]
    game.is_cut_off = bool(record["winner"] == CUT_OFF)
    for seat in range(num_players):
        write_observation(record, seat, observation)
        game.last.append(observation.tobytes())
    return game


def through_batch(num_players: int, variant: str, decks: Decks, max_steps: int) -> list[Game]:
    batch = Batch(len(decks), num_players, variant, max_steps, autoreset=False)
    batch.reset(decks=decks)
    games = [Game() for _ in decks]
    while batch.action_masks.any():
        actions = np.zeros(len(decks), np.int64)
        for row in np.flatnonzero(batch.action_masks.any(axis=1)):
            decision = PLAYER.decide(batch.observations[row], batch.action_masks[row])
            games[row].decisions.setdefault(int(batch.seats[row]), []).append(decision)
            actions[row] = decision[-1]
        batch.step(actions)
        for row in np.flatnonzero(batch.terminations | batch.truncations):
            games[row].rewards = batch.rewards[row].tolist()
            games[row].is_cut_off = bool(batch.truncations[row])
            views = [batch.observe(np.full(len(decks), seat)) for seat in range(num_players)]
            games[row].last = [view[row].tobytes() for view in views]
    return games


def through_aec(
    num_players: int, variant: str, deck: Decks, max_steps: int, face: Callable[..., Env] = raw_env
) -> Game:
    game = Game(rewards=[0.0] * num_players)
    aec = face(num_players, variant, max_steps)
    aec.reset(options={"deck": deck})
    for agent in aec.agent_iter():
        seat = aec.possible_agents.index(agent)
        observation, reward, terminated, truncated, _ = aec.last()
        game.rewards[seat] += reward
        game.is_cut_off |= truncated
        if terminated or truncated:
            game.last.append(observation["observation"].tobytes())
            aec.step(None)
            continue
        mask = observation["action_mask"].astype(np.bool_)
        decision = PLAYER.decide(observation["observation"], mask)
        game.decisions.setdefault(seat, []).append(decision)
        aec.step(decision[-1])
    return game


def through_gym(
    num_players: int, variant: str, decks: Decks, max_steps: int, seat: int
) -> list[Episode]:
    gym_env = ThreeUpEnv(num_players, variant, max_steps, opponents=PLAYER, seat=seat)
    episodes = [Episode() for _ in decks]
    for episode, deck in zip(episodes, decks, strict=True):
        observation, info = gym_env.reset(options={"deck": deck})
        over = False
        while not over:
            decision = PLAYER.decide(observation, info["action_mask"].astype(np.bool_))
            episode.decisions.append(decision)
            observation, reward, terminated, truncated, info = gym_env.step(decision[-1])
            episode.rewards.append(reward)
            over = terminated or truncated
        episode.is_cut_off = truncated
        episode.last = observation.tobytes()
    return episodes


def through_vector(
    num_players: int, variant: str, decks: Decks, max_steps: int, seat: int
) -> list[Episode]:
    envs = ThreeUpVectorEnv(len(decks), num_players, variant, max_steps, PLAYER, seat)
    observations, infos = envs.reset(options={"decks": decks})
    episodes = [Episode() for _ in decks]
    while not all(episode.last for episode in episodes):
        masks = infos["action_mask"].astype(np.bool_)
        actions = PLAYER.act(observations, masks)
        running = [row for row, episode in enumerate(episodes) if not episode.last]
        for row in running:
            episodes[row].decisions.append(PLAYER.decide(observations[row], masks[row]))
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        for row in running:
            episodes[row].rewards.append(float(rewards[row]))
            if terminations[row] or truncations[row]:
                episodes[row].is_cut_off = bool(truncations[row])
                episodes[row].last = infos["final_obs"][row].tobytes()
    return episodes


def through_sb3(
    num_players: int, variant: str, decks: Decks, max_steps: int, seat: int
) -> list[Episode]:
    vec_env = ThreeUpVecEnv(
        ThreeUpVectorEnv(len(decks), num_players, variant, max_steps, PLAYER, seat)
    )
    vec_env.set_options([{"deck": deck} for deck in decks])
    observations: Any = vec_env.reset()
    episodes = [Episode() for _ in decks]
    while not all(episode.last for episode in episodes):
        masks = np.stack(vec_env.env_method("action_masks"))
        running = [row for row, episode in enumerate(episodes) if not episode.last]
        for row in running:
            episodes[row].decisions.append(PLAYER.decide(observations[row], masks[row]))
        vec_env.step_async(PLAYER.act(observations, masks))
        observations, rewards, dones, infos = vec_env.step_wait()
        for row in running:
            episodes[row].rewards.append(float(rewards[row]))
            if dones[row]:
                episodes[row].last = infos[row]["terminal_observation"].tobytes()
                assert infos[row]["episode"]["l"] == len(episodes[row].decisions)
                assert infos[row]["episode"]["r"] == rewards[row]
    return episodes


LEARNER_FACES = [through_gym, through_vector, through_sb3]


def assert_same_games(games: list[Game], others: list[Game]) -> None:
    for game, other in zip(games, others, strict=True):
        assert game.decisions == other.decisions
        assert game.is_cut_off == other.is_cut_off
        assert other.rewards == pytest.approx(game.rewards)
        assert game.last == other.last


def assert_seen_by(seat: int, games: list[Game], episodes: list[Episode]) -> None:
    for game, episode in zip(games, episodes, strict=True):
        assert episode.decisions == game.decisions[seat]
        assert sum(episode.rewards) == pytest.approx(game.rewards[seat])
        assert not any(episode.rewards[:-1]), "a reward before the end"
        assert episode.last == game.last[seat]


def decks_won_by_each_seat(num_players: int) -> Decks:
    """One deck for each winner, found among shuffled ones."""
    decks = shuffled("standard", 40, seed=num_players)
    games = through_batch(num_players, "standard", decks, 1000)
    winners = [None if game.is_cut_off else game.rewards.index(max(game.rewards)) for game in games]
    return decks[[winners.index(seat) for seat in range(num_players)]]


@pytest.mark.parametrize("num_players", range(2, 7))
def test_rewards_add_up_to_the_outcome_whoever_wins(num_players: int) -> None:
    decks = decks_won_by_each_seat(num_players)
    outcomes = np.full((num_players, num_players), -1 / (num_players - 1))
    np.fill_diagonal(outcomes, 1)
    for aec in (env, raw_env):
        seen = [through_aec(num_players, "standard", deck, 1000, aec) for deck in decks]
        np.testing.assert_allclose([game.rewards for game in seen], outcomes)
    for face in LEARNER_FACES:
        for seat in range(num_players):
            episodes = face(num_players, "standard", decks, 1000, seat)
            returns = [sum(episode.rewards) for episode in episodes]
            np.testing.assert_allclose(returns, outcomes[:, seat], rtol=1e-6)


@pytest.mark.parametrize("num_players", range(2, 7))
def test_rewards_add_up_to_the_outcome_of_a_game_that_is_cut_off(num_players: int) -> None:
    decks = shuffled("standard", 4, seed=0)
    max_steps = 10 * num_players
    games = through_batch(num_players, "standard", decks, max_steps)
    assert all(game.is_cut_off for game in games)
    aec = [through_aec(num_players, "standard", deck, max_steps) for deck in decks]
    assert_same_games(games, aec)
    for face in LEARNER_FACES:
        for seat in range(num_players):
            episodes = face(num_players, "standard", decks, max_steps, seat)
            assert_seen_by(seat, games, episodes)
            assert all(e.is_cut_off for e in episodes) or face is through_sb3


def check_parity(num_players: int, variant: str, count: int, seed: int) -> None:
    decks = shuffled(variant, count, seed)
    max_steps = 400
    games = [through_record(num_players, variant, deck, max_steps) for deck in decks]
    assert_same_games(games, through_batch(num_players, variant, decks, max_steps))
    aec = [through_aec(num_players, variant, deck, max_steps) for deck in decks]
    assert_same_games(games, aec)
    for number, face in enumerate(LEARNER_FACES):
        seat = (seed + number) % num_players
        assert_seen_by(seat, games, face(num_players, variant, decks, max_steps, seat))


TABLES = [
    *(("standard", num_players) for num_players in range(2, 7)),
    *(("listed", num_players) for num_players in (2, 6)),
    *(("mini", num_players) for num_players in range(2, VARIANTS["mini"].max_players + 1)),
]


@pytest.mark.parametrize(("variant", "num_players"), TABLES)
def test_every_face_shows_the_same_games(variant: str, num_players: int) -> None:
    check_parity(num_players, variant, count=12, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize(("variant", "num_players"), TABLES)
def test_every_face_shows_the_same_thousand_games(
    variant: str, num_players: int, seed: int
) -> None:
    check_parity(num_players, variant, count=16, seed=seed)
