import copy
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, seed_test

from tests.engine.test_observation import deck_with_hands
from threeup_env import ACTION_NAMES, VARIANTS, Batch, IllegalActionError, action_id, env, raw_env
from threeup_env.engine.cards import sorted_deck

TABLES = [
    (num_players, name)
    for name, variant in VARIANTS.items()
    for num_players in range(2, variant.max_players + 1)
]
every_table = pytest.mark.parametrize(("num_players", "variant"), TABLES)
raw_and_wrapped = pytest.mark.parametrize("make", [raw_env, env])

# PettingZoo's checker remarks on every game of PettingZoo's own that has a mask: the
# observation is a dictionary, and a dead agent's mask is empty. It passes an option of its own.
api_remarks = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array"),
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be"),
    pytest.mark.filterwarnings("ignore:Action mask numpy array is all zeros"),
    pytest.mark.filterwarnings("ignore:reset options. expected 'deck'; ignored 'options'"),
]


def with_api_remarks(test: Callable[..., None]) -> Callable[..., None]:
    for mark in api_remarks:
        test = mark(test)
    return test


def play(game: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any, int | None]]:
    """Play at random to the end; gives agent, what `last` said and the action, before the step."""
    for agent in game.agent_iter():
        last = game.last()
        over = last[2] or last[3]
        action = None if over else int(rng.choice(np.flatnonzero(last[0]["action_mask"])))
        yield agent, last, action
        game.step(action)


def picture(game: Any) -> str:
    text = game.render()
    assert isinstance(text, str)
    return text


def everything(game: Any) -> list[Any]:
    """All that an agent or a learner can read off a game in play."""
    inner = game.unwrapped
    return [
        [game.observe(agent)[key].tolist() for agent in game.possible_agents for key in KEYS],
        {agent: info["action_mask"].tolist() for agent, info in game.infos.items()},
        *(dict(getattr(game, name)) for name in ("rewards", "terminations", "truncations")),
        dict(inner._cumulative_rewards),
        game.agents[:],
        game.agent_selection,
    ]


KEYS = ("observation", "action_mask")


@every_table
@raw_and_wrapped
@with_api_remarks
def test_pettingzoo_api(make: Any, num_players: int, variant: str) -> None:
    api_test(make(num_players, variant), num_cycles=300)


@every_table
@raw_and_wrapped
def test_pettingzoo_seeds(make: Any, num_players: int, variant: str) -> None:
    seed_test(lambda: make(num_players, variant), num_cycles=100)


@every_table
@raw_and_wrapped
def test_spaces_hold_at_every_step(make: Any, num_players: int, variant: str) -> None:
    game = make(num_players, variant)
    game.reset(seed=1)
    for _, last, _ in play(game, np.random.default_rng(1)):
        for agent in game.possible_agents:
            assert game.observation_space(agent).contains(game.observe(agent))
        assert game.observation_space(game.agent_selection).contains(last[0])


@raw_and_wrapped
def test_spaces_are_the_same_objects_and_one_for_each_agent(make: Any) -> None:
    game = make(3)
    for space in (game.observation_space, game.action_space):
        assert all(space(agent) is space(agent) for agent in game.possible_agents)
        assert space("player_0") is not space("player_1")
        assert space("player_0") == space("player_1")


@every_table
@raw_and_wrapped
def test_it_is_the_game_that_a_batch_plays(make: Any, num_players: int, variant: str) -> None:
    game = make(num_players, variant)
    batch = Batch(1, num_players, variant, autoreset=False)
    game.reset(seed=5)
    batch.reset(seed=5)
    for agent, (observation, reward, termination, truncation, info), action in play(
        game, np.random.default_rng(5)
    ):
        if action is None:
            assert (termination, truncation) == (bool(batch.terminations[0]), False)
            assert reward == batch.rewards[0, game.possible_agents.index(agent)]
            continue
        assert agent == f"player_{batch.seats[0]}"
        assert (observation["observation"] == batch.observations[0]).all()
        assert (observation["action_mask"] == batch.action_masks[0]).all()
        assert (info["action_mask"] == batch.action_masks[0]).all()
        batch.step([action])


