"""``python -m buddysim networks``: networks, layer by layer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError

if TYPE_CHECKING:
    from buddysim.training.networks.graph import Network

NAME = "networks"
TASK = "machine and models"
ORDER = 410
HELP = "list networks, or show one with its layers, bytes and FLOPs"

LARGEST_BATCH = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.base.option import field_options
    from buddysim.cli.completion import completes
    from buddysim.cli.json_output import add_json_argument
    from buddysim.cli.option_arguments import add_options
    from buddysim.training.options.config_options import ConfigOptions

    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list the networks, those of plug-ins too", allow_abbrev=False)
    add_json_argument(listed, "the networks")

    show = actions.add_parser("show", help="show one network, layer by layer", allow_abbrev=False)
    completes(
        show.add_argument("network", metavar="NAME|FILE", help="a registered network, a network file, a config.json"),
        "network",
    )
    show.add_argument("--batch", type=int, default=1, metavar="N", help="samples in a batch (default: 1)")
    add_options(show.add_argument_group("networks from a config.json"), field_options(ConfigOptions))
    form = show.add_mutually_exclusive_group()
    add_json_argument(form, "the layers and their numbers")
    form.add_argument("--toml", action="store_true", help="print it as a network file, to copy and edit")

    torch = actions.add_parser(
        "from-torch", help="write a PyTorch module as a network file (needs PyTorch)", allow_abbrev=False
    )
    torch.add_argument(
        "module", metavar="FILE.py:NAME", help="the module, or a function that makes it; also PACKAGE.MODULE:NAME"
    )
    torch.add_argument("--input-shape", required=True, metavar="CxHxW", help="shape of one sample: 3x224x224")
    torch.add_argument("--name", help="name of the network (default: the module's class)")
    torch.add_argument(
        "--in-place-as-written",
        action="store_true",
        help="activations run in place only where the module says so (default: wherever the graph allows it)",
    )
    torch.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="network file to write (default: standard output); .json: what a training step saves, for any module",
    )


def run(args: argparse.Namespace) -> int:
    actions = {"list": _list, "show": _show, "from-torch": _from_torch}
    actions[args.action](args)
    return 0


def _list(args: argparse.Namespace) -> None:
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.report.network_table import list_table
    from buddysim.report.screen import print_screen
    from buddysim.training import zoo
    from buddysim.training.network_facts import summary

    check_outputs([json_file(args)])
    summaries = [summary(name) for name in zoo.names()]
    write_plain_json(args, summaries)
    if not is_on_stdout(args):
        print_screen([list_table(summaries)])


def _show(args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import print_utf8
    from buddysim.base.option import field_options
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.report.network_table import network_parts
    from buddysim.report.screen import print_screen
    from buddysim.training.network_facts import facts
    from buddysim.training.networks.toml_writer import to_toml
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.request import TrainingRequest

    if not 1 <= args.batch <= LARGEST_BATCH:
        raise BuddysimError(f"--batch {args.batch}: expected an integer from 1 to {LARGEST_BATCH}")
    check_outputs([json_file(args)], [args.network])
    options = {name: getattr(args, name) for name in field_options(ConfigOptions)}
    network = TrainingRequest.of(network=args.network, batch=args.batch, **options).load_network()
    if args.toml and network.recorded:
        raise BuddysimError(f"--toml: {network.name} is recorded operation by operation: expected --json FILE")
    write_plain_json(args, facts(network, args.batch))
    if is_on_stdout(args):
        return
    if args.toml:
        print_utf8(to_toml(network))
    else:
        print_screen(network_parts(network, args.batch))


def _from_torch(args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.base.output import check_outputs
    from buddysim.training.network_facts import facts
    from buddysim.training.networks.from_torch import network_from_torch
    from buddysim.training.networks.from_torch.find import find_module

    check_outputs([None if args.output == "-" else args.output], [args.module.partition(":")[0]])
    network = network_from_torch(
        find_module(args.module), _shape(args.input_shape), args.name, args.in_place_as_written
    )
    if args.output is not None and args.output.endswith(".json"):
        write_json(args.output, facts(network, 1))
        print(f"{args.output}: {network.name}, {network.parameters:,} parameters, every saved tensor of one sample")
        return
    if network.recorded:
        raise BuddysimError(
            f"{network.name}: not all of its steps are kinds of layers, so it can't be a network file: expected -o "
            "FILE.json (what its step saves), or in Python simulate(network_from_torch(..), ..)"
        )
    _write(network, args.output)


def _shape(text: str) -> tuple[int, ...]:
    parts = text.replace(",", "x").split("x")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise BuddysimError(f"--input {text}: expected the shape of one sample, for example 3x224x224")
    return tuple(map(int, parts))


def _write(network: Network, output: str | None) -> None:
    from buddysim.base.jsonfile import print_utf8
    from buddysim.base.output import write_text
    from buddysim.training.networks.toml_writer import to_toml

    text = to_toml(network)
    if output is None or output == "-":
        print_utf8(text)
        return
    write_text(output, text)
    print(f"{output}: {network.name}, {len(network.layers) - 1} layers, {network.parameters:,} parameters")
