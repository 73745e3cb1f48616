"""Serves the folder of the page on this computer alone."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError

ADDRESS = "127.0.0.1"
#: A file that only a complete site has.
_LAST = "python.zip"


class _Handler(SimpleHTTPRequestHandler):
    """Files with the types that browsers insist on; no line on the screen for each."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        try:
            super().copyfile(source, outputfile)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the reader left


def open_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder, not yet serving.

    Parameters
    ----------
    port : TCP port; 0: any that is free

    Raises
    ------
    BuddysimError
        if the folder is no site, or the port is taken
    """
    if not (folder / _LAST).is_file():
        raise BuddysimError(f"{folder}: no page: expected the folder that make web builds (--site FOLDER)")
    try:
        return ThreadingHTTPServer((ADDRESS, port), partial(_Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise BuddysimError(f"--port {port}: {getattr(error, 'strerror', error)}: expected a free port") from None
