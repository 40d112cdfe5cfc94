"""A person's game in the terminal: what is seen, keys and clicks. It needs textual."""

import asyncio
import string
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.console import RenderableType
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from threeup_agents.arena.referee import AgentError
from threeup_agents.play import terminal_art as art
from threeup_agents.play.session import Session
from threeup_env.engine.actions import ACTION_NAMES
from threeup_env.view.card_art import DARK, MARK
from threeup_env.view.picture import FELT, PANEL

_LETTERS: Final = string.ascii_letters + string.punctuation
KEYS: Final = [*"1234567890", *(letter for letter in _LETTERS if letter not in "hunqHUNQ")]
"""The keys of the legal actions, in the order of their ids."""
WIDE: Final = 110
"""Columns from which on the log stands beside the table."""
TALL: Final = 34
"""Lines from which on cards are drawn big."""


class Terminal(App[str]):
    """The screen of a session; gives back what went wrong with an agent, or None.

    Args:
        session: dealt.
        out: file of the first game; later ones get a number.
        pause: seconds before another seat acts.

    Attributes:
        saved: the files of the games played.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "3UP 3DOWN"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h", "hint", "hint", priority=True),
        Binding("u", "undo", "undo", priority=True),
        Binding("n", "deal", "new game", priority=True),
        Binding("q", "leave", "leave", priority=True),
        Binding("ctrl+c,ctrl+q", "quit", "leave at once", show=False, priority=True),
        Binding("pageup", "scroll(-1)", "log up", show=False),
        Binding("pagedown", "scroll(1)", "log down", show=False),
    ]
    CSS = f"""
    Screen {{ background: {FELT}; }}
    #title {{ background: {PANEL}; color: white; height: 1; padding: 0 1; }}
    #upper {{ height: 1fr; }}
    .-wide #upper {{ layout: horizontal; }}
    #table, #lower {{ height: auto; padding: 0 1; }}
    .-wide #table {{ width: 1fr; height: 1fr; }}
    #lower {{ max-height: 60%; }}
    #turn, #notice {{ text-style: bold; color: {MARK}; height: auto; min-height: 1; }}
    #seats, .-tall #table Static, .-tall #lower Static {{ margin-bottom: 1; }}
    .-tall #lower {{ padding: 1 1 0 1; }}
    #record {{ height: 1fr; min-height: 3; background: {DARK}; padding: 0 1; }}
    .-wide #record {{ width: 44; height: 1fr; }}
    VerticalScroll {{ scrollbar-size-vertical: 1; scrollbar-background: {DARK};
        scrollbar-color: {PANEL}; }}
    Footer {{ background: {PANEL}; }}
    """

    def __init__(self, session: Session, out: Path, pause: float) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(TALL, "-tall")]
        self.session = session
        self.saved: list[Path] = []
        self._out = out
        self._pause = pause
        self._thinking = ""  # who is asked right now; nothing may change meanwhile
        self._path: Path | None = None  # of this game, once something has been played
        self._hint: int | None = None
        self._is_leaving = False
        self._big = False  # whether there is room for big cards

    def compose(self) -> ComposeResult:
        """Lay out the parts of the screen."""
        yield Static(id="title", markup=False)
        with VerticalScroll(id="upper", can_focus=False):
            with VerticalScroll(id="table", can_focus=False):
                for part in ("turn", "seats", "counts"):
                    yield Static(id=part, markup=False)
            with VerticalScroll(id="record", can_focus=False):
                yield Static(id="log", markup=False)
        with VerticalScroll(id="lower", can_focus=False):
            for part in ("pile", "own", "actions", "notice"):
                yield Static(id=part, markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin."""
        self.query_one("#actions").auto_links = False  # they have colours of their own
        self.query_one("#record").anchor()  # at its end
        self._changed()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size."""
        self._big = event.size.height >= TALL
        self._show()

    def on_key(self, event: events.Key) -> None:
        """Take the action of a key, or say which keys there are."""
        if not event.character or not event.is_printable:
            return
        choices = self.session.choices
        self._is_leaving = False
        if event.character in KEYS[: len(choices)]:
            self.action_choose(choices[KEYS.index(event.character)])
            return
        if event.character == "n":  # the key bar has it after the end
            self._say("this game goes on: q leaves it")
            return
        last = KEYS[min(len(choices), len(KEYS)) - 1]
        mine = f"{KEYS[0]} to {last} act" if len(choices) > 1 else "1 acts" * len(choices)
        others = "the game has ended" if self.session.is_over else "another seat is to act"
        self._say(f"{event.character!r} does nothing now; {mine or others}")

    def action_choose(self, action: int) -> None:
        """Take one of the person's legal actions."""
        if self._must_wait() or action not in self.session.choices:
            return
        self.session.play(action)
        self._changed()

    def action_undo(self) -> None:
        """Take the last action back, or say why it must stand."""
        if self._must_wait():
            return
        if refusal := self.session.undo_refusal:
            self._say(f"can't undo: {refusal}")
            return
        self.workers.cancel_group(self, "others")
        taken = ACTION_NAMES[self.session.recording.actions[-1]]
        self.session.undo()
        self._changed(f"taken back: {taken}")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep the next game out of the key bar until this one has ended."""
        return action != "deal" or self.session.is_over

    def action_deal(self) -> None:
        """Begin the next game; this one has ended."""
        self.session.deal()
        self._path = None
        self._changed()

    def action_leave(self) -> None:
        """Leave; in the middle of a game only at the second time."""
        if self._is_leaving or self.session.is_over or not self.session.num_actions:
            self.exit()
            return
        self._is_leaving = True
        self._say("q again leaves; the game is kept as it stands")

    def action_scroll(self, direction: int) -> None:
        """Turn a page of the log."""
        record = self.query_one("#record")
        record.release_anchor()
        record.scroll_relative(y=direction * (record.size.height - 1), animate=False)

    @work(exclusive=True, group="hint")
    async def action_hint(self) -> None:
        """Mark what the hint agent would do."""
        if self._must_wait():
            return
        if not self.session.choices:
            self._say("hints come in your turn")
            return
        self._hint = await self._ask()
        self._show()
        self._say(f"{self.session.hint} would {ACTION_NAMES[self._hint]}")

    @work(exclusive=True, group="others")
    async def _let_others_act(self) -> None:
        while not (self.session.choices or self.session.is_over):
            await asyncio.sleep(self._pause)
            action = await self._ask()
            self.session.play(action)
            self._save()
            self._show()

    async def _ask(self) -> int:
        """The answer of the agent in the seat to act, found beside the screen."""
        session = self.session
        self._thinking = session.hint if session.choices else session.name(session.to_act)
        try:
            return await asyncio.to_thread(session.ask)
        except AgentError as error:
            self.exit(str(error))
            raise asyncio.CancelledError from error
        finally:
            self._thinking = ""

    def _must_wait(self) -> bool:
        self._is_leaving = False
        if self._thinking:
            self._say(f"{self._thinking} is thinking")
        return bool(self._thinking)

    def _changed(self, notice: str = "") -> None:
        """Keep and show a position that the person has brought about; others go on from it."""
        self._hint = None
        self._save()
        self._show()
        self._say(notice)
        self._let_others_act()

    def _save(self) -> None:
        """Write the game as far as it has come, so that nothing can lose it."""
        if self._path is None and self.session.num_actions:
            self._path = free_path(self._out)
            self.saved.append(self._path)
        if self._path is not None:
            try:
                self.session.recording.save(self._path)
            except OSError as error:
                self.notify(f"can't save the game: {error}", severity="error", markup=False)

    def _say(self, words: str) -> None:
        self.query_one("#notice", Static).update(words)

    def _show(self) -> None:
        session, table = self.session, self.session.table
        parts: dict[str, Any] = {
            "title": f"3UP 3DOWN  {table.variant}, {len(table.places)} players, "
            f"you are seat {session.seat}",
            "turn": table.turn,
            "seats": art.seats(table, session.names),
            "pile": art.pile(table, self._big),
            "counts": art.counts(table),
            "own": art.own(table, session.choices, self._big),
            "actions": self._actions(),
            "log": art.log(session.log, session.seat),
        }
        for name, content in parts.items():
            self.query_one(f"#{name}", Static).update(content)
        self.refresh_bindings()

    def _actions(self) -> RenderableType:
        """What the person can do, or why nothing."""
        session = self.session
        if session.is_over:
            return f"{session.summary}\nthreeup page {self._path} makes a web page of it"
        if session.choices:
            return art.actions(session.choices, KEYS, self._hint)
        return f"{session.name(session.to_act)} is to act ..."


def free_path(path: Path) -> Path:
    """This path, or the first with a number that is free.

    >>> free_path(Path(__file__)).name
    'terminal-2.py'
    """
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free