@raw_and_wrapped
@pytest.mark.parametrize("num_players", range(2, 7))
def test_the_winner_gets_one_and_the_others_share_the_loss(make: Any, num_players: int) -> None:
    game = make(num_players)
    game.reset(seed=2)
    told: dict[str, list[float]] = {agent: [] for agent in game.possible_agents}
    for agent, last, _ in play(game, np.random.default_rng(2)):
        told[agent].append(last[1])
    totals = sorted(sum(rewards) for rewards in told.values())
    assert totals == pytest.approx([-1 / (num_players - 1)] * (num_players - 1) + [1])
    assert all(not any(rewards[:-1]) for rewards in told.values())
    assert all(rewards[-1] for rewards in told.values())


@raw_and_wrapped
@pytest.mark.parametrize("num_players", range(2, 7))
def test_a_dead_step_for_each_agent_ends_the_game(make: Any, num_players: int) -> None:
    game = make(num_players)
    game.reset(seed=3)
    dead = []
    for agent, last, action in play(game, np.random.default_rng(3)):
        if action is None:
            dead.append(agent)
            assert last[2] and not last[3]
            assert not last[0]["action_mask"].any()
            assert not last[4]["action_mask"].any()
    assert dead == game.possible_agents
    assert game.agents == []


def test_nobody_wins_a_game_that_is_cut_off() -> None:
    # Case 21. Seat 2 can play nothing on the 9s and takes them: it holds 11 cards, the others 9.
    game = raw_env(3, max_steps=13)
    hands = ["9 1 1 2 2 2", "9 9 3 3 4 4", "5 5 5 6 6 6"]
    game.reset(options={"deck": deck_with_hands("standard", hands)})
    laid = ["lay 1", "lay 1", "lay 2", "lay 3", "lay 3", "lay 4", "lay 5", "lay 5", "lay 5"]
    for name in [*laid, "play 9", "play 9", "pick up"]:
        game.step(action_id(name))
    game.step(int(game.last()[0]["action_mask"].argmax()))
    assert game.truncations == dict.fromkeys(game.possible_agents, True)
    assert game.terminations == dict.fromkeys(game.possible_agents, False)
    assert len(set(game._batch.cards_left[0])) > 1
    assert game.rewards == dict.fromkeys(game.possible_agents, -0.5)  # a loser's


@pytest.mark.parametrize("max_steps", [1, 2, 50])
@raw_and_wrapped
def test_a_game_lasts_max_steps_at_most(make: Any, max_steps: int) -> None:
    game = make(4, max_steps=max_steps)
    for seed in range(5):
        game.reset(seed=seed)
        steps = list(play(game, np.random.default_rng(seed)))
        assert len(steps) == max_steps + 4
        assert steps[-1][1][2:4] == (False, True)


@raw_and_wrapped
def test_many_games_in_a_row_in_one_environment(make: Any) -> None:
    game = make(2, max_steps=100_000)  # of random play, one game in 2,000 takes over 1,000
    rng = np.random.default_rng(0)
    for deal in range(20):
        game.reset(seed=0 if deal == 0 else None)
        rewards = [last[1] for _, last, action in play(game, rng) if action is None]
        assert sorted(rewards) == [-1, 1]


def test_observing_changes_nothing() -> None:
    game, watched = raw_env(3), raw_env(3)
    game.reset(seed=4)
    watched.reset(seed=4)
    for _, _, action in play(game, np.random.default_rng(4)):
        for agent in [*watched.possible_agents, *reversed(watched.possible_agents)]:
            seen = watched.observe(agent)
            seen["observation"][:] = 99
            seen["action_mask"][:] = 1
        assert everything(watched) == everything(game)
        watched.step(action)


def test_earlier_observations_stay_as_they_were() -> None:
    game = raw_env(2)
    game.reset(seed=4)
    kept = []
    for _, (observation, *_, info), _ in play(game, np.random.default_rng(4)):
        kept.append((observation, copy.deepcopy(observation), info, copy.deepcopy(info)))
    for observation, observation_then, info, info_then in kept:
        assert str(observation) == str(observation_then)
        assert str(info) == str(info_then)


@raw_and_wrapped
def test_masks_are_for_the_agent_to_act_and_equal_in_the_info(make: Any) -> None:
    game = make(3)
    game.reset(seed=6)
    for agent, _, action in play(game, np.random.default_rng(6)):
        for other in game.agents:
            mask = game.observe(other)["action_mask"]
            assert mask.any() == (other == agent and action is not None)
            assert (mask == game.infos[other]["action_mask"]).all()
            assert game.infos[other]["action_mask"].dtype == np.int8


