"""The game of the terminal in a web browser, for this machine alone. It needs textual-serve.

`app_index.html` is the page around the terminal; the name is textual-serve's.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

HOST: Final = "localhost"
_OWN_PAGES: Final = (HOST, "127.0.0.1")


class Table(Server):
    """A server at which each page opened is a game of its own, in a process of its own.

    Args:
        arguments: of `threeup play`; a game is played with them.
        port: that it listens at.
    """

    def __init__(self, arguments: Sequence[str], port: int) -> None:
        # Of two flags the last one holds.
        command = [sys.executable, "-m", __package__, *arguments, "--no-browser"]
        folder = str(Path(__file__).parent)
        written = subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
        super().__init__(written, HOST, port, "3UP 3DOWN", templates_path=folder)

    def initialize_logging(self) -> None:
        """Leave the terminal to what the games say."""

    async def on_startup(self, app: web.Application) -> None:
        """Say where to play."""
        print(f"play at {self.public_url} (ctrl+c ends it)", flush=True)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Begin a game for a page of this server; a page of another site gets none."""
        if urlsplit(request.headers.get("Origin", "")).hostname not in _OWN_PAGES:
            raise web.HTTPForbidden(text="expected a page of this server")
        return await super().handle_websocket(request)


def serve(arguments: Sequence[str], port: int) -> None:
    """Serve games until the process is interrupted.

    Args:
        arguments: of `threeup play`.
        port: to listen at.

    Raises:
        OSError: another program listens there.
    """
    Table(arguments, port).serve()
