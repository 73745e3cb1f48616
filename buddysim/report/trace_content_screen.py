"""The screen of ``info``: allocations, kernels, events, snapshots and size maps of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from buddysim.base.counted import counted
from buddysim.compress import STUDY_CLASSES
from buddysim.report.quantities import format_bytes, format_percent, format_percent_number, format_scaled
from buddysim.report.screen import Column, Part, ScreenTable, description_table, make_printable

_FIRST_ROWS, _LAST_ROWS = 12, 4  # of a long list; the JSON has all of it
_CLASS_NAMES = tuple(f"{size} B" for size in STUDY_CLASSES)
_CLASSES = "% of entries by size class"

#: The assumption of captures without a GPU that is shown above the tables.
NOT_A_GPU = "not_a_gpu"

Row = dict[str, Any]


def content_parts(content: Row, with_assumptions: bool) -> Iterator[Part]:
    """Return the parts of the screen of a trace, from its description (`buddysim.trace.describe`)."""
    totals = content["totals"]
    yield (
        f"{content['path']}: {format_bytes(content['bytes'])}, format {content['format_version']}, "
        f"fingerprint {content['fingerprint'][:16]}"
    )
    if content["interrupted"]:
        yield "PARTIAL TRACE: the file was not finished; its complete sections follow"
    yield (
        f"{counted(len(content['kernels']), 'kernel')}, {format_scaled(totals['warp_instructions'])} warp instructions "
        f"({format_scaled(totals['memory_instructions'])} memory), {format_scaled(totals['line_accesses'])} lines "
        f"accessed, {format_bytes(totals['allocated_bytes'])} allocated"
    )
    yield (
        f"{counted(totals['blocks'], 'thread block')} in {counted(totals['chunks'], 'chunk')} of "
        f"{format_bytes(totals['chunk_bytes'])} in all"
    )
    yield ""
    yield _provenance(content["provenance"])
    assumptions = content["provenance"]["assumptions"]
    if NOT_A_GPU in assumptions:
        yield make_printable(f"not a GPU's: {assumptions[NOT_A_GPU]}")
    if assumptions and not with_assumptions:
        yield f"{len(assumptions)} assumptions: --assumptions, or provenance.assumptions in --json"
    names = [allocation["name"] for allocation in content["allocations"]]
    yield from _allocations(content["allocations"])
    yield from _kernels(content["kernels"])
    yield from _events(content)
    yield from _snapshots(content["snapshots"], names)
    yield from _size_maps(content["size_maps"], names)
    if with_assumptions:
        yield from ("", "assumptions")
        for number, (subject, text) in enumerate(assumptions.items(), 1):
            yield make_printable(f"{number}. {subject}: {text}")


def _provenance(provenance: Row) -> ScreenTable:
    tool = " ".join(text for text in (provenance["tool"], provenance["version"]) if text)
    rows = [("made by", tool), *((key, provenance[key]) for key in ("source", "licence", "command"))]
    return description_table((), [(make_printable(key), make_printable(text)) for key, text in rows if text])


def _number() -> Column:
    """The column of the rows' numbers, as the JSON has them."""
    return Column("")


def _name(heading: str) -> Column:
    return Column(heading, left=True, wrap_to=24)


def _allocations(allocations: list[Row]) -> Iterator[Part]:
    columns = [
        _number(),
        _name("name"),
        Column("base"),
        Column("bytes"),
        Column("entries", priority=1),
        Column("space", left=True),
        Column("events"),
    ]
    return _listed(
        "allocations",
        columns,
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
    )