def test_raw_env_refuses_each_illegal_action_and_stays_as_it_is() -> None:
    game = raw_env(2)
    game.reset(seed=7)
    rng = np.random.default_rng(7)
    missing = set(range(len(ACTION_NAMES)))
    for _, (observation, *_), action in play(game, rng):
        if action is None:
            break
        illegal = missing - set(np.flatnonzero(observation["action_mask"]).tolist())
        before, record = everything(game), game._batch.states.copy()
        for refused in [*illegal, -1, len(ACTION_NAMES), 2**40]:
            with pytest.raises(IllegalActionError):
                game.step(refused)
        missing -= illegal
        assert everything(game) == before
        assert game._batch.states == record
    assert not missing


def test_the_error_of_an_illegal_action_names_agent_seat_and_what_is_legal() -> None:
    game = raw_env(2, "mini")
    game.reset(options={"deck": [0, 1, 0, 1, 12, 0, 1, 10, 11, 10]})
    expected = re.escape(
        "player_0, seat 0: expected one of 0 'lay 1', 1 'lay 2', 12 'lay C+2'; got 9 'lay 10'"
    )
    with pytest.raises(IllegalActionError, match=f"^{expected}$"):
        game.step(9)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (None, "player_0: expected an action id; got None; None is for an agent whose game has"),
        ("draw", "player_0: expected an action id; got 'draw'"),
        (1.0, "player_0: expected an action id; got 1.0"),
        ([1], r"player_0: expected an action id; got \[1\]"),
    ],
)
def test_an_action_is_an_integer(action: Any, text: str) -> None:
    game = raw_env(2)
    game.reset(seed=0)
    with pytest.raises(TypeError, match=text):
        game.step(action)
    assert game._batch.lengths[0] == 0


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.uint64, np.array])
def test_any_kind_of_integer_will_do(kind: Callable[[int], Any]) -> None:
    game = raw_env(2)
    game.reset(seed=0)
    game.step(kind(int(game.observe("player_0")["action_mask"].argmax())))
    assert game._batch.lengths[0] == 1


@pytest.mark.parametrize("num_players", [2, 5])
def test_an_illegal_action_ends_the_wrapped_game(num_players: int) -> None:
    game = env(num_players, render_mode="ansi")
    game.reset(seed=8)
    for _ in range(7):
        game.step(int(game.last()[0]["action_mask"].argmax()))
    offender = game.agent_selection
    game.step(int(np.flatnonzero(game.last()[0]["action_mask"] == 0)[0]))
    assert "an illegal action has ended the game" in game.render()
    told = {}
    for agent in game.agent_iter():
        observation, told[agent], termination, truncation, info = game.last()
        assert termination and truncation
        assert not observation["action_mask"].any()
        assert not info["action_mask"].any()
        game.step(None)
    assert told == {agent: -float(agent == offender) for agent in game.possible_agents}
    game.reset(seed=8)
    assert game.last()[0]["action_mask"].any()


@raw_and_wrapped
def test_the_first_game_is_another_one_each_time(make: Any) -> None:
    hands = []
    for _ in range(4):
        game = make(2)
        game.reset()
        hands.append(tuple(game.last()[0]["observation"].tolist()))
    assert len(set(hands)) > 1


def test_reset_goes_on_with_the_stream_and_a_seed_starts_it_anew() -> None:
    game = raw_env(2)
    deals = []
    for seed in (11, None, None, 11, None):
        game.reset(seed=seed)
        deals.append(game.observe("player_0")["observation"].tolist())
    assert deals[0] == deals[3]
    assert deals[1] == deals[4]
    assert deals[0] != deals[1] != deals[2] != deals[0]


def test_a_deck_may_be_given() -> None:
    deck = np.random.default_rng(3).permutation(sorted_deck("listed"))
    batch = Batch(1, 4, "listed", autoreset=False)
    batch.reset(decks=[deck])
    for given in (deck, deck.tolist(), tuple(deck.tolist())):
        game = env(4, "listed")
        game.reset(options={"deck": given})
        for seat, agent in enumerate(game.possible_agents):
            assert (game.observe(agent)["observation"] == batch.observe([seat])[0]).all()


