"""``python -m buddysim dnn``: networks, layer by layer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from buddysim.errors import BuddysimError

if TYPE_CHECKING:
    from buddysim.dnn.graph import Network

NAME = "dnn"
HELP = "list the networks, or show one: layers, shapes, bytes by kind, FLOPs"

LARGEST_BATCH = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list the networks that come with buddysim", allow_abbrev=False)
    listed.add_argument("--json", action="store_true", help="print JSON")
    info = actions.add_parser("info", help="show one network, layer by layer", allow_abbrev=False)
    info.add_argument("network", metavar="NAME|FILE.toml", help="a network of the zoo, or a network file")
    info.add_argument("--batch", type=int, default=1, metavar="N", help="samples in a batch (1 where it isn't given)")
    info.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        _list(args.json)
        return 0
    from buddysim.dnn.graph import Network

    if not 1 <= args.batch <= LARGEST_BATCH:
        raise BuddysimError(f"--batch {args.batch}: expected a whole number from 1 to {LARGEST_BATCH}")
    _show(Network.load(args.network), args.batch, args.json)
    return 0


def _list(as_json: bool) -> None:
    from buddysim.dnn import describe, zoo

    summaries = [describe.summary(zoo.load(name)) for name in zoo.names()]
    if as_json:
        _print_json(summaries)
    else:
        from buddysim.report.table import make_console

        make_console(describe.TABLE_WIDTH).print(describe.list_table(summaries))


def _show(network: Network, batch: int, as_json: bool) -> None:
    from buddysim.dnn import describe

    if as_json:
        _print_json(describe.facts(network, batch))
        return
    from buddysim.report.table import make_console

    console = make_console(describe.TABLE_WIDTH)
    with console.capture() as captured:
        console.print(describe.table(network, batch))
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _print_json(content: Any) -> None:
    import json

    print(json.dumps(content, indent=1, ensure_ascii=False))
