"""``python -m buddysim verify``: checks every section of a trace file."""

from __future__ import annotations

import argparse

NAME = "verify"
TASK = "prepare"
ORDER = 250
HELP = "check every checksum of a trace file and print the outcome"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    completes(parser.add_argument("file", metavar="FILE", help="the trace file"), "file")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from buddysim.base.counted import counted
    from buddysim.report.quantities import format_bytes
    from buddysim.report.screen import print_screen
    from buddysim.trace import open_trace, verify_trace

    console = Console(stderr=True)
    columns = (TextColumn("verifying"), BarColumn(), TextColumn("section {task.completed}"), TimeRemainingColumn())
    with open_trace(args.file) as trace:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=len(trace.file.index))
            counts = verify_trace(trace, lambda done: progress.update(task, completed=done))
        shown = (
            f"{counted(counts.sections, 'section')}, {counted(counts.allocations, 'allocation')}, "
            f"{counted(counts.events, 'event')}, {counted(counts.kernels, 'kernel')} of "
            f"{counted(counts.blocks, 'block')} in {counted(counts.chunks, 'chunk')}, "
            f"{counted(counts.memory_instructions, 'memory instruction')} with "
            f"{counted(counts.line_accesses, 'line')}, "
            f"{counted(counts.snapshots, 'snapshot')} with {format_bytes(counts.contents_bytes)}, "
            f"size maps of {counts.size_map_entries:,} entries; fingerprint {trace.fingerprint[:16]}"
        )
    print_screen([f"{trace.path}: ok", shown])
    return 0
