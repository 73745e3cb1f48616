"""A result on one screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from buddysim.replay.schemes import BASELINE, counter_names
from buddysim.report.notes import notes, ratio_text
from buddysim.report.quantities import bytes_text, rate_text, share_text, time_text

MOST_ALLOCATIONS = 8
_NAME_WIDTH = 40
_LONGEST_LINE = 400

RESOURCES = {
    "dram_channels": "device memory",
    "dram_busiest_channel": "busiest channel",
    "link_read": "link, read",
    "link_write": "link, write",
    "l2_slices": "L2 slices",
    "crossbar_reply": "crossbar, replies",
    "crossbar_request": "crossbar, requests",
    "l1_ports": "L1 ports",
    "issue_slots": "issue slots",
}

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]
Row = tuple[str, Callable[[Flat], str]]

_NOTHING = "-"


def _bytes_of(*keys: str) -> Callable[[Flat], str]:
    return lambda result: bytes_text(sum(result[key] for key in keys)) if any(result[key] for key in keys) else _NOTHING


def _share_of(part: str, whole: str) -> Callable[[Flat], str]:
    return lambda result: share_text(result[part], result[whole])


def _buddy_share(result: Flat) -> str:
    return share_text(result["buddy.access_share"]) if result["footprint.buddy_bytes"] else _NOTHING


def _ratios_over_time(result: Flat) -> str:
    """Where the ratio changes with what is allocated."""
    shown = [f"{result[f'compression.{name}']:.2f}" for name in ("ratio", "largest_ratio", "mean_ratio")]
    return ", ".join(shown[1:]) if len({*shown}) > 1 else _NOTHING


def _l1_hits(result: Flat) -> str:
    return share_text(result["l1.sector_hits"] + result["l1.sector_merged"], result["l1.sector_accesses"])


def _metadata_hits(result: Flat) -> str:
    """Lookups that found their line there, and those that found it on its way."""
    shares = [share_text(result[f"metadata.{how}"], result["metadata.accesses"]) for how in ("hits", "merged")]
    return ", ".join(shares) if result["metadata.accesses"] else _NOTHING


def _compression_ratio(result: Flat) -> str:
    """With its band where drawn sizes move it."""
    ratios = [result["compression.ratio"], *result["sensitivity.compression_ratio"]]
    low, high = (min(ratios), max(ratios)) if len(set(ratios)) > 1 else (None, None)
    return ratio_text(ratios[0], low, high, digits=2)


def _headers(result: Flat) -> str:
    """What the link carried beyond payload."""
    payload = sum(value for key, value in result.items() if key.startswith("link.") and key not in _LINK_TOTALS)
    extra = sum(result[key] for key in _LINK_TOTALS) - payload
    return bytes_text(extra) if extra > 0 else _NOTHING


def _waits(queue: str) -> Callable[[Flat], str]:
    """What half of the requests, and 99 of 100, wait less than."""

    def text(result: Flat) -> str:
        bins = result[f"queueing.{queue}_histogram"] or []
        if not any(bins[1:]):
            return _NOTHING
        below = [
            next(b for b in range(len(bins)) if 100 * sum(bins[: b + 1]) >= percent * sum(bins)) + 1
            for percent in (50, 99)
        ]
        return ", ".join(time_text(2**b) for b in below)

    return text


def _busiest(result: Flat) -> str:
    name, _ = busiest_resource(result)
    return RESOURCES.get(name, name)


_LINK_TOTALS = ("link.read_bytes", "link.write_bytes")

_FIRST: Sequence[Row] = (
    ("simulated time", lambda result: time_text(result["time_ps"])),
    ("cycles", lambda result: f"{result['cycles']:,}"),
)
_RATES: Sequence[Row] = (
    ("effective compression ratio", _compression_ratio),
    ("  largest, and mean over time", _ratios_over_time),
    ("in device memory", _bytes_of("footprint.device_bytes", "footprint.metadata_bytes")),
    ("in buddy memory", _bytes_of("footprint.buddy_bytes")),
    ("in host memory", _bytes_of("footprint.host_bytes")),
    ("buddy-access share", _buddy_share),
    ("L1 sector hits, merged ones too", _l1_hits),
    ("L2 sector hits", _share_of("l2.sector_hits", "l2.sector_accesses")),
    ("metadata hits, merged lookups", _metadata_hits),
    (
        "size changes at write-backs",
        lambda result: f"{result['sizes.switches']:,}" if result["sizes.switches"] else "-",
    ),
)
_TRAFFIC: Sequence[Row] = (
    ("demand", _bytes_of("device.demand_bytes")),
    ("over-fetch", _bytes_of("device.overfetch_bytes")),
    ("read-modify-write", _bytes_of("device.read_modify_write_bytes")),
    ("write-back", _bytes_of("device.writeback_bytes")),
    ("metadata", _bytes_of("device.metadata_bytes")),
)
_LINK: Sequence[Row] = (
    ("demand", _bytes_of("link.demand_bytes")),
    ("over-fetch", _bytes_of("link.overfetch_bytes")),
    ("read-modify-write", _bytes_of("link.read_modify_write_bytes")),
    ("write-back", _bytes_of("link.writeback_bytes")),
)
_QUEUEING: Sequence[Row] = (
    ("L1 ports", _waits("l1_port")),
    ("L1 MSHRs", _waits("l1_mshr")),
    ("L1 stores in flight", _waits("l1_store")),
    ("crossbar, requests", _waits("request_port")),
    ("crossbar, replies", _waits("reply_port")),
    ("L2 slices", _waits("slice_port")),
    ("L2 MSHRs", _waits("l2_mshr")),
    ("(de)compressors", _waits("codec")),
    ("metadata cache", _waits("metadata_port")),
    ("device memory, reads", _waits("dram_read")),
    ("device memory, writes", _waits("dram_write")),
    ("link, read", _waits("link_read")),
    ("link, write", _waits("link_write")),
)
_LAST: Sequence[Row] = (
    ("busiest resource", _busiest),
    ("  share of its limit", lambda result: share_text(busiest_resource(result)[1])),
    ("memory instructions simulated", lambda result: rate_text(result["speed.memory_instructions_per_s"])),
)


def busiest_resource(result: Flat) -> tuple[str, float]:
    """The resource that came nearest to its limit, and the share of it that it reached."""
    prefix = "utilization."
    shares = {key.removeprefix(prefix): float(share) for key, share in result.items() if key.startswith(prefix)}
    name = max(shares, key=lambda name: (shares[name], name))
    return name, shares[name]


def result_table(results: Results, full_result: str) -> RenderableType:
    """One screen: what it cost, what it gained, where the traffic went, what was assumed.

    Parameters
    ----------
    results : what `ReplayResult.to_dict` gives, by scheme name
    full_result : where the whole of it is, for the last line
    """
    first = next(iter(results.values()))
    parts: list[RenderableType] = [_heading(first), _comparison(results)]
    for result in results.values():
        if result["provenance"]["targets"]:
            parts.append(_allocations(result))
            break
    said = notes(results)
    parts += [said] * bool(said.renderables) + [assumptions(results), full_result]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts[:-1]), parts[-1])


def print_result(results: Results, full_result: str, console: Console | None = None) -> None:
    """Prints the screen."""
    console = console or make_console()
    console.print(result_table(results, full_result))


def make_console(piped_width: int = 110) -> Console:
    """Standard output as rich knows it, with a width of its own where it isn't a terminal."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=piped_width)
    return console


