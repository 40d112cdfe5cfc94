import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.builders import position
from threeup_agents.arena.provenance import agent_hash
from threeup_agents.search import value
from threeup_agents.search.rollouts import roll_out
from threeup_agents.search.value import (
    HORIZON,
    SHEET_DTYPE,
    ValueNetwork,
    horizon,
    play_on,
    read,
    shipped,
    value_size,
    write_features,
    write_shares,
)
from threeup_env import Batch
from threeup_env.engine.rules import win_share, write_legal_actions
from threeup_env.engine.state import EMPTY, ENV_ID, STATE_DTYPE, Record

SIZES = range(2, 7)
SEAT_FIELDS = ("hand", "face_up", "face_down", "hand_size", "face_up_size", "face_down_size")
FACTS = json.dumps({"num_players": 3, "env": ENV_ID})


def games(num_players: int, count: int = 40, variant: str = "standard", **settings: Any) -> Batch:
    """Games from early to late play, all of them laid out and none of them ended."""
    batch = Batch(count, num_players, variant, seed=7, autoreset=False, **settings)
    batch.reset()
    rng = np.random.default_rng(7)
    for step in range(60):
        rows = np.flatnonzero((batch.states["laying"] > 0) | (rng.random(count) < step / 60))
        batch.step(
            np.argmax(batch.action_masks * rng.random(batch.action_masks.shape), axis=1)[rows], rows
        )
    return batch


def running(batch: Batch) -> np.ndarray:
    found = np.flatnonzero((batch.states["winner"] == EMPTY) & (batch.states["laying"] == 0))
    assert len(found) > 10
    return found


def worth(game: Record, seat: int, network: ValueNetwork) -> float:
    """One seat's win share, as judged."""
    sheet = np.zeros(1, SHEET_DTYPE)
    write_shares(game, network, sheet[0])
    return float(sheet["shares"][0, seat])


def copied(game: Record) -> Record:
    copy = np.zeros(1, STATE_DTYPE)
    copy[0] = game
    return copy[0]


@pytest.mark.parametrize("num_players", SIZES)
def test_the_network_computes_what_numpy_does(num_players: int) -> None:
    batch = games(num_players)
    network = shipped(num_players)
    sheet = np.zeros(1, SHEET_DTYPE)[0]
    for row in running(batch):
        game = batch.states[row]
        held = sheet["features"][: write_features(game, sheet)]
        first = np.maximum(network.first[held].sum(axis=0) + network.first_biases, 0)
        second = np.maximum(first @ network.second + network.second_biases, 0)
        odds = np.exp((network.last @ second + network.last_biases).astype(float))
        for seat in range(num_players):
            expected = odds[(seat - game["seat"]) % num_players] / odds.sum()
            assert worth(game, seat, network) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("num_players", SIZES)
def test_the_network_knows_how_rollouts_end(num_players: int) -> None:
    """On games that it wasn't fitted to; a constant would explain nothing."""
    batch = games(num_players, 800)
    network = shipped(num_players)
    expected, ends = [], []
    for row in running(batch):
        seat = int(batch.seats[row])
        expected.append(worth(batch.states[row], seat, network))
        game = copied(batch.states[row])
        roll_out(game, seat)
        ends.append(win_share(game, seat))
    error = np.mean((np.array(expected) - ends) ** 2)
    assert 1 - error / np.var(ends) > 0.1
    assert np.mean(expected) == pytest.approx(
        np.mean(ends), abs=4 * np.std(ends) / len(ends) ** 0.5
    )


def test_features_say_what_lies_where() -> None:
    """Counted by hand: the kinds stand in the order in which `write_features` lists them."""
    batch = position("5 5 C+1", pile="3 4", other_hand="9")
    sheet = np.zeros(1, SHEET_DTYPE)[0]
    held = sheet["features"][: write_features(batch.states[0], sheet)].tolist()
    # Top 4 (the first is no top); of two numbers of copies one 3, one 4; no draws; no turn owed.
    pile, draws = 1 + 13, 1 + 13 + 2 * 13
    sizes = draws + 7 * 13 + 6 * 13
    turn, seats = sizes + 16, sizes + 16 + 8
    assert held[:5] == [4, pile + 2 * 2, pile + 2 * 3, sizes, turn]
    # Two 5s and a C+1 of four numbers of copies; three cards in hand and none elsewhere.
    hand_size, seat_size = 4 * 13 + 3 * 13 + 3 * 13, 4 * 13 + 3 * 13 + 3 * 13 + 16 + 16
    own = [4 * 4 + 1, 4 * 11, hand_size + 3, hand_size + 16]
    other = [4 * 8, hand_size + 1, hand_size + 16]
    assert held[5:12] == [seats + i for i in own] + [seats + seat_size + i for i in other]
    assert len(held) == 12 and value_size(2) == seats + 2 * seat_size


@pytest.mark.parametrize("num_players", SIZES)
def test_features_begin_with_the_seat_to_act(num_players: int) -> None:
    """A game turned around the table has the same ones, and shares turned with it."""
    batch = games(num_players)
    network = shipped(num_players)
    for row in running(batch)[:20]:
        game, turned = batch.states[row], copied(batch.states[row])
        for name in SEAT_FIELDS:
            turned[name][:num_players] = np.roll(game[name][:num_players], 1, axis=0)
        turned["seat"] = (game["seat"] + 1) % num_players
        shares = [worth(game, seat, network) for seat in range(num_players)]
        assert [worth(turned, seat, network) for seat in range(num_players)] == np.roll(
            shares, 1
        ).tolist()
        assert 0 < sum(shares) <= 1 + 1e-9


