"""A replay on one screen: what it cost, what it gained, where the traffic went, what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from buddysim.replay.schemes import BASELINE, counter_names
from buddysim.report.bottleneck import format_bottleneck, next_limit
from buddysim.report.caveats import assumptions, notes
from buddysim.report.quantities import band_text, change_text, format_bytes, format_percent, format_rate, format_time
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable, make_printable, print_screen

MOST_ALLOCATIONS = 8

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]
Row = tuple[str, Callable[[Flat], str]]


def _bytes_of(*keys: str) -> Callable[[Flat], str]:
    return lambda result: (
        format_bytes(sum(result[key] for key in keys)) if any(result[key] for key in keys) else NOT_APPLICABLE
    )


def _share_of(part: str, whole: str) -> Callable[[Flat], str]:
    return lambda result: format_percent(result[part], result[whole])


def _buddy_share(result: Flat) -> str:
    if not result["footprint.buddy_bytes"]:
        return NOT_APPLICABLE
    return format_percent(result["buddy.access_fraction"]) + _of_one_seed(result)


def _in_buddy_memory(result: Flat) -> str:
    taken = result["footprint.buddy_bytes"]
    return format_bytes(taken) + _of_one_seed(result) if taken else NOT_APPLICABLE


def _of_one_seed(result: Flat) -> str:
    """What is said beside a number that another seed of drawn sizes would change."""
    if result["compression.synthetic_min_ratio"] is None:
        return ""
    return f", drawn by seed {result['provenance']['seed']}"


def _ratios_over_time(result: Flat) -> str:
    """Where the ratio changes with what is allocated."""
    shown = [f"{result[f'compression.{name}']:.2f}" for name in ("ratio", "max_ratio", "mean_ratio")]
    return ", ".join(shown[1:]) if len({*shown}) > 1 else NOT_APPLICABLE


def _l1_hits(result: Flat) -> str:
    return format_percent(result["l1.sector_hits"] + result["l1.sector_mshr_merges"], result["l1.sector_accesses"])


def _metadata_hits(result: Flat) -> str:
    """Lookups that found their line there, and those that found it on its way."""
    shares = [format_percent(result[f"metadata.{how}"], result["metadata.accesses"]) for how in ("hits", "mshr_merges")]
    return ", ".join(shares) if result["metadata.accesses"] else NOT_APPLICABLE


def _compression_ratio(result: Flat) -> str:
    """Of sizes that were drawn only how far it spreads: the seed decides it."""
    low, high = result["compression.synthetic_min_ratio"], result["compression.synthetic_max_ratio"]
    return f"{result['compression.ratio']:.2f}" if low is None else f"{low:.2f} to {high:.2f}, drawn"


def _ratio_band(result: Flat) -> str:
    """Where what the further runs changed moves the ratio."""
    ratios = [result["compression.ratio"], *result["sensitivity.compression_ratio"]]
    if result["compression.synthetic_min_ratio"] is not None or len(set(ratios)) == 1:
        return NOT_APPLICABLE
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _in_device_memory(result: Flat) -> str:
    """Data and metadata; of Unified Memory what is resident; of drawn sizes how far it spreads, as the ratio does."""
    metadata = result["footprint.metadata_bytes"]
    whole = result["footprint.device_bytes"] + metadata
    ratios = [result["compression.synthetic_max_ratio"], result["compression.synthetic_min_ratio"]]
    if whole and ratios[0] is not None:
        low, high = (format_bytes(round(result["footprint.allocated_bytes"] / ratio) + metadata) for ratio in ratios)
        return f"{low} to {high}, drawn"
    return format_bytes(min(whole, result["um.resident_bytes"] or whole)) if whole else NOT_APPLICABLE


def _count_of(key: str) -> Callable[[Flat], str]:
    return lambda result: f"{result[key]:,}" if result[key] else NOT_APPLICABLE


def _headers(result: Flat) -> str:
    """What the link carried beyond payload."""
    payload = sum(value for key, value in result.items() if key.startswith("link.") and key not in _LINK_TOTALS)
    extra = sum(result[key] for key in _LINK_TOTALS) - payload
    return format_bytes(extra) if extra > 0 else NOT_APPLICABLE


def _waits(queue: str) -> Callable[[Flat], str]:
    """What half of the requests, and 99 of 100, wait less than."""

    def text(result: Flat) -> str:
        bins = result[f"queueing.{queue}_histogram"] or []
        if not any(bins[1:]):
            return NOT_APPLICABLE
        below = [
            next(b for b in range(len(bins)) if 100 * sum(bins[: b + 1]) >= percent * sum(bins)) + 1
            for percent in (50, 99)
        ]
        return ", ".join(format_time(2**b) for b in below)

    return text


_LINK_TOTALS = ("link.read_bytes", "link.write_bytes")

_FIRST: Sequence[Row] = (
    ("simulated time", lambda result: format_time(result["time_ps"])),
    ("cycles", lambda result: f"{result['cycles']:,}"),
)
_RATES: Sequence[Row] = (
    ("compression ratio", _compression_ratio),
    ("  largest, and mean over time", _ratios_over_time),
    ("  band", _ratio_band),
    ("in device memory", _in_device_memory),
    ("in buddy memory", _in_buddy_memory),
    ("in host memory", _bytes_of("footprint.host_bytes")),
    ("buddy-access share", _buddy_share),
    ("L1 sector hits, merged ones too", _l1_hits),
    ("L2 sector hits", _share_of("l2.sector_hits", "l2.sector_accesses")),
    ("metadata hits, merged lookups", _metadata_hits),
    ("size changes at write-backs", _count_of("sizes.class_changes")),
    ("page faults", _count_of("um.page_faults")),
    ("  pages prefetched with them", _count_of("um.pages_prefetched")),
    ("  pages evicted", _count_of("um.pages_evicted")),
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
    ("(de)compressors", _waits("compressor")),
    ("metadata cache", _waits("metadata_port")),
    ("device memory, reads", _waits("dram_read")),
    ("device memory, writes", _waits("dram_write")),
    ("link, read", _waits("link_read")),
    ("link, write", _waits("link_write")),
)
_LAST: Sequence[Row] = (
    ("bound by", lambda result: format_bottleneck(result)[0]),
    ("  share of its limit", lambda result: format_bottleneck(result)[1]),
    ("next limit", lambda result: next_limit(result)[0]),
    ("  share of it", lambda result: next_limit(result)[1]),
    ("simulated memory instructions", lambda result: format_rate(result["speed.memory_instructions_per_s"])),
)


def result_parts(results: Results, full_result: str = "", changed: Mapping[str, object] | None = None) -> list[Part]:
    """The screen.

    Parameters
    ----------
    results : what `ReplayResult.to_dict` gives, by scheme name
    full_result : where the whole of it is, for the last line
    changed : figures of the machine that are not those of its name
    """
    first = next(iter(results.values()))
    parts: list[Part] = [_heading(first, changed or {}), "", _comparison(results)]
    for result in results.values():
        if result["provenance"]["targets"]:
            parts += ["", _allocations(result), *_more_allocations(result)]
            break
    parts += ["", *notes(results)]
    parts += ["", *(make_printable(line) for line in assumptions(results))]
    return [*parts, "", full_result] if full_result else parts


def print_result(results: Results, full_result: str, changed: Mapping[str, object]) -> None:
    """Prints the screen."""
    print_screen(result_parts(results, full_result, changed))


def _heading(result: Flat, changed: Mapping[str, object]) -> str:
    run = result["provenance"]
    settings = ", ".join(f"{key} = {value}" for key, value in changed.items())
    machine = f"{run['machine']} with {make_printable(settings)}" if settings else run["machine"]
    kernels = len(result["per_kernel"])
    return (
        f"{run['trace']} on {machine}: {kernels:,} kernel{'s' if kernels != 1 else ''}, "
        f"{result['warp_instructions']:,} warp instructions, {result['memory_instructions']:,} of them memory "
        f"instructions; {format_bytes(result['footprint.allocated_bytes'] + result['footprint.host_bytes'])} allocated"
    )


def _comparison(results: Results) -> ScreenTable:
    rows: list[Sequence[str]] = []
    _add(rows, results, _FIRST)
    baseline = results.get(BASELINE)
    if baseline is not None:
        _add(rows, results, [(f"against {BASELINE}", _change), ("  band", _band), *_sensitivity(baseline)])
    _add(rows, results, [*_LAST[:4]])
    _add(rows, results, _RATES)
    _add_section(rows, results, "device memory traffic", _TRAFFIC)
    _add_section(rows, results, "link traffic", [*_LINK, *_scheme_traffic(), ("packet headers", _headers)])
    _add_section(rows, results, "waits: half are below, 99 of 100 are", _QUEUEING)
    _add(rows, results, _LAST[4:])
    return ScreenTable([Column("", left=True), *map(Column, results)], rows)


def _change(result: Flat) -> str:
    if result["slowdown.ratio"] is None:
        return NOT_APPLICABLE
    return "baseline" if result["provenance"]["scheme"] == BASELINE else change_text(result["slowdown.ratio"])


def _band(result: Flat) -> str:
    if result["slowdown.min"] is None or result["provenance"]["scheme"] == BASELINE:
        return NOT_APPLICABLE
    return band_text(result["slowdown.ratio"], result["slowdown.min"], result["slowdown.max"])


def _sensitivity(baseline: Flat) -> list[Row]:
    """How the time against the baseline moves with the gaps that a trace had to assume."""

    def moved(key: str) -> Callable[[Flat], str]:
        def text(result: Flat) -> str:
            if result[key] is None or not baseline[key]:
                return NOT_APPLICABLE
            return change_text(result[key] / baseline[key])

        return text

    return [
        ("  if gaps were half of the assumed ones", moved("sensitivity.half_compute_gaps_time_ps")),
        ("  if they were twice as long", moved("sensitivity.double_compute_gaps_time_ps")),
    ]


def _scheme_traffic() -> list[Row]:
    """What schemes move over the link for reasons of their own."""
    keys = [key for key in counter_names() if key.startswith("link.")]
    return [(key.removeprefix("link.").removesuffix("_bytes").replace("_", " "), _bytes_of(key)) for key in keys]


def _add(table: list[Sequence[str]], results: Results, rows: Sequence[Row], indent: str = "") -> None:
    for label, text in rows:
        cells = [text(result) for result in results.values()]
        if any(cell != NOT_APPLICABLE for cell in cells):
            table.append([indent + label, *cells])


def _add_section(table: list[Sequence[str]], results: Results, title: str, rows: Sequence[Row]) -> None:
    section: list[Sequence[str]] = []
    _add(section, results, rows, indent="  ")
    if section:
        table += [[title], *section]


def _allocations(result: Flat) -> ScreenTable:
    """The largest allocations; of drawn sizes the targets are of this seed alone."""
    drawn = " (drawn)" if result["compression.synthetic_min_ratio"] is not None else ""
    headings = ("bytes", f"target{drawn}", "fills", "write-backs", f"buddy-access\nshare{drawn}")
    rows = [
        (
            make_printable(row["name"]),
            format_bytes(row["bytes"]),
            "host" if row["space"] == "host" else row["target"],
            f"{row['fills']:,}",
            f"{row['writebacks']:,}",
            format_percent(row["buddy_accesses"], row["fills"] + row["writebacks"]),
        )
        for row in _by_size(result)[:MOST_ALLOCATIONS]
    ]
    return ScreenTable([Column("allocation", left=True), *map(Column, headings)], rows)


def _more_allocations(result: Flat) -> list[str]:
    left = len(_by_size(result)) - MOST_ALLOCATIONS
    return [f"and {left} smaller ones: --json has all"] if left > 0 else []


def _by_size(result: Flat) -> list[dict[str, Any]]:
    return sorted(result["per_allocation"], key=lambda row: (-row["bytes"], row["index"]))
