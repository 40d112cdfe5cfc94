"""Exact play: the tree against plain enumeration, the solver against published values."""

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import threeup_agents
from tests.markdown import PAGES, table_rows
from tests.players.test_policy import policy_for
from tests.reference import ReferenceGame
from threeup_agents import evaluation
from threeup_agents.arena.deals import draw_deals
from threeup_agents.evaluation import Config
from threeup_agents.exact import cfr
from threeup_agents.exact.__main__ import main
from threeup_agents.exact.exploitability import (
    as_played,
    as_strategy,
    best_response,
    nash_conv,
    strategy_of,
)
from threeup_agents.exact.tree import ENDED, Nodes, Tree, build
from threeup_agents.players.exact import SHIPPED, Exact, MixedStrategy
from threeup_agents.players.policy import PolicyPlayer
from threeup_env import Batch
from threeup_env.engine.events import event_rows


def kuhn() -> Tree:
    """Kuhn poker: three cards, an ante of 1, bets of 1; as OpenSpiel plays it."""
    deals = [(a, b) for a in range(3) for b in range(3) if a != b]
    nodes: list[tuple[tuple[int, int], str]] = [(deal, "") for deal in deals]
    keys: dict[tuple[int, str], int] = {}
    seat, infoset, child, utility, level = [], [], [], [], [0]
    done = 0
    while done < len(nodes):
        stop = len(nodes)
        for (a, b), path in nodes[done:stop]:
            player = len(path) % 2
            seat.append(player)
            infoset.append(keys.setdefault(((a, b)[player], path), len(keys)))
            for move in "pb":  # pass, bet
                after = path + move
                higher = 1 if a > b else -1
                ends = {"pp": higher, "bp": 1, "pbp": -1, "bb": 2 * higher, "pbb": 2 * higher}
                child.append(ENDED if after in ends else len(nodes))
                utility.append(ends.get(after, 0))
                if after not in ends:
                    nodes.append(((a, b), after))
        level.append(stop)
        done = stop
    empty: npt.NDArray[Any] = np.zeros(0)
    return Tree(
        Nodes(
            np.array(seat, np.int8),
            np.array(infoset, np.int32),
            2 * np.arange(len(seat) + 1),
            np.array(child, np.int32),
            np.array(utility, np.int8),
            2 * np.arange(len(keys) + 1),
        ),
        np.full(6, 1 / 6),
        np.array(level),
        np.arange(len(keys)).astype(np.uint64),
        np.tile(np.array([0, 1], np.int8), len(keys)),
        *(empty, empty, empty),
    )


def test_kuhn_poker_has_its_published_value() -> None:
    tree = kuhn()
    # OpenSpiel: nash_conv(kuhn_poker, uniform) is 11/12, and its uniform value is 1/8.
    assert cfr.nash_conv(tree, tree.uniform()) == pytest.approx(11 / 12)
    assert cfr.value(tree, tree.uniform()) == pytest.approx(1 / 8)
    solver = cfr.Solver.begin(tree)
    for _ in range(2000):
        solver.iterate()
    found = solver.average()
    assert cfr.nash_conv(tree, found) < 1e-4
    assert cfr.value(tree, found) == pytest.approx(-1 / 18, abs=1e-4)  # Kuhn 1950
    king_bets = found[tree.nodes.first_slot[tree.nodes.infoset[4]] + 1]
    jack_bets = found[tree.nodes.first_slot[tree.nodes.infoset[0]] + 1]
    assert king_bets == pytest.approx(3 * jack_bets, abs=0.02)  # whichever equilibrium it is


def subgame(max_steps: int, deals: int = 20) -> Tree:
    return build(draw_deals(deals, 2, "mini", seed=0), max_steps=max_steps)


