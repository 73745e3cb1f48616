"""Serves the folder of the page on this computer alone."""

from __future__ import annotations

import os
import sys
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.terminal import say

ADDRESS = "127.0.0.1"
#: A file that only a complete site has.
_LAST = "python.zip"
_HOSTS = (ADDRESS, "localhost")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
        # A worker has the policy of its own file: it unpacks the solver and reads it from a blob.
        "img-src 'self' data: blob:; connect-src 'self' blob:; worker-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Seconds that a client may take for its next line.
_TIMEOUT_S = 30


class PageServer(ThreadingHTTPServer):
    """A server of the plain files of a folder, and of nothing else.

    Parameters
    ----------
    folder : of the site
    port : TCP port; 0: any that is free
    """

    daemon_threads = True

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.resolve()
        super().__init__((ADDRESS, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server for this computer's name."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line for a request that fails, and none for a client that went away."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            say(f"web: a request failed: {type(error).__name__}: {error}")


class _Handler(SimpleHTTPRequestHandler):
    """Files with the types that browsers insist on; no line on the screen for each."""

    server: PageServer
    default_request_version = "HTTP/1.0"  # not 0.9, whose answers have no head
    server_version, sys_version = "buddysim", ""
    timeout = _TIMEOUT_S
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def send_head(self) -> Any:
        """Send the head of an answer; return the open file, or None where there is none."""
        host = self.headers.get("Host", "")
        if host.rpartition(":")[0] not in _HOSTS and host not in _HOSTS:
            # A page of another site whose name leads to this computer.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        if not Path(self.translate_path(self.path)).is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def translate_path(self, path: str) -> str:
        """Return the file of a request; where the site has no such file, a name that no file has."""
        self.directory = str(self.server.folder)
        name = super().translate_path(path)
        if name.rstrip(os.sep) == self.directory:
            name = f"{name}/index.html"
        inside = "\0" not in name and self.server.folder in Path(os.path.realpath(name)).parents
        return name if inside else os.devnull

    def end_headers(self) -> None:
        """Send the headers that every answer has."""
        for name, text in _HEADERS.items():
            self.send_header(name, text)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def open_server(folder: Path, port: int) -> PageServer:
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
        return PageServer(folder, port)
    except (OSError, OverflowError) as error:
        raise BuddysimError(f"--port {port}: {getattr(error, 'strerror', error)}: expected a free port") from None
