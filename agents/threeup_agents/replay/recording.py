"""A game as it was played, in a small file, and played again exactly."""

import json
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from threeup_agents import specs
from threeup_agents.files import parse_json, write_text
from threeup_env.agent import Agent, check_plain, name_of
from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.batch import Batch, events_of
from threeup_env.engine.cards import RANK_NAMES, VARIANT_NAMES
from threeup_env.engine.state import ENV_ID, Record

FORMAT: Final = "threeup recording"
VERSION: Final = 1
PERSON: Final = "person"
"""Who sits in the person's seat, in a recording."""

Weights = Mapping[int, float]
"""How much an agent thought of each action: probabilities, or a search's visits."""
Last = tuple[Record, int] | None
"""The record before the last action, and the action."""


@dataclass(frozen=True)
class Recording:
    """A game: the deck, who sat where, and the actions; it may have been left unfinished."""

    deck: tuple[int, ...]
    """Rank ids, its front first (R4)."""
    agents: tuple[str, ...]
    """Names, by seat."""
    actions: tuple[int, ...]
    variant: str = "standard"
    max_steps: int = 1000
    weights: tuple[Weights | None, ...] = ()
    """For each action what its agent thought of its choices, None where unknown; or empty."""

    @classmethod
    def from_env(cls, env: Any, agents: Sequence[str] = ()) -> "Recording":
        """Take the game from an AEC environment, wrapped or not.

        Args:
            env: of `threeup_env.env` or `raw_env`.
            agents: names, by seat; empty for those of the env.

        Raises:
            ValueError: no game has been dealt, or not one name a seat.
        """
        game = env.unwrapped
        if game.history is None:
            raise ValueError("env: expected one whose game has been dealt; call reset()")
        first, actions = game.history
        names = tuple(agents or game.possible_agents)
        if len(names) != first["num_seats"]:
            raise ValueError(f"agents: expected {first['num_seats']} names; got {len(names)}")
        variant = VARIANT_NAMES[first["variant"]]
        return cls(deck_of(first), names, tuple(actions), variant, int(first["max_steps"]))

    @property
    def num_players(self) -> int:
        """Seats at the table, S."""
        return len(self.agents)

    def play(self) -> Iterator[tuple[Batch, Last]]:
        """Play the game again: a batch of one after the deal, and again after each action.

        Each time it is the same batch, gone on by one action, with what led there.

        Raises:
            ValueError: the deck or an action isn't one that the rules allow.
        """
        batch = Batch(1, self.num_players, self.variant, self.max_steps, autoreset=False)
        batch.reset(decks=[self.deck])
        yield batch, None
        for step, action in enumerate(self.actions):
            if not batch.action_masks[0].any():
                raise ValueError(f"action {step + 1}: expected none, the game has ended")
            before = batch.states[0].copy()
            try:
                batch.step([action])
            except ValueError as error:
                raise ValueError(f"action {step + 1}: {error}") from error
            yield batch, (before, action)

    def events(self, seat: int) -> npt.NDArray[Any]:
        """What everybody saw, action by action, as a seat may know it; see `Batch.events`.

        Raises:
            ValueError: no such seat, or an action that the rules don't allow.
        """
        batch, _ = next(self.play())
        return events_of(batch.states[0], self.actions, seat)

    def explained(self, agents: Sequence[Agent | None]) -> "Recording":
        """Ask agents again what they think of each choice.

        Args:
            agents: by seat; None, or one that can't tell, leaves its choices unexplained.
        """
        weights: list[Weights | None] = []
        for batch, _ in self.play():
            agent = agents[batch.seats[0]]
            choices = np.flatnonzero(batch.action_masks[0])
            known = agent is not None and len(choices) > 1
            weights.append(
                weights_of(agent, batch.observations[0], batch.action_masks[0]) if known else None
            )
        return replace(self, weights=tuple(weights[: len(self.actions)]))

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all.

        Raises:
            OSError: it can't be written; then no file is left behind.
        """
        facts: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "env": ENV_ID,
            "num_players": self.num_players,
            "variant": self.variant,
            "max_steps": self.max_steps,
            "agents": self.agents,
            "deck": self.deck,
            "actions": self.actions,
        }
        if any(self.weights):
            facts["weights"] = self.weights
        write_text(path, json.dumps(facts, separators=(",", ":")) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote, and play it through.

        Raises:
            ValueError: it is damaged, foreign, of a later version, or breaks the rules.
            OSError: it can't be read.
        """
        try:
            facts = parse_json(path.read_bytes())
            recording = cls._from_facts(facts)
            for _ in recording.play():
                pass
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: expected a recorded game; {_reason(error)}") from error
        return recording

    @classmethod
    def _from_facts(cls, facts: dict[str, Any]) -> "Recording":
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise ValueError(f'the file says no "format": "{FORMAT}"')
        if (facts["version"], facts["env"]) != (VERSION, ENV_ID):
            raise ValueError(
                f"expected version {VERSION} of {ENV_ID}; got {facts['version']} of {facts['env']}"
            )
        weights = tuple(map(_weights, facts.get("weights", ())))
        actions = tuple(map(operator.index, facts["actions"]))
        if len(weights) not in (0, len(actions)):
            raise ValueError(f"weights: expected {len(actions)}; got {len(weights)}")
        agents = tuple(map(str, facts["agents"]))
        if len(agents) != facts["num_players"]:
            raise ValueError(f"agents: expected {facts['num_players']}; got {len(agents)}")
        deck = tuple(map(operator.index, facts["deck"]))
        max_steps = operator.index(facts["max_steps"])
        return cls(deck, agents, actions, str(facts["variant"]), max_steps, weights)