# OpenSpiel's NashConv of uniform play, on a Python game that deals these 20 decks and tells
# apart what the sequence of a seat's observations tells apart.
@pytest.mark.parametrize(
    ("max_steps", "published"),
    [(6, 0.0), (8, 0.23125), (10, 0.9208333333), (12, 0.9442708333), (14, 0.9835069444)],
)
def test_uniform_play_of_subgames_is_as_exploitable_as_openspiel_says(
    max_steps: int, published: float
) -> None:
    tree = subgame(max_steps)
    assert cfr.nash_conv(tree, tree.uniform()) == pytest.approx(published, abs=1e-9)


def test_the_tree_is_that_of_the_plain_rules() -> None:
    decks = draw_deals(6, 2, "mini", seed=4)
    tree = build(decks, max_steps=9)
    nodes = [0] * 9
    outcomes = Counter[int]()
    seen: set[tuple[int, str]] = set()

    def walk(game: ReferenceGame, depth: int, views: tuple[str, str]) -> None:
        if not game.legal_actions():
            outcomes[int(np.sign(game.rewards()[0] - game.rewards()[1]))] += 1
            return
        views = (views[0] + str(game.observe(0)), views[1] + str(game.observe(1)))
        nodes[depth] += 1
        seen.add((game.seat, views[game.seat]))
        for action in game.legal_actions():
            after = deepcopy(game)
            after.apply(action)
            walk(after, depth + 1, views)

    for deck in decks.tolist():
        walk(ReferenceGame(2, "mini", deck, max_steps=9), 0, ("", ""))
    assert np.diff(tree.level).tolist() == nodes
    assert len(tree.key) == len(seen)  # perfect recall of all that a seat has observed
    ended = tree.nodes.utility[tree.nodes.child == ENDED]
    assert Counter(ended.tolist()) == outcomes
    assert len(outcomes) == 3


@pytest.fixture(scope="module")
def tree() -> Tree:
    return subgame(14)


@pytest.fixture(scope="module")
def solved(tree: Tree) -> npt.NDArray[np.float64]:
    solver = cfr.Solver.begin(tree)
    for _ in range(300):
        solver.iterate()
    return solver.average()


def test_information_sets_hold_what_looks_alike(tree: Tree) -> None:
    nodes = tree.nodes
    depth = np.repeat(np.arange(len(tree.level) - 1), np.diff(tree.level))
    for column in (nodes.seat, np.diff(nodes.first_edge), depth):
        first = np.zeros(len(tree.key), np.int64)
        first[nodes.infoset] = column
        assert (first[nodes.infoset] == column).all()
    legal = tree.action_masks[tree.view]
    assert (legal.sum(axis=1) == np.diff(nodes.first_slot)).all()
    assert (np.nonzero(legal)[1] == tree.action).all()
    assert len(np.unique(nodes.infoset)) == len(tree.key) == len(np.unique(tree.key))


def test_the_solver_nears_an_equilibrium(tree: Tree, solved: npt.NDArray[np.float64]) -> None:
    assert cfr.nash_conv(tree, solved) < 1e-3
    found = cfr.value(tree, solved)
    for seat in (0, 1):  # no strategy of a seat gains more than the value, within NashConv
        gain, _ = cfr.best_response(tree, solved, seat)
        assert abs(gain - (found if seat == 0 else -found)) < 1e-3


@pytest.mark.parametrize("seat", [0, 1])
def test_a_best_response_wins_what_it_promises_and_no_other_strategy_more(
    seat: int, tree: Tree
) -> None:
    strategy = strategy_of(threeup_agents.make("greedy"), tree, samples=1)
    gain, response = cfr.best_response(tree, strategy, seat)
    sign = 1 if seat == 0 else -1
    assert sign * cfr.value(tree, response) == pytest.approx(gain)
    owners = np.zeros(len(tree.key), np.int64)
    owners[tree.nodes.infoset] = tree.nodes.seat
    mine = np.repeat(owners == seat, np.diff(tree.nodes.first_slot))
    rng = np.random.default_rng(seat)
    for _ in range(30):
        other = cfr.normalised(rng.random(len(mine)) ** 4, tree)
        tried = np.where(mine, other, strategy)
        assert sign * cfr.value(tree, tried) <= gain


