"""Options that change the machine, of the commands that simulate: `--set`, and the GPU memory of `--memory-budget`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from buddysim.machine.machine_file import MachineFile

    M = TypeVar("M", bound=MachineFile)


def add_set_argument(parser: argparse.ArgumentParser, example: str) -> None:
    """Add `--set KEY=VALUE`.

    Parameters
    ----------
    example : a change that the help text shows
    """
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        nargs="+",
        default=[],
        dest="settings",
        help=f"change the machine, for example {example}; may be repeated",
    )


def changed_keys(args: argparse.Namespace) -> dict[str, object]:
    """Return what --set says, by key."""
    from buddysim.base.settings import parse_settings

    return parse_settings(setting for group in args.settings for setting in group)


def changed_machine(machine: M, args: argparse.Namespace) -> M:
    """Return a machine with the changes of --set."""
    overrides = changed_keys(args)
    return machine.with_overrides(overrides, "--set") if overrides else machine


def memory_budget_bytes(args: argparse.Namespace) -> int | None:
    """Return the GPU memory that --memory-budget names, None without it.

    Raises
    ------
    BuddysimError
        where it is no size, or nothing
    """
    from buddysim.cli.sizes import size_bytes

    return None if args.memory_budget is None else size_bytes("--memory-budget", args.memory_budget)