def _heading(result: Flat) -> str:
    run = result["provenance"]
    kernels = len(result["per_kernel"])
    return (
        f"{run['trace']} on {run['machine']}: {kernels:,} kernel{'s' if kernels != 1 else ''}, "
        f"{result['warp_instructions']:,} warp instructions, {result['memory_instructions']:,} of them memory "
        f"instructions; {bytes_text(result['footprint.allocated_bytes'] + result['footprint.host_bytes'])} allocated"
    )


def _comparison(results: Results) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("", no_wrap=True)
    for scheme in results:
        table.add_column(scheme, justify="right", overflow="fold")
    _add(table, results, _FIRST)
    baseline = results.get(BASELINE)
    if baseline is not None:
        _add(table, results, [(f"slowdown against {BASELINE}", _slowdown)])
        _add(table, results, _sensitivity(baseline))
    _add(table, results, _RATES)
    _add_section(table, results, "device memory traffic", _TRAFFIC)
    _add_section(table, results, "link traffic", [*_LINK, *_scheme_traffic(), ("packet headers", _headers)])
    _add_section(table, results, "waits: half are below, 99 of 100 are", _QUEUEING)
    _add(table, results, _LAST)
    return table


def _slowdown(result: Flat) -> str:
    if result["slowdown.ratio"] is None:
        return _NOTHING
    if result["provenance"]["scheme"] == BASELINE:
        return ratio_text(result["slowdown.ratio"], None, None)
    return ratio_text(result["slowdown.ratio"], result["slowdown.low"], result["slowdown.high"])