def test_an_agent_that_says_its_chances_is_not_sampled(tree: Tree) -> None:
    policy: Any = PolicyPlayer(policy_for(2), "policy", seed=1)
    exact = nash_conv(policy, tree, samples=1)
    assert exact == nash_conv(policy, tree, samples=9)
    assert exact == pytest.approx(nash_conv(Sampled(policy), tree, samples=200), abs=0.03)


class Sampled:
    """An agent that can't say its chances."""

    def __init__(self, agent: Any) -> None:
        self.act = agent.act


def test_an_agent_with_memory_is_refused(tree: Tree) -> None:
    with pytest.raises(ValueError, match="expected one that chooses from the observation alone"):
        nash_conv(Exact(), tree)  # type: ignore[arg-type]  # refusing it is the point


def test_a_strategy_goes_through_its_file(
    tree: Tree, solved: npt.NDArray[np.float64], tmp_path: Path
) -> None:
    facts = {"variant": "mini", "max_steps": 14, "iterations": 300, "nash_conv": 0.1, "value": 0.1}
    path = tmp_path / "x.safetensors"
    as_played(tree, solved, facts).save(path)
    read = MixedStrategy.read(path)
    assert read.facts["iterations"] == 300
    assert cfr.nash_conv(tree, as_strategy(tree, read)) < 2e-3
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"x\.safetensors.*expected an exact strategy"):
        MixedStrategy.read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"variant": "large"}, "expected variant, one of"),
        ({"env": "threeup-v0"}, "expected env"),
        ({"nash_conv": -1.0}, "expected nash_conv, a finite number of at least 0"),
    ],
)
def test_a_strategy_of_another_game_is_refused_by_name(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    facts = {"variant": "mini", "max_steps": 9, "iterations": 1, "nash_conv": 0.1, "value": 0.1}
    keys, first = np.arange(2).astype(np.uint64), np.array([0, 1, 2])
    ones = np.ones(2)
    strategy = MixedStrategy(
        keys, first, ones.astype(np.int8), ones.astype(np.uint16), facts | change
    )
    strategy.save(tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match=words):
        MixedStrategy.read(tmp_path / "x.safetensors")


def played_out(agent: Exact, other: Any, max_steps: int, deals: int, seed: int) -> float:
    """Wins less losses of an exact player at seat 0, told slots and events by hand."""
    batch = Batch(deals, 2, "mini", max_steps, autoreset=False, history=True)
    batch.reset(decks=draw_deals(deals, 2, "mini", seed))
    agent.begin(np.arange(deals), np.zeros(deals, np.int64), 2)
    told = np.zeros(deals, np.int64)
    gain = np.zeros(deals)
    while (rows := np.flatnonzero(batch.action_masks.any(axis=1))).size:
        actions = np.zeros(len(rows), np.int64)
        mine = batch.seats[rows] == 0
        own = rows[mine]
        views = batch.observations, batch.action_masks
        if len(own):
            seen = [event_rows(batch.events(row, 0))[told[row] :] for row in own.tolist()]
            told[own] += [len(events) for events in seen]
            actions[mine] = agent.act(views[0][own], views[1][own], own, seen)
        if (~mine).any():
            actions[~mine] = other.act(*(view[rows[~mine]] for view in views))
        batch.step(actions, rows)
        ended = batch.terminations
        gain[ended] = np.sign(batch.rewards[ended, 0])
    return float(gain.mean())


def test_a_best_response_wins_in_games_what_the_tree_says() -> None:
    decks = draw_deals(20, 2, "mini", seed=0)
    tree = build(decks, max_steps=14)
    greedy = threeup_agents.make("greedy")
    gain, response = best_response(greedy, 0, tree, samples=1)
    facts = {"variant": "mini"}
    strategy = MixedStrategy(
        response.keys, response.first, response.actions, response.weights, facts
    )
    # A pure strategy against a pure one: every deal once is the mean itself.
    found = played_out(Exact(strategy), greedy, max_steps=14, deals=20, seed=0)
    assert found == pytest.approx(gain)


def test_the_exact_player_refuses_other_games() -> None:
    with pytest.raises(ValueError, match="expected a table of 2; got 3"):
        Exact().begin(np.arange(3), np.arange(3), 3)
    agent, batch = Exact(), Batch(1)
    batch.reset()
    agent.begin(np.arange(1), np.zeros(1, np.int64), 2)
    with pytest.raises(ValueError, match="expected games of the variant 'mini'"):
        agent.act(batch.observations, batch.action_masks, np.arange(1), [np.zeros((0, 6), np.int8)])


@pytest.mark.slow
def test_the_shipped_strategy_can_hardly_be_exploited() -> None:
    whole = build()
    assert len(whole.chance) == 3156
    assert len(whole.nodes.seat) == 2_062_049
    sizes = f"2,062,049 decisions and {len(whole.key):,} information sets"
    assert f"3,156 deals, {sizes}" in PAGES["docs/strength.md"]
    # The prototype of another hand: .690 for uniform play and .392 for greedy.
    assert cfr.nash_conv(whole, whole.uniform()) == pytest.approx(0.690, abs=0.0006)
    stated = table_rows("docs/strength.md", "agent on `mini`")
    rows = {spec.strip("`"): float(number) for spec, number in stated}
    assert rows["greedy"] == 0.392
    assert len(rows) == 9
    for spec in rows.keys() - {"exact"}:
        found = nash_conv(threeup_agents.make(spec), whole, samples=4 if ":" in spec else 64)
        assert found == pytest.approx(rows[spec], abs=0.02), spec
    strategy = as_strategy(whole, MixedStrategy.read(SHIPPED))
    assert cfr.nash_conv(whole, strategy) < 5e-4
    assert cfr.value(whole, strategy) == pytest.approx(0.1337, abs=5e-4)


def test_the_command_solves_goes_on_and_says_who_is_exploitable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("threeup_agents.exact.__main__.whole_tree", lambda *_: subgame(10))
    out = ["--out", str(tmp_path / "run"), "--max-steps", "10", "--samples", "4"]
    assert main([*out, "--iterations", "30", "--agents", "greedy", "random"]) == 0
    first = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [row["agent"] for row in first["agents"]] == ["exact", "greedy", "random"]
    assert first["agents"][0]["nash_conv"] < 0.05 < first["agents"][1]["nash_conv"]
    assert main([*out, "--iterations", "60"]) == 0
    assert main(["--out", str(tmp_path / "once"), *out[2:], "--iterations", "60"]) == 0
    on, once = (
        json.loads((tmp_path / name / "results.json").read_text()) for name in ("run", "once")
    )
    assert on["nash_conv"] == once["nash_conv"] < first["nash_conv"]
    assert [mark for mark, _ in on["curve"]] == [25, 30, 50, 60]
    capsys.readouterr()
    assert main([*out[:2], "--max-steps", "9", "--iterations", "70"]) == 2
    assert "holds the run" in capsys.readouterr().err
    assert main([*out, "--iterations", "0"]) == 2
    assert "iterations: expected an integer of at least 1; got 0" in capsys.readouterr().err


def test_no_agent_wins_against_the_exact_player_in_the_arena() -> None:
    # The bank of a block is for loading; both orders of the seats are played on every deal.
    config = Config(("exact", "greedy", "random"), variant="mini", deals=400, max_steps=40, seed=3)
    results = evaluation.run(config)
    assert not results["failures"]
    shares = {(row["agent"], row["against"]): row for row in results["pairings"]}
    for other in ("greedy", "random"):  # NashConv is 0.00001: a share of half at the least
        assert shares["exact", other]["low"] > 0.5
