"""Arguments that captures of programs have in common."""

from __future__ import annotations

import argparse


def add_provenance(parser: argparse.ArgumentParser, what: str, level: int) -> None:
    """How the file is compressed, and what it is to say of what was captured.

    Parameters
    ----------
    what : is captured: ``"program"``
    level : of zstd, where none is given
    """
    parser.add_argument(
        "--level", type=int, default=level, choices=range(1, 20), metavar="1..19", help=f"of zstd (default {level})"
    )
    parser.add_argument("--source", default="", help=f"what the {what} is, for the provenance")
    parser.add_argument("--licence", default="", help=f"of the {what} and its data, for the provenance")


def add_program(parser: argparse.ArgumentParser) -> None:
    """The program to run."""
    parser.add_argument("program", metavar="PROGRAM", help="after --, with its arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help=argparse.SUPPRESS)