def record(
    line_up: Sequence[str | Agent],
    seed: int = 0,
    variant: str = "standard",
    max_steps: int = 1000,
) -> Recording:
    """Let agents play one game and record it.

    Args:
        line_up: by seat; a spec for `threeup_agents.make`, or an agent as it is. A spec that sits
            at several seats is one agent.
        seed: of the deal and of the agents that are made.
        variant: a key of `VARIANTS`.
        max_steps: the action that cuts the game off (R21).

    Raises:
        ValueError: no such agent, variant or table size, or an action against the rules.

    Example:
        >>> record(["greedy", "greedy"], seed=1).num_players
        2
    """
    made = {spec: specs.make(spec, seed) for spec in line_up if isinstance(spec, str)}
    players = [made[entrant] if isinstance(entrant, str) else entrant for entrant in line_up]
    for player in players:
        check_plain("line_up", player)
    batch = Batch(1, len(players), variant, max_steps, seed, autoreset=False)
    batch.reset()
    deck = deck_of(batch.states[0])
    actions = []
    while batch.action_masks[0].any():
        player = players[batch.seats[0]]
        seen, mask = batch.observations.copy(), batch.action_masks.copy()
        actions.append(int(player.act(seen, mask)[0]))
        batch.step(actions[-1:])
    names = tuple(map(name_of, players))
    return Recording(deck, names, tuple(actions), variant, max_steps)


def weights_of(
    agent: Any, observation: npt.NDArray[np.int8], action_mask: npt.NDArray[np.bool_]
) -> Weights | None:
    """What an agent thinks of each legal action, if it can explain itself."""
    if not hasattr(agent, "explain"):
        return None
    weights: Weights = agent.explain(observation, action_mask).weights
    return weights


def deck_of(game: Record) -> tuple[int, ...]:
    """A deck that deals this record, its front first (R4).

    Args:
        game: just dealt.

    Raises:
        ValueError: cards have been moved since.
    """
    if game["steps"]:
        raise ValueError(f"game: expected one just dealt; got one after {game['steps']} actions")
    deck: list[int] = []
    seats = range(int(game["num_seats"]))
    for seat in seats:
        deck += game["face_down"][seat, : game["face_down_size"][seat]][::-1].tolist()
    for seat in seats:
        deck += np.repeat(np.arange(len(RANK_NAMES)), game["hand"][seat]).tolist()
    return (*deck, *game["draw_pile"][: game["draw_pile_size"]][::-1].tolist())


def _weights(given: dict[str, Any] | None) -> Weights | None:
    if given is None:
        return None
    weights = {int(action): float(weight) for action, weight in given.items()}
    for action, weight in weights.items():
        if not (0 <= action < NUM_ACTIONS and 0 <= weight < math.inf):
            raise ValueError(f"weights: expected a number of an action; got {weight} of {action}")
    return weights


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it says nothing about {error}"
    return str(error)