def test_a_game_that_has_ended_is_worth_its_share() -> None:
    batch = games(3)
    for row in running(batch):
        game = copied(batch.states[row])
        roll_out(game, 0)
        for seat in range(3):
            assert worth(game, seat, shipped(3)) == win_share(game, seat)


@pytest.mark.parametrize("num_players", [2, 4])
def test_a_rollout_stops_before_the_choice_that_the_network_judges(num_players: int) -> None:
    batch = games(num_players)
    legal = np.empty(94, np.int64)
    stopped = 0
    for row in running(batch):
        whole, game = copied(batch.states[row]), copied(batch.states[row])
        assert horizon(game) == HORIZON
        play_on(whole, 0, 1000, legal)
        assert whole["winner"] != EMPTY
        play_on(game, 0, HORIZON, legal)
        if game["winner"] == EMPTY:
            stopped += 1
            assert game["seat"] == 0 and write_legal_actions(game, legal) > 1
            again = copied(game)
            play_on(again, 0, 0, legal)
            assert again["steps"] == game["steps"]
            play_on(game, 0, 1000, legal)
        assert game == whole
    assert stopped > 5


def test_rollouts_go_to_the_end_where_the_network_cant_judge() -> None:
    assert horizon(games(2, variant="mini").states[0]) > 100
    assert horizon(games(2, variant="listed").states[0]) > 100
    near = games(2, max_steps=130)
    assert all(horizon(near.states[row]) > 100 for row in running(near))


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    path = value.SHIPPED / "value-3.safetensors"
    with pytest.raises(ValueError, match=r"value-3.*expected a value network for 2 players"):
        read(path, 2)
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"torn\.safetensors': expected a value network; got"):
        read(torn, 3)
    with pytest.raises(ValueError, match=r"none\.safetensors': expected a value network; got"):
        read(tmp_path / "none.safetensors", 3)
    policy = value.SHIPPED.parent / "policies" / "policy-3.safetensors"
    with pytest.raises(ValueError, match=r"policy-3\.safetensors': expected a value network; got"):
        read(policy, 3)
    save_file(shipped(3)._asdict(), torn, metadata={value.FACTS: '{"num_players": 3}'})
    with pytest.raises(ValueError, match=r"expected env, one of .*threeup-v1.*; got none"):
        read(torn, 3)
    other = shipped(3)._replace(second=np.zeros((64, 16), np.float32))
    save_file(
        other._asdict(), torn, metadata={value.FACTS: json.dumps({"num_players": 3, "env": ENV_ID})}
    )
    with pytest.raises(ValueError, match=r"expected a value network for 3 players, layers .*16"):
        read(torn, 3)


@pytest.mark.parametrize(
    ("facts", "changes", "message"),
    [
        ("{}", {}, "expected num_players, an integer from 2 to 6; got none"),
        ('{"num_players": "3"}', {}, "expected num_players, an integer from 2 to 6; got '3'"),
        ("[3]", {}, "expected a JSON object; got list"),
        ("[" * 100_000, {}, "expected a value network; got too many brackets"),
        (FACTS, {"last_biases": np.full(4, np.nan, "f4")}, "in tensor 'last_biases'"),
        (FACTS, {"last_biases": np.zeros(4)}, "float32 numbers in tensor 'last_b"),
    ],
)
def test_a_damaged_network_is_refused_by_name(
    facts: str, changes: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "value.safetensors"
    save_file(shipped(3)._asdict() | changes, path, metadata={value.FACTS: facts})
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        read(path, 3)
    assert str(refusal.value).startswith(f"'{path}': ")


def test_a_fit_that_diverges_says_so_and_writes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from threeup_agents.training.fit_value import Config, main

    config = Config(2, 3_000, 500, 2, 512, learning_rate=1e30, out=tmp_path / "value")
    with pytest.raises(ValueError, match=r"fit at learning rate 1e[+]30: expected a finite loss"):
        main(config)
    assert list(tmp_path.iterdir()) == []


def test_another_network_is_another_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run of matches doesn't go on with it."""
    before = agent_hash("search:5", 2), agent_hash("careful", 2)
    (tmp_path / "value-2.safetensors").write_bytes(value.shipped_file(3).read_bytes())
    monkeypatch.setattr(value, "SHIPPED", tmp_path)
    assert agent_hash("search:5", 2) != before[0]
    assert agent_hash("careful", 2) == before[1]


def test_a_fit_is_repeatable_and_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from threeup_agents.training.fit_value import Config, main

    for name in ("one", "two"):
        main(Config(2, 30_000, 5_000, 4, 512, out=tmp_path / name))
    assert (tmp_path / "one").read_bytes()[-1000:] == (tmp_path / "two").read_bytes()[-1000:]
    explained = float(capsys.readouterr().out.split()[2])
    assert explained > 0.1
    assert read(tmp_path / "one", 2).first.shape == (value_size(2) + 1, 64)
