"""``python -m buddysim web``: the page that answers in a browser."""

from __future__ import annotations

import argparse

NAME = "web"
TASK = "look"
ORDER = 360
HELP = """serve the page that answers in a browser, and open it

The simulator runs in the browser itself; this command only serves its files, on this computer alone. Ctrl-C ends it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", metavar="N", type=int, default=8000, help="port; 0: any that is free (default: 8000)")
    parser.add_argument(
        "--site", metavar="FOLDER", default="out/web", help="folder that make web builds (default: out/web)"
    )
    parser.add_argument("--no-open", action="store_true", help="open no browser")


def run(args: argparse.Namespace) -> int:
    import webbrowser
    from pathlib import Path

    from buddysim.web.server import ADDRESS, open_server

    with open_server(Path(args.site), args.port) as server:
        address = f"http://{ADDRESS}:{server.server_port}/"
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        if not args.no_open:
            webbrowser.open(address)
        server.serve_forever()
    return 0