def _kernels(kernels: list[Row]) -> Iterator[Part]:
    columns = [
        _number(),
        _name("kernel"),
        Column("launch"),
        Column("grid"),
        Column("block"),
        Column("warp\ninstructions"),
        Column("memory\ninstructions"),
        Column("lines", priority=1),
        Column("registers", priority=2),
        Column("shared\nmemory, B", priority=3),
        Column("blocks", priority=4),
        Column("chunks", priority=6),
        Column("stream", priority=5),
    ]
    return _listed(
        "kernels",
        columns,
        kernels,
        lambda k: (
            str(k["index"]),
            make_printable(k["name"]) + ("" if k["complete"] else " (incomplete)"),
            str(k["launch_index"]),
            "x".join(map(str, k["grid"])),
            "x".join(map(str, k["block"])),
            f"{k['warp_instructions']:,}",
            f"{k['memory_instructions']:,}",
            f"{k['line_accesses']:,}",
            str(k["registers"] or ""),
            str(k["shared_memory_bytes"] or ""),
            f"{k['n_blocks']:,}",
            f"{k['n_chunks']:,}",
            str(k["stream"]),
        ),
    )


def _events(content: Row) -> Iterator[Part]:
    kernels = content["kernels"]

    def row(numbered: tuple[int, Row]) -> tuple[str, ...]:
        number, event = numbered
        if event["event"] == "kernel":
            return str(number), "kernel", "", "", make_printable(kernels[event["kernel"]]["name"])
        if event["event"] == "memset":
            details = "" if event["value"] is None else f"with {event['value']:#04x}"
        else:
            source = "" if event["source"] is None else f" from {event['source']:#x}"
            details = event["direction"] + source
        return str(number), event["event"], f"{event['address']:#x}", f"{event['bytes']:,}", details

    columns = [_number(), Column("event", left=True), Column("address"), Column("bytes"), _name("details")]
    return _listed("events", columns, list(enumerate(content["events"])), row)


def _snapshots(snapshots: list[Row], names: list[str]) -> Iterator[Part]:
    rows = [(snapshot, contents) for snapshot in snapshots for contents in snapshot["contents"] or [None]]

    def row(pair: tuple[Row, Row | None]) -> tuple[str, ...]:
        snapshot, contents = pair
        event = (str(snapshot["launch_index"]), make_printable(snapshot["label"]))
        if contents is None:
            return (str(snapshot["index"]), "none", "", "", *event)
        sampled = "100 %" if contents["whole"] else format_percent(contents["sampled_fraction"])
        name = make_printable(names[contents["allocation"]])
        pages = f"{contents['pages']:,} x {format_bytes(contents['page_bytes'])}"
        return (str(snapshot["index"]), name, sampled, pages, *event)

    columns = [
        Column("snapshot"),
        _name("data values of"),
        Column("sampled"),
        Column("pages"),
        Column("launches\nbefore"),
        Column("label", left=True, priority=1),
    ]
    several = f"allocations' data values in {len(snapshots):,} snapshots"
    return _listed(several if len(rows) > 1 else "snapshots", columns, rows, row)


def _size_maps(size_maps: list[Row], names: list[str]) -> Iterator[Part]:
    columns = [
        Column("snapshot"),
        _name("allocation"),
        Column("by", left=True, priority=2),
        Column("entries", priority=1),
        *(Column(name, group=_CLASSES) for name in _CLASS_NAMES),
        Column("unknown", group=_CLASSES),
    ]
    return _listed(
        "size maps",
        columns,
        size_maps,
        lambda m: (
            str(m["snapshot"]),
            make_printable(names[m["allocation"]]),
            make_printable(m["compressor"]),
            f"{m['entries']:,}",
            *(format_percent_number(n, m["entries"]) if n else "" for n in (*m["entries_by_class"], m["unknown"])),
        ),
    )


def _listed(
    title: str, columns: Sequence[Column], rows: list[Any], cells: Callable[[Any], tuple[str, ...]]
) -> Iterator[Part]:
    """A table; of a long list its beginning and end, and the number of rows between."""
    yield ""
    if not rows:
        yield f"no {title}"
        return
    hidden = len(rows) - _FIRST_ROWS - _LAST_ROWS
    if hidden <= 1:
        yield f"{len(rows):,} {title}" if len(rows) > 1 else title
        yield ScreenTable(columns, [cells(row) for row in rows], names=2)
    else:
        yield f"{len(rows):,} {title}: the first {_FIRST_ROWS} and the last {_LAST_ROWS} (--json has all)"
        yield ScreenTable(columns, [cells(row) for row in (*rows[:_FIRST_ROWS], *rows[-_LAST_ROWS:])], names=2)
