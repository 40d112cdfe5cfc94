# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "open_spiel==2.0.2"]
# ///
"""3UP 3DOWN as a game of OpenSpiel, for its search, its regret minimisers and its NashConv.

    import openspiel_game  # registers it
    game = pyspiel.load_game("python_threeup(variant=mini,max_steps=40)")

Chance deals the deck card by card, or with `deals=N` picks one of N decks drawn beforehand. Returns
are the environment's less their mean, which sum to zero: 0 for all in a game that is cut off.
An information state is all that a seat has observed, step by step.
"""

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pyspiel
from pyspiel import GameType

from threeup_agents.arena.deals import draw_deals
from threeup_env import ACTION_NAMES, RANK_NAMES, Batch, describe, determinize, observation_fields
from threeup_env.engine.cards import sorted_deck

_GIVEN = [f"provides_information_state_{form}" for form in ("string", "tensor")]
_GIVEN += [f"provides_observation_{form}" for form in ("string", "tensor")]
_DEFAULTS = {"num_players": 2, "variant": "standard", "max_steps": 200, "deals": 0, "seed": 0}
_TYPE = GameType(
    short_name="python_threeup",
    long_name="3UP 3DOWN",
    dynamics=GameType.Dynamics.SEQUENTIAL,
    chance_mode=GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=GameType.Information.IMPERFECT_INFORMATION,
    utility=GameType.Utility.ZERO_SUM,
    reward_model=GameType.RewardModel.TERMINAL,
    parameter_specification=_DEFAULTS,
    **dict.fromkeys(_GIVEN, True) | {"min_num_players": 2, "max_num_players": 6},
)


class Game(pyspiel.Game):  # type: ignore[misc]
    """See the module."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given: dict[str, Any] = _DEFAULTS | (params or {})
        self.how = {name: given[name] for name in ("num_players", "variant", "max_steps")}
        size, deals, deck = given["num_players"], given["deals"], given["variant"]
        self.decks = draw_deals(max(deals, 1), size, deck, given["seed"])[:deals].tolist()
        sizes = len(ACTION_NAMES), deals or len(RANK_NAMES), size
        info = pyspiel.GameInfo(*sizes, -1.0, 1.0, 0.0, given["max_steps"])
        super().__init__(_TYPE, info, params or {})

    def new_initial_state(self) -> "State":
        """Before the deal."""
        return State(self, self.how, self.decks)

    def make_py_observer(self, kind: Any = None, params: Any = None) -> "Observer":
        """What OpenSpiel reads observations and information states with."""
        return Observer(self.how, kind is not None and kind.perfect_recall)


class State(pyspiel.State):  # type: ignore[misc]
    """A game under way, or before its deal is complete."""

    def __init__(self, game: Game, how: dict[str, Any], decks: list[list[int]]) -> None:
        super().__init__(game)
        self.how, self.decks = how, decks
        self.deck: list[int] = []
        self.batch: Any = None  # none before the deal
        self.seen: list[Any] = []  # step by step what each seat has observed; int8 `[S, F]`

    def current_player(self) -> int:
        """The seat to act, or chance, or nobody."""
        waiting = pyspiel.PlayerId.TERMINAL if self.is_terminal() else pyspiel.PlayerId.CHANCE
        return int(self.batch.seats[0] if self.batch and not self.is_terminal() else waiting)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The next card of the deck, by rank; or the number of a deck."""
        if self.decks:
            return [(number, 1 / len(self.decks)) for number in range(len(self.decks))]
        left = Counter(sorted_deck(self.how["variant"]).tolist()) - Counter(self.deck)
        return [(rank, copies / left.total()) for rank, copies in sorted(left.items())]

    def _legal_actions(self, player: int) -> list[int]:
        return list(map(int, np.flatnonzero(self.batch.action_masks[0])))

    def _apply_action(self, action: int) -> None:
        if self.batch is not None:
            self.batch.step([action])
        else:
            self.deck = self.decks[action] if self.decks else [*self.deck, action]
            if len(self.deck) < len(sorted_deck(self.how["variant"])):
                return
            self.batch = Batch(1, autoreset=False, **self.how)
            self.batch.reset(decks=[self.deck])
        seats = range(self.how["num_players"])
        self.seen.append(np.concatenate([self.batch.observe([seat]) for seat in seats]))

    def _action_to_string(self, player: int, action: int) -> str:
        card = action if self.decks else RANK_NAMES[action % len(RANK_NAMES)]
        return f"deal {card}" if player == pyspiel.PlayerId.CHANCE else ACTION_NAMES[action]

    def is_terminal(self) -> bool:
        """Whether the game has ended."""
        return self.batch is not None and not self.batch.action_masks.any()

    def returns(self) -> list[float]:
        """By seat, see the module."""
        won = self.batch.rewards[0] > 0 if self.batch else np.zeros(self.how["num_players"], bool)
        return list(map(float, np.where(won, 1.0, -1 / (len(won) - 1)) * won.any()))

    def resample_from_infostate(self, player: int, sampler: Any) -> "State":
        """For IS-MCTS, a state that the seat can't tell from this one; others forget their past."""
        found: State = self.clone()
        is_mine = np.arange(self.how["num_players"])[:, None] == player
        found.seen = [view * is_mine for view in self.seen]
        found.batch.load(determinize(self.seen[-1][[player]], int(sampler() * 2**32))[:, 0])
        return found

    def __str__(self) -> str:
        return "the deal" if self.batch is None else describe(self.seen[-1][self.batch.seats[0]])


class Observer:
    """One observation, or with perfect recall all so far, as `tensor` and as text."""

    def __init__(self, how: dict[str, Any], has_recall: bool) -> None:
        self.has_recall = has_recall
        num_features = max(part.stop for part in observation_fields(how["num_players"]).values())
        steps = how["max_steps"] + 1 if has_recall else 1
        self.tensor = np.zeros(steps * num_features, np.float32)
        self.dict = {"history": self.tensor.reshape(steps, -1)}

    def set_from(self, state: State, player: int) -> None:
        """Write what a seat has observed."""
        self.tensor.fill(0)
        views = state.seen if self.has_recall else state.seen[-1:]
        for row, view in zip(self.dict["history"], views, strict=False):
            row[:] = view[player]

    def string_from(self, state: State, player: int) -> str:
        """The last observation in words, with recall and a hash of all before."""
        past = b"".join(view[player].tobytes() for view in state.seen) if self.has_recall else b""
        words = describe(state.seen[-1][player]) if state.seen else "the deal"
        return words + f"\n{hashlib.blake2b(past, digest_size=16).hexdigest()}" * self.has_recall


pyspiel.register_game(_TYPE, Game)