@pytest.mark.parametrize(
    ("deck", "text"),
    [
        ([0] * 10, "expected a permutation of the 'mini' deck with 1 3 times, got 10"),
        ([0, 1], "expected 10 rank ids"),
        ([0.5] * 10, "expected 10 rank ids"),
        ([13, 1, 0, 1, 12, 0, 1, 10, 11, 10], "expected rank ids 0..12; got 13"),
        ("1 2 3", "expected 10 rank ids"),
    ],
)
def test_a_wrong_deck_is_refused(deck: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        raw_env(2, "mini").reset(options={"deck": deck})


def test_an_unknown_option_is_remarked_on() -> None:
    with pytest.warns(UserWarning, match="expected 'deck'; ignored 'decks', 'start'"):
        raw_env(2).reset(options={"decks": [1], "start": 0})


@raw_and_wrapped
@pytest.mark.parametrize("branch", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
@pytest.mark.parametrize("steps", [0, 5, 60])
def test_a_copy_goes_on_identically(make: Any, branch: Callable[[Any], Any], steps: int) -> None:
    game = make(3, max_steps=100, render_mode="ansi")
    game.reset(seed=9)
    rng = np.random.default_rng(9)
    for _ in range(steps):
        game.step(int(rng.choice(np.flatnonzero(game.last()[0]["action_mask"]))))
    twin = branch(game)
    for _ in range(2):
        for agent, _, action in play(game, rng):
            assert twin.agent_selection == agent
            assert everything(twin) == everything(game)
            assert twin.render() == game.render()
            twin.step(action)
        game.reset()
        twin.reset()


@raw_and_wrapped
@pytest.mark.parametrize("branch", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
def test_a_copy_may_be_taken_before_the_first_game(make: Any, branch: Callable[[Any], Any]) -> None:
    game = make(3)
    twin = branch(game)
    game.reset()
    twin.reset()
    assert everything(twin) == everything(game)


@raw_and_wrapped
def test_stepping_a_copy_leaves_the_original_alone(make: Any) -> None:
    game = make(2)
    game.reset(seed=1)
    before = everything(game)
    list(play(copy.deepcopy(game), np.random.default_rng(1)))
    assert everything(game) == before


@raw_and_wrapped
@pytest.mark.parametrize("call", ["step", "last", "observe", "render", "agent_iter"])
def test_a_game_says_that_it_must_be_reset_first(make: Any, call: str) -> None:
    game = make(2, render_mode="ansi")
    arguments: dict[str, list[Any]] = {"step": [0], "observe": ["player_0"]}
    with pytest.raises(RuntimeError, match=rf"^call reset\(\) before {call}\(\)$"):
        getattr(game, call)(*arguments.get(call, []))


@raw_and_wrapped
def test_a_call_after_the_end_is_refused(make: Any) -> None:
    game = make(2)
    game.reset(seed=1)
    assert len(list(play(game, np.random.default_rng(1)))) > 2
    for call in (lambda: game.step(0), lambda: game.step(None), game.last):
        with pytest.raises(RuntimeError, match=r"^call reset\(\): the game has ended"):
            call()
    assert list(game.agent_iter()) == []
    game.observe("player_1")


@raw_and_wrapped
def test_what_a_caller_writes_into_an_observation_changes_no_legality(make: Any) -> None:
    game = make()
    game.reset(seed=1)
    observation, _, _, _, info = game.last()
    legal = int(observation["action_mask"].argmax())
    for mask in (observation["action_mask"], info["action_mask"]):
        mask[:] = 0
    game.step(legal)
    assert not any(game.terminations.values())


def test_an_illegal_action_that_a_caller_has_marked_as_legal_ends_the_game() -> None:
    game = env()
    game.reset(seed=1)
    mask = game.last()[0]["action_mask"]
    illegal = int(mask.argmin())
    mask[:] = 1
    game.step(illegal)
    assert all(game.terminations.values())
    assert game.rewards["player_0"] == -1


def test_a_call_after_the_end_by_an_illegal_action_is_refused() -> None:
    game = env(2)
    game.reset(seed=1)
    game.step(action_id("pick up"))
    for _ in range(2):
        game.step(None)
    for call in (lambda: game.step(None), game.last):
        with pytest.raises(RuntimeError, match=r"^call reset\(\): the game has ended"):
            call()


@raw_and_wrapped
def test_a_dead_step_takes_none_alone(make: Any) -> None:
    game = make(2, max_steps=1)
    game.reset(seed=1)
    game.step(int(game.last()[0]["action_mask"].argmax()))
    with pytest.raises(ValueError, match="the only valid action is None"):
        game.step(0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_players": 7}, "num_players: expected 2 to 6 for variant 'standard'; got 7"),
        ({"num_players": 3, "variant": "mini"}, "expected 2 for variant 'mini'; got 3"),
        ({"variant": "big"}, "variant: expected one of 'standard', 'listed', 'mini'; got 'big'"),
        ({"max_steps": 0}, "max_steps: expected an integer of at least 1; got 0"),
        ({"render_mode": "gif"}, "render_mode: expected None or 'ansi' or .*; got 'gif'"),
    ],
)
@raw_and_wrapped
def test_bad_arguments_say_what_would_be_right(
    make: Any, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        make(**arguments)


def test_an_unknown_agent_is_refused() -> None:
    game = raw_env(2)
    game.reset(seed=0)
    with pytest.raises(ValueError, match=r"agent: expected one of \['player_0', 'player_1'\]"):
        game.observe("player_2")


def test_metadata() -> None:
    game = env()
    assert game.metadata["name"] == str(game) == "threeup_v1"
    assert game.metadata["render_modes"] == ["ansi", "rgb_array", "human"]
    assert game.metadata["is_parallelizable"] is False


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo has it from 1.27 on")
def test_pettingzoo_makes_it_by_its_id() -> None:
    game = pettingzoo.make("aec", "threeup-v1", num_players=3, variant="listed", max_steps=20)
    game.reset(seed=1)
    assert game.possible_agents == ["player_0", "player_1", "player_2"]
    assert game.unwrapped._batch.variant == "listed"
    assert game.unwrapped._batch.max_steps == 20
    assert type(game) is type(env())


def test_render_without_a_mode_draws_nothing_and_says_so() -> None:
    game = raw_env(2)
    game.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode=.ansi."):
        assert game.render() is None


def test_what_others_lay_is_a_card_and_what_i_lay_is_named() -> None:
    game = raw_env(2, render_mode="ansi")
    game.reset(seed=0)
    pictures = []
    for _ in range(6):
        lowest = int(game.last()[0]["action_mask"].argmax())
        game.step(lowest)
        pictures.append((ACTION_NAMES[lowest], picture(game)))
    for position, (name, text) in enumerate(pictures):
        own = position in (0, 1, 3, 4)
        assert ("lays a card" in text) != own
        assert (name.removeprefix("lay ") in text.split("Last action")[1].split("\n")[0]) == own


@pytest.mark.parametrize(
    ("hand", "actions", "words"),
    [
        ("1 1 1", ["play 1 x3"], "seat 0 plays 1 x3, clears the pile and draws 3 cards"),
        ("C 2 3", ["play C"], "seat 0 plays C and draws 1 card"),
        ("C+1 2 3", ["play C+1"], "seat 0 plays C+1"),
        ("C+1 2 3", ["play C+1", "draw"], "seat 0 draws 1 card"),
        ("5 5 9", ["play 9"], "seat 0 plays 9 and draws 1 card"),
    ],
)
def test_the_last_action_in_words(hand: str, actions: list[str], words: str) -> None:
    game = raw_env(2, render_mode="ansi")
    game.reset(options={"deck": deck_with_hands("standard", [f"{hand} 4 4 4", "6 6 7 8 8 10"])})
    for name in ["lay 4"] * 3 + ["lay 6", "lay 7", "lay 10", *actions]:
        game.step(action_id(name))
    line = next(line for line in picture(game).splitlines() if line.startswith("Last action"))
    assert line == f"Last action  {words}"


def test_long_run_of_pictures_fits_the_terminal_and_is_the_result_at_the_end() -> None:
    for num_players in range(2, 7):
        game = raw_env(num_players, render_mode="ansi")
        game.reset(seed=num_players)
        for _, _, action in play(game, np.random.default_rng(num_players)):
            text = picture(game)
            assert max(map(len, text.splitlines())) <= 80
            assert ("Result" in text) == (action is None)


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo has it from 1.27 on")
def test_pettingzoo_makes_it_by_name_where_it_can() -> None:
    game = pettingzoo.make("aec", "threeup-v1", num_players=3, cut_off="termination")
    assert game.unwrapped.cut_off == "termination"
    code = (
        "import pettingzoo; del pettingzoo.register\n"  # as before 1.27
        "import threeup_env; threeup_env.env().reset(seed=0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
