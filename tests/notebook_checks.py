"""What must hold in the notebooks while they run: after which words of a cell, and what."""

from typing import Final

CHECKS: Final[dict[str, list[tuple[str, str]]]] = {
    "01_rules_tour": [
        (
            "import numpy",
            """
            assert VARIANTS["standard"].deck_size == 84
            assert VARIANTS["mini"].deck_size == 10
            """,
        ),
        ("env(variant=", 'assert table.agent_selection == "player_0"'),
        (
            'action_id("lay 2")',
            """
            seen = describe(table.observe("player_1")["observation"])
            assert "seat 1 (you): hand 1 1; face up 2; face down 1" in seen
            """,
        ),
        ("play C+2", 'assert decode(table.observe("player_0")["observation"])["owed"] == 2'),
        (
            "play 2",
            """
            legal = names[table.observe("player_1")["action_mask"] == 1]
            assert legal.tolist() == ["pick up"]
            """,
        ),
        (
            "pick up",
            """
            assert "seat 1: hand 3 cards with 2, 2 below 2" in describe(zero)
            assert "hand 1 1 2 (the others know 2, 2 below 2)" in describe(one)
            assert decode(zero)["unseen"].sum() == 4
            assert decode(one)["unseen"].sum() == 3
            """,
        ),
        (
            "flip",
            """
            sizes = decode(table.observe("player_0")["observation"])["seats"]["hand_size"]
            assert sizes.tolist() == [5, 0]
            """,
        ),
        (
            "play 2 x2",
            'assert not decode(table.observe("player_1")["observation"])["pile"].any()',
        ),
        (
            "rewards",
            """
            assert table.rewards == {"player_0": -1, "player_1": 1}
            assert all(table.terminations.values())
            """,
        ),
        ("ThreeUpEnv(", 'assert decode(observation)["laying"] == 3'),
        (
            "game.step",
            """
            assert decode(observation)["laying"] == 2
            assert (reward, terminated, truncated) == (0, False, False)
            """,
        ),
    ],
    "02_first_agent": [
        ("Batch(num_games=1", 'assert decode(batch.observations)["laying"].tolist() == [3]'),
        (
            "num_games=500",
            """
            assert legal.all()
            assert alone == actions.tolist()
            """,
        ),
        ('"random"], deals=deals', "assert share.low > 0.5"),
        (
            "figures.ratings",
            """
            assert pairings.loc[("blocker", "random"), "verdict"] == "better"
            assert pairings.loc[("calm", "blocker"), "verdict"] == "better"
            assert abs(pairings.loc[("calm", "greedy"), "win_share"] - 0.5) < 0.05
            cut_off = pairings["cut_off_share"]
            assert cut_off["blocker", "greedy"] > cut_off["calm", "greedy"]
            """,
        ),
        (
            "page(game)",
            """
            *_, (end, _) = game.play()
            assert end.cards_left[0, 1] == 0
            """,
        ),
    ],
    "03_train_and_watch": [
        (
            "model.learn",
            """
            lengths = [length for _, length in curves.lengths]
            assert lengths[-1] < max(lengths)
            """,
        ),
        (
            "curves.measurements[-2:]",
            """
            assert curves.measurements[0].opponent == "random"
            assert curves.measurements[0].low < 0.5
            assert table.loc["random", "low"] > 0.5
            """,
        ),
        (
            "model.export",
            """
            assert agent.name == "first-policy"
            assert share.low < share.value < share.high
            """,
        ),
        ("policy:net", "assert share.high < 0.5"),
        (
            "page(game)",
            """
            assert game.agents == ("first-policy", "greedy")
            assert any(game.weights)
            """,
        ),
    ],
    "04_results": [
        ("evaluation.run(", 'assert (folder / "report.html").exists()'),
        (
            "figures.ratings",
            """
            assert ratings.loc["random", "rating"] == 0
            assert ratings.loc["careful", "low"] > 0
            """,
        ),
        (
            "figures.lengths",
            """
            assert len(games) == results["games"]
            assert 100 < games["length"].median() < 200
            """,
        ),
        ("by_lead", 'assert together.loc["Clear cards", "correlation"] > 0'),
        (
            "plot.hist",
            """
            assert abs(choices["cost"].median()) < 0.02
            assert choices["cost"].mean() < 0.03
            assert choices["cost"].max() > -choices["cost"].min()
            """,
        ),
        ("nlargest", 'assert (worst["cost"].diff().dropna() <= 0).all()'),
    ],
    "05_search_and_belief": [
        (
            "true_hand =",
            """
            assert (drawn.observe(np.full(num_worlds, seat)) == observation).all()
            assert len({world.tobytes() for world in worlds}) == num_worlds
            """,
        ),
        (
            "belief =",
            """
            told = view["seats"]["bounds"][1]
            assert known.any() and (worlds["hand"][:, other] >= known).all()
            assert view["seats"]["hand_size"][1] - known.sum() == (told > 0).sum()
            assert belief[told.max() :].sum() == known[told.max() :].sum()
            """,
        ),
        ("search =", "assert decision.visits.sum() == search.count"),
        (
            "again =",
            """
            assert again.chosen == decision.chosen
            assert again.visits.tolist() == decision.visits.tolist()
            """,
        ),
        ("page(game)", "assert any(game.weights)"),
    ],
}
"""By notebook, in the order of its cells; each runs right after the next cell with its words."""
