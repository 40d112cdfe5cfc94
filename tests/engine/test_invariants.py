import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeup_env import VARIANTS, Batch, IllegalActionError
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.state import EMPTY

tables = st.sampled_from(
    [
        (num_players, name)
        for name, variant in VARIANTS.items()
        for num_players in range(2, variant.max_players + 1)
    ]
)
seeds = st.integers(0, 2**32 - 1)
# Which of the legal actions is taken; beyond its end the list is read again.
choices = st.lists(st.integers(0, 2**16), min_size=1, max_size=40)


def step(batch: Batch, choice: int) -> None:
    legal = np.flatnonzero(batch.action_masks[0])
    batch.step([legal[choice % len(legal)]])


def started(table: tuple[int, str], seed: int, max_steps: int) -> Batch:
    batch = Batch(1, *table, max_steps, autoreset=False)
    batch.reset(seed=seed)
    return batch


@given(table=tables, seed=seeds, choices=choices, max_steps=st.integers(1, 300))
@settings(deadline=None, max_examples=100)
def test_any_play_keeps_the_deck_and_ends_in_time(
    table: tuple[int, str], seed: int, choices: list[int], max_steps: int
) -> None:
    batch = started(table, seed, max_steps)
    copies = np.array(VARIANTS[table[1]].copies)
    game = batch.states[0]
    for taken in range(max_steps + 1):
        assert batch.lengths[0] == taken

        # Each card lies in exactly one place
        placed = game["pile"] + game["out_of_play"]
        placed = placed + game["hand"].sum(axis=0) + game["face_up"].sum(axis=0)
        hidden = [game["draw_pile"][: game["draw_pile_size"]]]
        for seat in range(table[0]):
            hidden.append(game["face_down"][seat][: game["face_down_size"][seat]])
        placed = placed + np.bincount(np.concatenate(hidden), minlength=len(copies))
        assert (placed == copies).all()

        # Sizes are those of what they count, and nothing lies at empty seats
        assert (game["hand"].sum(axis=1) == game["hand_size"]).all()
        assert (game["face_up"].sum(axis=1) == game["face_up_size"]).all()
        assert (game["known"] <= game["hand"]).all()
        assert not game["hand_size"][table[0] :].any()

        # The pile never decreases, so its counts are the whole of it
        ranks = np.flatnonzero(game["pile"])
        assert game["top"] == (ranks[-1] if len(ranks) else EMPTY)
        assert game["pile"].max() <= 2
        assert not game["pile"][10:].any()

        ended = bool(batch.terminations[0] or batch.truncations[0])
        assert batch.action_masks[0].any() != ended
        if ended:
            break
        step(batch, choices[taken % len(choices)])
    assert ended
    lost = table[0] if batch.truncations[0] else table[0] - 1
    assert batch.rewards[0].tolist().count(-1 / np.float32(table[0] - 1)) == lost
    assert bool(batch.truncations[0]) == (batch.cards_left[0].min() > 0)


@given(table=tables, seed=seeds, choices=choices, length=st.integers(0, 150))
@settings(deadline=None, max_examples=50)
def test_the_mask_is_what_is_accepted(
    table: tuple[int, str], seed: int, choices: list[int], length: int
) -> None:
    batch = started(table, seed, max_steps=1000)
    for taken in range(length):
        if batch.terminations[0]:
            break
        step(batch, choices[taken % len(choices)])
    if batch.terminations[0]:
        return
    for action in range(-1, NUM_ACTIONS + 1):
        after = batch.copy()
        if action in np.flatnonzero(batch.action_masks[0]):
            after.step([action])
            assert after.lengths[0] == batch.lengths[0] + 1
            continue
        with pytest.raises(IllegalActionError):
            after.step([action])
        assert after.states == batch.states
        assert (after.observations == batch.observations).all()
        assert (after.action_masks == batch.action_masks).all()


@given(table=tables, seed=seeds, choices=choices)
@settings(deadline=None, max_examples=25)
def test_the_same_seed_and_actions_are_the_same_game(
    table: tuple[int, str], seed: int, choices: list[int]
) -> None:
    batch, again = (started(table, seed, max_steps=60) for _ in range(2))
    for choice in choices:
        assert batch.states == again.states
        assert (batch.action_masks == again.action_masks).all()
        if not batch.action_masks.any():
            break
        step(batch, choice)
        step(again, choice)
