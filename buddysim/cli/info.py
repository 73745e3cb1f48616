"""``python -m buddysim info``: what a trace file holds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from buddysim.compress import STUDY_CLASSES
from buddysim.trace import open_trace
from buddysim.trace.describe import describe

NAME = "info"
HELP = "show what a trace file holds"

_WIDTH_WHEN_PIPED = 160
_FIRST_ROWS, _LAST_ROWS = 12, 4  # of a long list; all of it is in the JSON
_NAME_WIDTH = 48
_CLASS_NAMES = tuple(f"{size} B" for size in STUDY_CLASSES)

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the trace file")
    parser.add_argument("--json", action="store_true", help="print JSON, all lists complete")


def run(args: argparse.Namespace) -> int:
    with open_trace(args.file) as trace:
        content = describe(trace)
    if args.json:
        print(json.dumps(content, indent=2))
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        if not console.is_terminal:
            console = Console(highlight=False, markup=False, emoji=False, width=_WIDTH_WHEN_PIPED)
        _show(content, console)
    return 0


def _show(content: Row, console: Console) -> None:
    totals = content["totals"]
    console.print(
        f"{content['path']}: {_size(content['bytes'])}, format {content['format_version']}, "
        f"fingerprint {content['fingerprint'][:16]}"
    )
    if content["interrupted"]:
        console.print("INTERRUPTED: the file was not finished; this is what its complete sections hold")
    console.print(
        f"{len(content['kernels'])} kernels, {totals['blocks']:,} blocks in {totals['chunks']:,} chunks "
        f"({_size(totals['chunk_bytes'])}), {totals['warp_instructions']:,} warp instructions, "
        f"{totals['memory_instructions']:,} of them memory instructions with {totals['line_accesses']:,} lines; "
        f"allocations of {_size(totals['allocated_bytes'])}"
    )
    _show_provenance(content["provenance"], console)
    names = [allocation["name"] for allocation in content["allocations"]]
    _show_allocations(content["allocations"], console)
    _show_kernels(content["kernels"], console)
    _show_events(content, console)
    _show_snapshots(content["snapshots"], names, console)
    _show_size_maps(content["size_maps"], names, console)


def _show_provenance(provenance: Row, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    tool = " ".join(text for text in (provenance["tool"], provenance["version"]) if text)
    rows = [("made by", tool), *((key, provenance[key]) for key in ("source", "licence", "command"))]
    rows += [(f"assumed: {subject}", text) for subject, text in provenance["assumptions"].items()]
    for key, text in rows:
        if text:
            grid.add_row(_printable(key), _printable(text))
    console.print()
    console.print(grid)


def _show_allocations(allocations: list[Row], console: Console) -> None:
    _table(
        console,
        "allocations",
        ("", "name", "base", "bytes", "entries", "space", "events"),
        allocations,
        lambda a: (
            str(a["index"]),
            _name(a["name"]),
            f"{a['base']:#x}",
            f"{a['bytes']:,}",
            f"{a['entries']:,}",
            a["space"],
            f"{a['born']}-{'' if a['died'] is None else a['died']}",
        ),
    )


def _show_kernels(kernels: list[Row], console: Console) -> None:
    headings = ("", "kernel", "launch", "grid", "block", "regs", "shared", "stream", "blocks", "chunks")
    _table(
        console,
        "kernels",
        (*headings, "warp instr.", "memory instr.", "lines"),
        kernels,
        lambda k: (
            str(k["index"]),
            _name(k["name"]) + ("" if k["complete"] else " (incomplete)"),
            str(k["ordinal"]),
            "x".join(map(str, k["grid"])),
            "x".join(map(str, k["block"])),
            str(k["registers"] or ""),
            str(k["shared_memory_bytes"] or ""),
            str(k["stream"]),
            f"{k['n_blocks']:,}",
            f"{k['n_chunks']:,}",
            f"{k['warp_instructions']:,}",
            f"{k['memory_instructions']:,}",
            f"{k['line_accesses']:,}",
        ),
    )


def _show_events(content: Row, console: Console) -> None:
    kernels = content["kernels"]

    def row(numbered: tuple[int, Row]) -> tuple[str, ...]:
        number, event = numbered
        if event["event"] == "kernel":
            return str(number), "kernel", "", "", _name(kernels[event["kernel"]]["name"])
        if event["event"] == "memset":
            what = "" if event["value"] is None else f"with {event['value']:#04x}"
        else:
            source = "" if event["source"] is None else f" from {event['source']:#x}"
            what = event["direction"] + source
        return str(number), event["event"], f"{event['address']:#x}", f"{event['bytes']:,}", what

    events = list(enumerate(content["events"]))
    _table(console, "events", ("", "event", "address", "bytes", ""), events, row)


def _show_snapshots(snapshots: list[Row], names: list[str], console: Console) -> None:
    rows = [(snapshot, contents) for snapshot in snapshots for contents in snapshot["contents"] or [None]]

    def row(pair: tuple[Row, Row | None]) -> tuple[str, ...]:
        snapshot, contents = pair
        head = (str(snapshot["index"]), str(snapshot["point"]), _name(snapshot["label"]))
        if contents is None:
            return (*head, "no contents", "", "", "")
        share = "whole" if contents["whole"] else f"{100 * contents['share']:.2f} %"
        name = _name(names[contents["allocation"]])
        return (*head, name, share, f"{contents['pages']:,}", _size(contents["page_bytes"]))

    headings = ("", "after launches", "label", "contents of", "sampled", "pages", "of")
    what = f"allocations' contents in {len(snapshots):,} snapshots" if len(rows) > 1 else "snapshots"
    _table(console, what, headings, rows, row)


def _show_size_maps(size_maps: list[Row], names: list[str], console: Console) -> None:
    _table(
        console,
        "size maps, share of entries by size class",
        ("snapshot", "allocation", "by", "entries", *_CLASS_NAMES, "unknown"),
        size_maps,
        lambda m: (
            str(m["snapshot"]),
            _name(names[m["allocation"]]),
            _name(m["algorithm"]),
            f"{m['entries']:,}",
            *(_percent(n, m["entries"]) for n in (*m["entries_by_class"], m["unknown"])),
        ),
    )


def _table(
    console: Console, title: str, headings: Sequence[str], rows: list[Any], cells: Callable[[Any], tuple[str, ...]]
) -> None:
    """A table; of a long list its beginning and end, with the number of rows between."""
    console.print()
    if not rows:
        console.print(f"no {title.partition(',')[0]}")
        return
    console.print(f"{len(rows):,} {title}" if len(rows) > 1 else title)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        text = heading in ("name", "kernel", "label", "contents of", "allocation", "event", "by", "space", "")
        table.add_column(heading, justify="left" if text else "right", no_wrap=True, overflow="ellipsis")
    hidden = len(rows) - _FIRST_ROWS - _LAST_ROWS
    if hidden <= 1:
        for row in rows:
            table.add_row(*cells(row))
    else:
        for row in rows[:_FIRST_ROWS]:
            table.add_row(*cells(row))
        table.add_row("...", f"{hidden:,} more")
        for row in rows[-_LAST_ROWS:]:
            table.add_row(*cells(row))
    console.print(table)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _name(text: str) -> str:
    text = _printable(text)
    return text if len(text) <= _NAME_WIDTH else text[: _NAME_WIDTH - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _percent(n: int, total: int) -> str:
    return f"{100 * n / total:.1f} %" if n else ""


def _size(n: int) -> str:
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
