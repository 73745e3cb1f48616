"""``python -m buddysim info``: what a trace file holds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from buddysim.base.output import check_outputs
from buddysim.cli.json_output import add_json_argument, is_on_stdout, json_file, write_plain_json
from buddysim.compress import STUDY_CLASSES
from buddysim.report.quantities import format_bytes, format_percent
from buddysim.report.screen import Column, Part, ScreenTable, description_table, make_printable, print_screen
from buddysim.trace import open_trace
from buddysim.trace.describe import describe

NAME = "info"
HELP = "show what a trace file holds"

_FIRST_ROWS, _LAST_ROWS = 12, 4  # of a long list; all of it is in the JSON
_CLASS_NAMES = tuple(f"{size} B" for size in STUDY_CLASSES)
_TEXTS = ("", "name", "kernel", "label", "contents of", "allocation", "event", "by", "space", "what")

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    completes(parser.add_argument("file", metavar="FILE", help="the trace file"), "file")
    add_json_argument(parser, "all of it, every list complete,")


def run(args: argparse.Namespace) -> int:
    check_outputs([json_file(args)], [args.file])
    with open_trace(args.file) as trace:
        content = describe(trace)
    write_plain_json(args, content)
    if not is_on_stdout(args):
        print_screen(_parts(content))
    return 0


def _parts(content: Row) -> Iterator[Part]:
    totals = content["totals"]
    yield (
        f"{content['path']}: {format_bytes(content['bytes'])}, format {content['format_version']}, "
        f"fingerprint {content['fingerprint'][:16]}"
    )
    if content["interrupted"]:
        yield "INTERRUPTED: the file was not finished; this is what its complete sections hold"
    yield (
        f"{len(content['kernels'])} kernels, {totals['blocks']:,} blocks in {totals['chunks']:,} chunks "
        f"({format_bytes(totals['chunk_bytes'])}), {totals['warp_instructions']:,} warp instructions, "
        f"{totals['memory_instructions']:,} of them memory instructions with {totals['line_accesses']:,} lines; "
        f"allocations of {format_bytes(totals['allocated_bytes'])}"
    )
    yield ""
    yield _provenance(content["provenance"])
    names = [allocation["name"] for allocation in content["allocations"]]
    yield from _allocations(content["allocations"])
    yield from _kernels(content["kernels"])
    yield from _events(content)
    yield from _snapshots(content["snapshots"], names)
    yield from _size_maps(content["size_maps"], names)


def _provenance(provenance: Row) -> ScreenTable:
    tool = " ".join(text for text in (provenance["tool"], provenance["version"]) if text)
    rows = [("made by", tool), *((key, provenance[key]) for key in ("source", "licence", "command"))]
    rows += [(f"assumed: {subject}", text) for subject, text in provenance["assumptions"].items()]
    return description_table((), [(make_printable(key), make_printable(text)) for key, text in rows if text])


def _allocations(allocations: list[Row]) -> Iterator[Part]:
    return _listed(
        "allocations",
        ("", "name", "base", "bytes", "entries", "space", "events"),
        allocations,
        lambda a: (
            str(a["index"]),
            make_printable(a["name"]),
            f"{a['base']:#x}",
            f"{a['bytes']:,}",
            f"{a['entries']:,}",
            a["space"],
            f"{a['alloc_event']}-{'' if a['free_event'] is None else a['free_event']}",
        ),
        names=2,
    )


def _kernels(kernels: list[Row]) -> Iterator[Part]:
    return _listed(
        "kernels",
        (
            *(
                "",
                "kernel",
                "launch",
                "grid",
                "block,\nthreads",
                "registers\nper thread",
                "shared\nmemory, B",
                "stream",
            ),
            *("blocks", "chunks", "warp\ninstructions", "memory\ninstructions", "lines"),
        ),
        kernels,
        lambda k: (
            str(k["index"]),
            make_printable(k["name"]) + ("" if k["complete"] else " (incomplete)"),
            str(k["launch_index"]),
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
        names=2,
    )


def _events(content: Row) -> Iterator[Part]:
    kernels = content["kernels"]

    def row(numbered: tuple[int, Row]) -> tuple[str, ...]:
        number, event = numbered
        if event["event"] == "kernel":
            return str(number), "kernel", "", "", make_printable(kernels[event["kernel"]]["name"])
        if event["event"] == "memset":
            what = "" if event["value"] is None else f"with {event['value']:#04x}"
        else:
            source = "" if event["source"] is None else f" from {event['source']:#x}"
            what = event["direction"] + source
        return str(number), event["event"], f"{event['address']:#x}", f"{event['bytes']:,}", what

    events = list(enumerate(content["events"]))
    return _listed("events", ("", "event", "address", "bytes", "what"), events, row, names=2)


def _snapshots(snapshots: list[Row], names: list[str]) -> Iterator[Part]:
    rows = [(snapshot, contents) for snapshot in snapshots for contents in snapshot["contents"] or [None]]

    def row(pair: tuple[Row, Row | None]) -> tuple[str, ...]:
        snapshot, contents = pair
        when = (str(snapshot["launch_index"]), make_printable(snapshot["label"]))
        if contents is None:
            return (str(snapshot["index"]), "none", "", "", *when)
        share = "whole" if contents["whole"] else format_percent(contents["sampled_fraction"])
        name = make_printable(names[contents["allocation"]])
        pages = f"{contents['pages']:,} of {format_bytes(contents['page_bytes'])}"
        return (str(snapshot["index"]), name, share, pages, *when)

    headings = ("", "contents of", "sampled", "pages of bytes", "after\nlaunches", "label")
    what = f"allocations' contents in {len(snapshots):,} snapshots" if len(rows) > 1 else "snapshots"
    return _listed(what, headings, rows, row, names=2)


def _size_maps(size_maps: list[Row], names: list[str]) -> Iterator[Part]:
    return _listed(
        "size maps, share of entries by size class",
        ("snapshot", "allocation", "by", "entries", *_CLASS_NAMES, "unknown"),
        size_maps,
        lambda m: (
            str(m["snapshot"]),
            make_printable(names[m["allocation"]]),
            make_printable(m["compressor"]),
            f"{m['entries']:,}",
            *(format_percent(n, m["entries"]) if n else "" for n in (*m["entries_by_class"], m["unknown"])),
        ),
        names=2,
    )


def _listed(
    title: str, headings: Sequence[str], rows: list[Any], cells: Callable[[Any], tuple[str, ...]], names: int = 1
) -> Iterator[Part]:
    """A table; of a long list its beginning and end, and how many rows are between."""
    yield ""
    if not rows:
        yield f"no {title.partition(',')[0]}"
        return
    columns = [Column(heading, left=heading in _TEXTS) for heading in headings]
    hidden = len(rows) - _FIRST_ROWS - _LAST_ROWS
    if hidden <= 1:
        yield f"{len(rows):,} {title}" if len(rows) > 1 else title
        yield ScreenTable(columns, [cells(row) for row in rows], names)
    else:
        yield f"{len(rows):,} {title}: the first {_FIRST_ROWS} and the last {_LAST_ROWS} (--json has all)"
        yield ScreenTable(columns, [cells(row) for row in (*rows[:_FIRST_ROWS], *rows[-_LAST_ROWS:])], names)
