"""Arguments that the kinds of captures have in common."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.machine.units import parse_size

if TYPE_CHECKING:
    from buddysim.capture.launch_window import LaunchWindow


def add_compressor(parser: argparse.ArgumentParser) -> None:
    """Add the compressor whose size classes the trace's size maps hold."""
    from buddysim.compress import DEFAULT
    from buddysim.compress.compressors import size_map_algorithms

    parser.add_argument(
        "--compressor",
        type=_compressor,
        default=DEFAULT,
        metavar="NAME",
        help=f"compressor of the size maps: {', '.join(size_map_algorithms())} (default: %(default)s)",
    )


def _compressor(name: str) -> str:
    from buddysim.compress.compressors import find_for_size_maps

    try:
        find_for_size_maps(name)
    except BuddysimError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def add_provenance(parser: argparse.ArgumentParser, what: str, level: int) -> None:
    """Add options for the file's compression and for its provenance.

    Parameters
    ----------
    what : the captured subject, for help texts: ``"program"``
    level : default compression level of zstd
    """
    parser.add_argument(
        "--level",
        type=int,
        default=level,
        choices=range(1, 20),
        metavar="1..19",
        help=f"compression level of zstd (default: {level})",
    )
    parser.add_argument("--source", default="", help=f"what the {what} is, for the provenance")
    parser.add_argument("--licence", default="", help=f"licence of the {what} and its data, for the provenance")


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the program to run."""
    parser.add_argument("program", metavar="PROGRAM", help="program to run, after --, with its arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help=argparse.SUPPRESS)


def snapshot_count(text: str) -> int:
    """Read `--snapshots` of captures that know launches."""
    if not text.isdecimal() or int(text) > 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 to 1000")
    return int(text)


def launch_window(text: str) -> LaunchWindow:
    """Read `--launches`."""
    from buddysim.capture.launch_window import LaunchWindow

    try:
        return LaunchWindow.parse(text)
    except BuddysimError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


#: More than any memory has.
ALL = 1 << 62


def size(text: str, least: int = 1) -> int:
    """Return a size in bytes, at least so many: the type of an option."""
    try:
        return min(parse_size(text, least), ALL)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def size_or_all(text: str, least: int = 1) -> int:
    """Return a size in bytes, at least so many, or `ALL`: the type of an option."""
    return ALL if text == "all" else size(text, least)