def _sensitivity(baseline: Flat) -> list[Row]:
    """How the slowdown moves with the gaps that a trace had to assume."""

    def moved(key: str) -> Callable[[Flat], str]:
        def text(result: Flat) -> str:
            if result[key] is None or not baseline[key]:
                return _NOTHING
            return f"{result[key] / baseline[key]:.3f}"

        return text

    return [
        ("  if gaps were half of the assumed ones", moved("sensitivity.half_gaps_time_ps")),
        ("  if they were twice as long", moved("sensitivity.double_gaps_time_ps")),
    ]


def _scheme_traffic() -> list[Row]:
    """What schemes move over the link for reasons of their own."""
    keys = [key for key in counter_names() if key.startswith("link.")]
    return [(key.removeprefix("link.").removesuffix("_bytes").replace("_", " "), _bytes_of(key)) for key in keys]


def _add(table: Table, results: Results, rows: Sequence[Row], indent: str = "") -> None:
    for label, text in rows:
        cells = [text(result) for result in results.values()]
        if any(cell != _NOTHING for cell in cells):
            table.add_row(indent + label, *cells)


def _add_section(table: Table, results: Results, title: str, rows: Sequence[Row]) -> None:
    cells = [[text(result) for result in results.values()] for _, text in rows]
    if any(cell != _NOTHING for row in cells for cell in row):
        table.add_row(title)
        _add(table, results, rows, indent="  ")


def _allocations(result: Flat) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("allocation", "bytes", "target", "fills", "write-backs", "buddy-access share"):
        table.add_column(heading, justify="left" if heading == "allocation" else "right", no_wrap=True)
    rows = sorted(result["per_allocation"], key=lambda row: (-row["bytes"], row["index"]))
    for row in rows[:MOST_ALLOCATIONS]:
        moves = row["fills"] + row["writebacks"]
        table.add_row(
            _printable(row["name"]),
            bytes_text(row["bytes"]),
            "host" if row["space"] == "host" else row["target"],
            f"{row['fills']:,}",
            f"{row['writebacks']:,}",
            share_text(row["buddy_accesses"], moves),
        )
    if len(rows) > MOST_ALLOCATIONS:
        table.add_row(f"and {len(rows) - MOST_ALLOCATIONS} more")
    return table


def assumptions(results: Results) -> Group:
    """What was assumed, a line each, cut to the width of the screen; the full result has the whole texts."""
    schemes_of: dict[tuple[str, str], list[str]] = {}
    for scheme, result in results.items():
        for assumption in result["provenance"]["assumptions"].items():
            schemes_of.setdefault(assumption, []).append(scheme)
    lines = []
    for (subject, text), schemes in schemes_of.items():
        only = "" if len(schemes) == len(results) else f" ({', '.join(schemes)})"
        line = f"assumed: {_printable(subject)}{only}: {_printable(text, _LONGEST_LINE)}"
        lines.append(Text(line, no_wrap=True, overflow="ellipsis"))
    return Group(*lines)


def _printable(text: str, most: int = _NAME_WIDTH) -> str:
    """Text from a file, safe for a terminal and not too long."""
    clean = "".join(character if character.isprintable() else "?" for character in text)
    return clean if len(clean) <= most else f"{clean[: most - 2]}.."
