"""``python -m buddysim recover``: what an interrupted capture left, as a file that the other commands read."""

from __future__ import annotations

import argparse
from pathlib import Path

from buddysim.base.errors import BuddysimError

NAME = "recover"
TASK = "machine and models"
ORDER = 470
HELP = """recover what an interrupted capture wrote and write a trace file

A capture writes OUT.incomplete until it ends; no other command reads that file. Its complete sections become a trace or
activations file that is marked as partial; OUT.incomplete stays."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("part", metavar="OUT.incomplete", help="a trace, an activations file, or a folder of both")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="trace or activations file to write")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.inputs import open_input
    from buddysim.base.output import check_output
    from buddysim.capture.torch.recover import recover_folder
    from buddysim.formats.activations import layout
    from buddysim.formats.activations.recover import recover_activations
    from buddysim.trace import format as trace_format
    from buddysim.trace.recover import recover_trace

    check_output(args.output, [args.part])
    if Path(args.part).is_dir():
        held = recover_folder(Path(args.part), Path(args.output))
    else:
        with open_input(args.part, "part of a capture", incomplete=True) as file:
            magic = file.read(len(trace_format.SECTIONS.magic))
        makers = {trace_format.SECTIONS.magic: recover_trace, layout.SECTIONS.magic: recover_activations}
        if magic not in makers:
            raise BuddysimError(f"{args.part}: neither a trace nor an activations file: expected one of a capture")
        held = makers[magic](args.part, args.output)
    print(f"{args.output}: {held}")
    return 0
