"""A person's game in a notebook, played with buttons. It needs ipywidgets."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from typing import Any, Final, cast

try:
    import ipywidgets
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "threeup_agents.play.widget needs ipywidgets: pip install 'threeup[notebooks]'"
    ) from error

from threeup_agents.arena.referee import AgentError
from threeup_agents.play.session import Session
from threeup_agents.replay.recording import Recording
from threeup_env.engine.actions import ACTION_COPIES, ACTION_NAMES, ACTION_RANK, FLIP
from threeup_env.engine.cards import RANK_NAMES
from threeup_env.view.card_art import CLEAR_COLOURS
from threeup_env.view.picture import as_html, draw
from threeup_env.view.table import Table

DOUBLE_CLICK: Final = 0.4
"""Seconds after a card within which another click on a card is the same one's second half."""
_LOG: Final = "max-height:12em;overflow-y:auto;line-height:1.4;font-size:90%"
_ROW: Final = {"flex_flow": "row wrap", "min_height": "36px"}


# ipywidgets has no types.
class Play(ipywidgets.VBox):  # type: ignore[misc]
    """A game against agents that shows itself in a notebook; the arguments are `Session`'s.

    Under the picture are your cards: a click plays or lays one of them. Below them are all
    actions by name, several equal cards at once among them.

    Args:
        opponents: specs of the agents in the other seats, taken in turn.
        num_players: seats at the table.
        variant: a key of `VARIANTS`.
        seat: yours.
        seed: of the deals and the agents.
        hint: spec of the agent that gives hints.
        pause: seconds before another seat acts, so that it can be followed; meanwhile your
            last action can be taken back.

    Attributes:
        session: the game without the buttons.

    Raises:
        ValueError: a bad argument; says which values would have been right.
        AgentError: an agent that can't play at this table.
    """

    def __init__(
        self,
        opponents: Sequence[str] = ("careful",),
        num_players: int = 2,
        variant: str = "standard",
        seat: int = 0,
        seed: int = 0,
        hint: str = "search:200",
        pause: float = 0.8,
    ) -> None:
        self.session = Session(opponents, num_players, variant, seat, seed, hint)
        self._pause = pause
        self._timer: asyncio.TimerHandle | None = None
        self._picture, self._notice, self._log = (ipywidgets.HTML() for _ in range(3))
        rows = [ipywidgets.Box(layout=_ROW) for _ in range(2)]
        self._cards, self._actions = rows
        self._clicked = -DOUBLE_CLICK  # when a card was clicked last
        self._controls = {}
        for name, call in (("hint", self._hint), ("undo", self._undo), ("new game", self._deal)):
            self._controls[name] = ipywidgets.Button(description=name)
            self._controls[name].on_click(call)
        controls = ipywidgets.HBox(tuple(self._controls.values()))
        super().__init__((self._picture, *rows, controls, self._notice, self._log))
        self._go_on()

    @property
    def recording(self) -> Recording:
        """The game as far as it has come; shows itself, and can be saved."""
        return self.session.recording

    def _choose(self, action: int, button: Any) -> None:
        if button in self._actions.children:  # a second click on a button may come late
            self.session.play(action)
            self._go_on()

    def _play_card(self, action: int, button: Any) -> None:
        now = time.monotonic()
        is_second = now - self._clicked < DOUBLE_CLICK
        self._clicked = now
        if button in self._cards.children and not is_second:
            self.session.play(action)
            self._go_on()

    def _hint(self, button: Any) -> None:
        if self.session.choices and (action := self._ask()) is not None:
            self._show(f"{self.session.hint} would {ACTION_NAMES[action]}", action)

    def _undo(self, button: Any) -> None:
        if refusal := self.session.undo_refusal:
            self._show(f"can't undo: {refusal}")
            return
        if self._timer is not None:
            self._timer.cancel()
        self.session.undo()
        self._show()

    def _deal(self, button: Any) -> None:
        if self.session.is_over:
            self.session.deal()
            self._go_on()

    def _go_on(self) -> None:
        """Let the others act, each after the pause where a loop runs, as in a notebook."""
        self._timer = None
        session = self.session
        loop = _running_loop() if self._pause > 0 else None
        while not (session.choices or session.is_over):
            if loop is not None:
                self._timer = loop.call_later(self._pause, self._answer)
                break
            if (action := self._ask()) is None:
                return
            session.play(action)
        self._show()

    def _answer(self) -> None:
        if (action := self._ask()) is not None:
            self.session.play(action)
            self._go_on()

    def _ask(self) -> int | None:
        """The answer of the agent in the seat to act; None, and said so, if it fails."""
        try:
            return self.session.ask()
        except AgentError as error:
            self._show(str(error))
            return None

    def _card_buttons(self) -> Iterator[Any]:
        """A button a card; a card that can't be played now is dim."""
        one = {
            int(ACTION_RANK[action]): action
            for action in self.session.choices
            if ACTION_COPIES[action] == 1 or action == FLIP
        }
        for rank in _own_cards(self.session.table):
            button = ipywidgets.Button(
                description=RANK_NAMES[rank] if rank >= 0 else "▒",
                tooltip=ACTION_NAMES[one[rank]] if rank in one else "",
                disabled=rank not in one,
                layout={"width": "50px", "height": "64px", "padding": "0"},
            )
            fill, ink = CLEAR_COLOURS.get(rank, ("#fbf7e8", "#14211f"))
            button.style.button_color, button.style.text_color = fill, ink
            button.style.font_weight = "bold"
            if rank in one:
                button.on_click(partial(self._play_card, one[rank]))
            yield button

    def _show(self, notice: str = "", hint: int | None = None) -> None:
        session = self.session
        names = ["" if i == session.seat else name for i, name in enumerate(session.names)]
        self._picture.value = as_html(draw(session.table, names))
        self._actions.children = tuple(
            ipywidgets.Button(
                description=ACTION_NAMES[action],
                button_style="warning" if action == hint else "primary",
                layout={"width": "auto"},
            )
            for action in session.choices
        )
        self._cards.children = tuple(self._card_buttons())
        for button, action in zip(self._actions.children, session.choices, strict=True):
            button.on_click(partial(self._choose, action))
        self._controls["hint"].disabled = not session.choices
        self._controls["undo"].disabled = bool(session.undo_refusal)
        self._controls["undo"].tooltip = session.undo_refusal
        self._controls["new game"].disabled = not session.is_over
        words = notice or (session.summary if session.is_over else "")
        self._notice.value = f"<b>{escape(words)}</b>"
        lines = "<br>".join(map(escape, reversed(session.log)))  # the latest stands on top
        self._log.value = f'<div style="{_LOG}">{lines}</div>'


def _own_cards(table: Table) -> list[int]:
    """Ranks of the cards in the zone that the looker plays from (R16), -1 for one face down."""
    place = table.places[cast(int, table.viewer)]
    if any(place.hand) or table.draw_pile_size:
        copies = place.hand
    elif any(place.face_up):
        copies = place.face_up
    else:
        return [-1] * len(place.face_down)
    return [rank for rank, count in enumerate(copies) for _ in range(count)]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
