# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup"]
# ///
"""A language model as a player: a prompt, a parser, and a program that plays in the arena.

    threeup evaluate --agents random "program:python text_player.py"
    threeup evaluate --agents random "program:python text_player.py my_models:ask"

The model is any function from a prompt to an answer, both texts; `my_models:ask` is the function
`ask` of the module `my_models`. Without one a scripted model answers.
"""

import importlib
import json
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from threeup_env import ACTION_NAMES, describe

Model = Callable[[str], str]

RULES = """You play the card game 3UP 3DOWN. Who sheds all cards first wins.
A discard must equal or beat the top of the pile: 1 < 2 < ... < 10 < C < C+1 < C+2.
C, C+1 and C+2 clear the pile; after C+1 you owe one more discard, after C+2 two.
Three equal numbers on top clear the pile too. Who can't discard picks up the pile.
You play from your hand; without hand and draw pile the cards face up, then those face down.
"""
"""What a model should know beforehand, e.g. as its system prompt."""

NAMES = sorted(ACTION_NAMES, key=len, reverse=True)
NAME = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, NAMES))})(?!\w|\+| x\d)", re.IGNORECASE)
"""An action's name, the longest that stands there: neither `play 7 x2` nor `play 7 x9` is `play 7`.
"""


def prompt(observation: Sequence[int], legal: Sequence[str]) -> str:
    """What a seat sees, and the names of what it may do."""
    seen = describe(np.array(observation, np.int8))
    return f"{seen}\nAnswer with one of: {', '.join(legal)}"


def parse(answer: str, legal: Sequence[str]) -> str | None:
    """The legal action that an answer names last; None if it names none."""
    by_lower = {name.lower(): name for name in legal}
    found = [by_lower.get(name.lower()) for name in NAME.findall(answer)]
    return next((name for name in reversed(found) if name is not None), None)


class TextPlayer:
    """Asks a model, and once more with a remark if its answer names no legal action.

    Args:
        model: from a prompt to an answer.
        tries: answers a decision; after that an action is drawn, and counted.
        seed: starts these draws.

    Attributes:
        answers: that the model has given.
        refused: of these, those that named no legal action.
        drawn: decisions that the model didn't make.
    """

    def __init__(self, model: Model, tries: int = 3, seed: int = 0) -> None:
        self.model = model
        self.tries = tries
        self.answers = self.refused = self.drawn = 0
        self._rng = random.Random(seed)

    def choose(self, observation: Sequence[int], legal: Sequence[str]) -> str:
        """The name of a legal action."""
        if len(legal) == 1:
            return legal[0]
        question = prompt(observation, legal)
        remark = ""
        for _ in range(self.tries):
            answer = self.model(question + remark)
            self.answers += 1
            name = parse(answer, legal)
            if name is not None:
                return name
            self.refused += 1
            remark = f"\nYou said {answer[:80]!r}. That names none of them."
        self.drawn += 1
        return self._rng.choice(legal)


def scripted(question: str) -> str:
    """A model to try things with: in words of its own, the first action that it is offered."""
    _, _, offered = question.partition("Answer with one of: ")
    first = offered.splitlines()[0].split(", ")[0]
    return f"The draw pile can wait. I think I {first}."


def reply(player: TextPlayer, message: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to one line of the arena's protocol, see `threeup_agents.programs.program`."""
    if message["type"] == "hello":
        return {"version": message["version"]}
    if message["type"] != "act":
        return None
    names = [[ACTION_NAMES[action] for action in legal] for legal in message["legal"]]
    rows = zip(message["observations"], names, strict=True)
    return {"actions": [ACTION_NAMES.index(player.choose(*row)) for row in rows]}


def main(arguments: Sequence[str]) -> None:
    """Play as a program, with the model that is named."""
    model: Model = scripted
    if arguments:
        module, _, name = arguments[0].partition(":")
        model = getattr(importlib.import_module(module), name)
    player = TextPlayer(model)
    for line in sys.stdin:
        answer = reply(player, json.loads(line))
        if answer is not None:
            print(json.dumps(answer), flush=True)
    print(f"{player.answers} answers, {player.refused} refused", file=sys.stderr)
    print(f"{player.drawn} decisions drawn instead", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
