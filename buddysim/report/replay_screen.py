"""The screen of `run`: what ran, the answer, why, where the traffic went, details, caveats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buddysim.base.counted import counted
from buddysim.base.errors import BuddysimError
from buddysim.replay.component.shown import ShownRow
from buddysim.replay.result import has_derived_accesses
from buddysim.replay.schemes import BASELINE, counter_zeros, shown_rows
from buddysim.replay.sensitivity import NO_DIFFERENCE, tells_no_difference
from buddysim.report.bottleneck import format_bottleneck, format_next_resource
from buddysim.report.caveats import assumption_parts
from buddysim.report.quantities import (
    byte_unit,
    format_bytes,
    format_count,
    format_in_bytes,
    format_percent,
    format_percent_number,
    format_rate,
    format_scaled,
    format_significant,
    format_speedup,
    format_speedup_range,
    format_time,
    format_time_range,
    format_whole_percent,
)
from buddysim.report.replay_caveats import (
    caveat_parts,
    derived_accesses,
    partial_trace,
    synthetic_sizes,
)  # fmt: skip
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable, make_printable, print_screen

if TYPE_CHECKING:
    from buddysim.machine import Machine

MAX_ALLOCATIONS = 8

#: With so many schemes the column of notes goes; with so many schemes are rows.
_WITHOUT_NOTES_FROM = 3
_SCHEMES_AS_ROWS_FROM = 5
#: Above this utilization the link has a section of its own.
_BUSY_LINK = 0.3
_LABEL_WIDTH = 29
#: In place of a speedup whose sensitivity range contains 1, in lines as short as a column.
_NO_DIFFERENCE_CELL = NO_DIFFERENCE.replace(" that this ", "\nthat this\n")
_MAX_HEADING = 12

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]
Cell = Callable[[Flat], str]


@dataclass(frozen=True)
class ScreenRow:
    """A row of the table: its label, the cell of each scheme, and what the column of notes says about it."""

    label: str
    cell: Cell
    note: str = ""


def result_parts(
    results: Results,
    saved: str = "",
    changed: Mapping[str, object] | None = None,
    machine: Machine | None = None,
    with_assumptions: bool = False,
    seconds: float | None = None,
) -> list[Part]:
    """Return the screen of the results of some schemes.

    Parameters
    ----------
    results : what `ReplayResult.to_dict` gives, by scheme name
    saved : where the full result is; "" without
    changed : settings of the machine that are not those of its name
    machine : the machine, for its main figures; None: the preset of that name, if there is one
    with_assumptions : whether every assumption is listed
    seconds : of all replays, wall-clock time; None: not measured
    """
    parts: list[Part] = [*_heading(results, changed or {}, machine), ""]
    parts += _schemes_as_rows(results) if len(results) >= _SCHEMES_AS_ROWS_FROM else [_comparison(results)]
    if len(results) < _SCHEMES_AS_ROWS_FROM:
        parts += _allocations(results)
    parts += caveat_parts(results)
    if with_assumptions:
        parts += assumption_parts(results)
    last = "; ".join(filter(None, (_simulator_speed(results, seconds), saved)))
    return [*parts, "", last] if last else parts


def print_result(
    results: Results,
    saved: str,
    changed: Mapping[str, object] | None = None,
    machine: Machine | None = None,
    with_assumptions: bool = False,
    seconds: float | None = None,
) -> None:
    """Print the screen of `result_parts`."""
    print_screen(result_parts(results, saved, changed, machine, with_assumptions, seconds))


def _heading(results: Results, changed: Mapping[str, object], machine: Machine | None) -> Iterator[str]:
    """The trace, the machine with its main figures, the work; what makes the sizes or the trace special."""
    first = next(iter(results.values()))
    run = first["provenance"]
    machine = machine or _preset(run)
    figures = f"  ({_main_figures(machine)})" if machine else ""
    yield make_printable(f"{run['trace']} on {run['machine']}{figures}")
    if changed:
        yield make_printable(f"changed: {', '.join(f'{key} = {value}' for key, value in changed.items())}")
    kernels = len(run["kernels"])
    yield (
        f"{counted(kernels, 'kernel')}, {format_scaled(first['warp_instructions'])} warp instructions "
        f"({format_scaled(first['memory_instructions'])} memory), "
        f"{format_bytes(first['footprint.allocated_bytes'])} allocated"
    )
    yield from partial_trace(results)
    yield from synthetic_sizes(results)
    yield from derived_accesses(results)


def _preset(run: Flat) -> Machine | None:
    """The preset on which a saved result was simulated; None if the machine was another or was changed."""
    from buddysim.machine import Machine

    try:
        machine = Machine.load(run["machine"])
    except BuddysimError:
        return None
    return machine if machine.checksum == run["machine_checksum"] else None


def _main_figures(machine: Machine) -> str:
    from buddysim.machine.units import format_size

    dram = f"DRAM {machine.dram_bytes_per_s / 1e9:,.0f} GB/s"
    return f"{machine.sm.count} SMs, L2 {format_size(machine.l2.size)}, {dram}, link {machine.link.bandwidth}"


def _comparison(results: Results) -> ScreenTable:
    """A column for each scheme, and with few schemes a column of notes."""
    has_notes = len(results) < _WITHOUT_NOTES_FROM
    rows: list[Sequence[str]] = []
    for title, section in _sections(results):
        filled = [(row, [row.cell(result) for result in results.values()]) for row in section]
        shown = [(row, cells) for row, cells in filled if any(cell not in ("", NOT_APPLICABLE) for cell in cells)]
        if not shown:
            continue
        if title:
            rows += [*([()] if rows else []), (title,)]
        indent = "  " * bool(title)
        rows += [(indent + row.label, *cells, *([row.note] if has_notes else [])) for row, cells in shown]
    label = Column("", left=True, min_width=_LABEL_WIDTH if has_notes else 0, wrap_to=18)
    columns = [label, *(Column(_heading_of(name), min_width=12) for name in results)]
    return ScreenTable([*columns, *([Column("", left=True, wrap_to=12)] if has_notes else [])], rows)


def _heading_of(scheme: str) -> str:
    return scheme.replace("-", "-\n", 1) if len(scheme) > _MAX_HEADING else scheme


def _sections(results: Results) -> Iterator[tuple[str, Sequence[ScreenRow]]]:
    """The sections of the table, each with its title; the first has none."""
    timed = not has_derived_accesses(next(iter(results.values())))
    if timed:
        yield "", [*_answer(results), *_limits()]
    yield "memory footprint", _memory_rows(results)
    for title in dict.fromkeys(row.label for row in shown_rows() if row.kind == "title"):
        yield title, list(_rows_of_schemes(results, title))
    yield f"DRAM traffic{_of_one_seed(results)}", list(_dram_rows(results))
    if _is_link_busy(results):
        yield f"link traffic{_of_one_seed(results)}", list(_link_rows(results))
    else:
        unit = _unit(results, ("link.read_bytes", "link.write_bytes"))
        yield "", [ScreenRow("link traffic, read + write", _read_and_write(*unit))]
    yield "hit rates (MSHR merges apart)", _hit_rate_rows(results)
    if timed:
        yield "waiting time (half of the requests, 99 %)", _wait_rows(results)


def _answer(results: Results) -> Iterator[ScreenRow]:
    baseline = results.get(BASELINE)
    if baseline is not None and len(results) > 1:
        settings = (next(iter(results.values()))["provenance"]["baseline"] or {}).get("settings")
        yield ScreenRow(f"speedup over {BASELINE}", _speedup, f"{BASELINE}: {'changed' if settings else 'unlimited'}")
        yield ScreenRow("  sensitivity range", _sensitivity_range, _perturbations(results))
        yield ScreenRow("  compute gaps x 0.5, x 2", _compute_gap_speedups(baseline), "they are estimated")
    yield ScreenRow("simulated time", _time)
    yield ScreenRow("core cycles", _cycles)


def _limits() -> list[ScreenRow]:
    return [ScreenRow("bottleneck", format_bottleneck), ScreenRow("  next", format_next_resource)]


def _is_synthetic(result: Flat) -> bool:
    return bool(result["compression.synthetic_min_ratio"] is not None)


def _is_baseline(result: Flat) -> bool:
    return bool(result["provenance"]["scheme"] == BASELINE)


def _speedup(result: Flat) -> str:
    """The speedup over the baseline; with synthetic sizes the range over their seeds."""
    if result["slowdown.ratio"] is None:
        return NOT_APPLICABLE
    if _is_baseline(result):
        return "baseline"
    if tells_no_difference(result):
        return _NO_DIFFERENCE_CELL
    if _is_synthetic(result):
        return _slowdown_range(result) or f"{format_speedup(_inverse(result['slowdown.ratio']))} (1 seed)"
    return format_speedup(_inverse(result["slowdown.ratio"]))


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio else 0.0


def _slowdown_range(result: Flat) -> str:
    low, high = result["slowdown.min"], result["slowdown.max"]
    return "" if low is None else format_speedup_range(_inverse(high), _inverse(low))


def _sensitivity_range(result: Flat) -> str:
    """The range of the speedup over the perturbed runs; synthetic sizes mostly have it in the row above."""
    if _is_baseline(result) or (_is_synthetic(result) and not tells_no_difference(result)):
        return NOT_APPLICABLE
    return _slowdown_range(result) or NOT_APPLICABLE


def _perturbations(results: Results) -> str:
    kinds = next(iter(results.values()))["provenance"]["sensitivity"]["kinds"]
    changed = [kind for kind in ("latency", "compute-gaps") if kind in kinds]
    return f"{changed[0].replace('-', ' ')} +-2.5 %" if changed else ""


def _compute_gap_speedups(baseline: Flat) -> Cell:
    """The speedups with compute gaps halved and doubled, for traces that had to estimate them."""
    keys = ("sensitivity.half_compute_gaps_time_ps", "sensitivity.double_compute_gaps_time_ps")

    def text(result: Flat) -> str:
        if _is_baseline(result) or any(not result[key] or not baseline[key] for key in keys):
            return NOT_APPLICABLE
        return ", ".join(format_speedup(baseline[key] / result[key]) for key in keys)

    return text


def _over_seeds(result: Flat, key: str) -> tuple[float, float] | None:
    """The lowest and highest value of a time over the seeds of synthetic sizes."""
    times = result["sensitivity.time_ps"]
    if not _is_synthetic(result) or not times:
        return None
    factor = result[key] / result["time_ps"] if result["time_ps"] else 0
    return min(result["time_ps"], *times) * factor, max(result["time_ps"], *times) * factor


def _one_seed(result: Flat) -> str:
    return " (1 seed)" if _is_synthetic(result) else ""


def _time(result: Flat) -> str:
    ends = _over_seeds(result, "time_ps")
    return format_time_range(*ends) if ends else f"{format_time(result['time_ps'])}{_one_seed(result)}"


def _cycles(result: Flat) -> str:
    ends = _over_seeds(result, "cycles")
    if ends:
        return " - ".join(format_significant(end) if end < 1000 else format_count(end) for end in ends)
    return f"{format_count(result['cycles'])}{_one_seed(result)}"


def _memory_rows(results: Results) -> list[ScreenRow]:
    one_seed = "one seed" if any(map(_is_synthetic, results.values())) else ""
    return [
        ScreenRow("compression ratio", _compression_ratio, "without metadata"),
        ScreenRow("  peak, mean over time", _ratios_over_time),
        ScreenRow("  sensitivity range", _ratio_range),
        ScreenRow("device memory", _device_memory, "with metadata"),
        *_rows_of_schemes(results, "memory footprint", note=one_seed),
        ScreenRow("host memory", _bytes_of("footprint.host_bytes")),
    ]


def _rows_of_schemes(
    results: Results, section: str, unit: tuple[int, str] | None = None, note: str = ""
) -> Iterator[ScreenRow]:
    """The rows that schemes add to a section; `note` replaces the note of each."""
    for row in shown_rows():
        if row.section == section and row.kind != "title":
            yield ScreenRow(row.label, _cell_of(row, unit), note or row.note or _misses(results, row))


def _cell_of(row: ShownRow, unit: tuple[int, str] | None) -> Cell:
    """What a row of a scheme shows: nothing in a result without its counters, or where they are 0."""
    cell, where = _whole_cell_of(row, unit), row.where or row.counters[-1]
    return lambda result: cell(result) if result.get(where) else NOT_APPLICABLE


def _whole_cell_of(row: ShownRow, unit: tuple[int, str] | None) -> Cell:
    key = row.counters[0]
    match row.kind:
        case "bytes":
            return _in_unit(key, *unit) if unit else _bytes_of(key)
        case "count":
            return _count_of(key)
        case "hits":
            return _hits_and_merges(*row.counters)
        case "wait":
            return _wait(key)
    return lambda result: format_percent(result[key])


def _misses(results: Results, row: ShownRow) -> str:
    """The fraction of lookups that miss, of the first scheme that has some."""
    if row.kind != "hits":
        return ""
    hits, merges, lookups = row.counters
    looked = next((result for result in results.values() if result.get(lookups)), None)
    if looked is None:
        return ""
    return f"misses {format_percent(looked[lookups] - looked[hits] - looked[merges], looked[lookups])}"


def _compression_ratio(result: Flat) -> str:
    """The compression ratio; with synthetic sizes the range over their seeds."""
    low, high = result["compression.synthetic_min_ratio"], result["compression.synthetic_max_ratio"]
    return f"{result['compression.ratio']:.2f}x" if low is None else f"{low:.2f}x - {high:.2f}x"


def _ratios_over_time(result: Flat) -> str:
    """The peak and the mean ratio, where the ratio changes with what is allocated."""
    shown = [f"{result[f'compression.{name}']:.2f}x" for name in ("ratio", "max_ratio", "mean_ratio")]
    return ", ".join(shown[1:]) if len({*shown}) > 1 and not _is_synthetic(result) else NOT_APPLICABLE


def _ratio_range(result: Flat) -> str:
    """The range of the ratio over the perturbed runs."""
    ratios = [result["compression.ratio"], *result["sensitivity.compression_ratio"]]
    if _is_synthetic(result) or len(set(ratios)) == 1:
        return NOT_APPLICABLE
    return f"{min(ratios):.2f}x - {max(ratios):.2f}x"


def _device_memory(result: Flat) -> str:
    """The device memory that the scheme uses, with metadata; with synthetic sizes a range, as for the ratio."""
    used, data = result["footprint.used_device_bytes"], result["footprint.device_bytes"]
    if not data:
        return NOT_APPLICABLE
    if not _is_synthetic(result):
        return format_bytes(used)
    ratios = (result["compression.synthetic_max_ratio"], result["compression.synthetic_min_ratio"])
    low, high = (result["footprint.allocated_bytes"] / ratio + used - data for ratio in ratios)
    factor, unit = byte_unit(high)
    return f"{format_in_bytes(low, factor)} - {format_in_bytes(high, factor)} {unit}"


def _bytes_of(key: str) -> Cell:
    return lambda result: format_bytes(result[key]) if result[key] else NOT_APPLICABLE


def _count_of(key: str) -> Cell:
    return lambda result: format_count(result[key]) if result[key] else NOT_APPLICABLE


_DRAM: Sequence[tuple[str, str]] = (
    ("demand", "device.demand_bytes"),
    ("over-fetch", "device.overfetch_bytes"),
    ("read-modify-write", "device.read_modify_write_bytes"),
    ("write-back", "device.writeback_bytes"),
)
_CAUSES = {"overfetch": "over-fetch", "writeback": "write-back", "read_modify_write": "read-modify-write"}
_LINK_TOTALS = ("link.read_bytes", "link.write_bytes")


def _unit(results: Results, keys: Sequence[str]) -> tuple[int, str]:
    """The unit of a section: that of its largest total."""
    return byte_unit(max(sum(result[key] for key in keys) for result in results.values()))


def _in_unit(key: str, factor: int, unit: str) -> Cell:
    def text(result: Flat) -> str:
        return f"{format_in_bytes(result[key], factor)} {unit}" if result[key] else NOT_APPLICABLE

    return text


def _dram_rows(results: Results) -> Iterator[ScreenRow]:
    unit = _unit(results, ["device.bus_bytes"])
    for label, key in _DRAM:
        yield ScreenRow(label, _in_unit(key, *unit))
    yield from _rows_of_schemes(results, "DRAM traffic", unit)
    yield ScreenRow("total", _in_unit("device.bus_bytes", *unit), _change(results, "device.bus_bytes"))


def _change(results: Results, key: str) -> str:
    """The change against the baseline, where one scheme is compared with it."""
    baseline = results.get(BASELINE)
    others = [result for scheme, result in results.items() if scheme != BASELINE]
    if baseline is None or len(others) != 1 or not baseline[key]:
        return ""
    return f"{100 * (others[0][key] / baseline[key] - 1):+.0f} %"


def _is_link_busy(results: Results) -> bool:
    return any(
        result[f"utilization.link_{direction}"] > _BUSY_LINK
        for result in results.values()
        for direction in ("read", "write")
    )


def _link_rows(results: Results) -> Iterator[ScreenRow]:
    """The traffic of the link by cause, those of parts and those that schemes declare, and its totals."""
    labels = {row.counters[0]: row.label for row in shown_rows() if row.section == "link traffic"}
    keys = [key for key in counter_zeros() if key.startswith("link.")]
    unit = _unit(results, _LINK_TOTALS)
    causes = [key for key in next(iter(results.values())) if key.startswith("link.") and key not in _LINK_TOTALS]
    for key in [key for key in keys if key in causes] + [key for key in causes if key not in keys]:
        cause = key.removeprefix("link.").removesuffix("_bytes")
        label = labels.get(key) or _CAUSES.get(cause, cause.replace("_", " "))
        yield ScreenRow(label, _in_unit(key, *unit))
    yield ScreenRow("packet headers", _headers(causes, *unit))
    yield ScreenRow("total read", _in_unit("link.read_bytes", *unit), _utilization(results, "link_read"))
    yield ScreenRow("total write", _in_unit("link.write_bytes", *unit), _utilization(results, "link_write"))


def _headers(causes: Sequence[str], factor: int, unit: str) -> Cell:
    """What the link carried beyond payload."""

    def text(result: Flat) -> str:
        extra = sum(result[key] for key in _LINK_TOTALS) - sum(result[key] for key in causes)
        return f"{format_in_bytes(extra, factor)} {unit}" if extra > 0 else NOT_APPLICABLE

    return text


def _utilization(results: Results, name: str) -> str:
    highest = max(result[f"utilization.{name}"] for result in results.values())
    return f"up to {format_whole_percent(highest)} busy"


def _read_and_write(factor: int, unit: str) -> Cell:
    def text(result: Flat) -> str:
        if not any(result[key] for key in _LINK_TOTALS):
            return NOT_APPLICABLE
        return f"{' + '.join(_short_bytes(result[key], factor) for key in _LINK_TOTALS)} {unit}"

    return text


def _short_bytes(count: float, factor: int) -> str:
    """Bytes in a unit, in at most five characters."""
    return format_significant(count / factor) if count >= 100 * factor else format_in_bytes(count, factor)


def _hit_rate_rows(results: Results) -> list[ScreenRow]:
    return [
        ScreenRow("L1 sectors", _hits_and_merges("l1.sector_hits", "l1.sector_mshr_merges", "l1.sector_accesses")),
        ScreenRow("L2 sectors", _hits_and_merges("l2.sector_hits", "l2.sector_mshr_merges", "l2.sector_accesses")),
        *_rows_of_schemes(results, "hit rates"),
    ]


def _hits_and_merges(hits: str, merges: str, lookups: str) -> Cell:
    """Hits and MSHR merges, each a fraction of all lookups."""

    def text(result: Flat) -> str:
        if not result[lookups]:
            return NOT_APPLICABLE
        return " + ".join(format_percent_number(result[key], result[lookups]) for key in (hits, merges)) + " %"

    return text


def _wait(key: str) -> Cell:
    """The times that half of the requests, and 99 % of them, wait less than."""

    def text(result: Flat) -> str:
        bins = result[key] or []
        if not any(bins[1:]):
            return NOT_APPLICABLE
        below = [
            next(b for b in range(len(bins)) if 100 * sum(bins[: b + 1]) >= percent * sum(bins)) + 1
            for percent in (50, 99)
        ]
        return ", ".join(format_time(2**b) for b in below)

    return text


def _wait_rows(results: Results) -> list[ScreenRow]:
    return [
        *_waits(
            ("L1 port", "l1_port"),
            ("L1 MSHR", "l1_mshr"),
            ("L1 store buffer", "l1_store"),
            ("crossbar request", "request_port"),
            ("crossbar reply", "reply_port"),
            ("L2 slice port", "slice_port"),
            ("L2 MSHR", "l2_mshr"),
            ("compressor", "compressor"),
        ),
        *_rows_of_schemes(results, "waiting time"),
        *_waits(
            ("DRAM read", "dram_read"),
            ("DRAM write", "dram_write"),
            ("link read", "link_read"),
            ("link write", "link_write"),
        ),
    ]


def _waits(*queues: tuple[str, str]) -> list[ScreenRow]:
    return [ScreenRow(label, _wait(f"queueing.{queue}_histogram")) for label, queue in queues]


def _of_one_seed(results: Results) -> str:
    synthetic = next((result for result in results.values() if _is_synthetic(result)), None)
    return f" (seed {synthetic['provenance']['seed']})" if synthetic else ""


def _schemes_as_rows(results: Results) -> list[Part]:
    """A row for each scheme with the answer alone; a wide screen has more columns."""
    unit, dram_unit = _unit(results, _LINK_TOTALS), _unit(results, ["device.bus_bytes"])
    every = [
        (Column(f"speedup\nover {BASELINE}"), _speedup),
        (Column("device\nmemory"), _device_memory),
        (Column("link traffic,\nread + write"), _read_and_write(*unit)),
        (Column("bottleneck", left=True), format_bottleneck),
        (Column("simulated\ntime", priority=1), _time),
        (Column("compression\nratio", priority=2), _compression_ratio),
        (Column("DRAM\ntraffic", priority=3), _in_unit("device.bus_bytes", *dram_unit)),
        (Column("sensitivity\nrange", priority=4), _sensitivity_range),
    ]
    if BASELINE not in results:
        every = every[1:]
    if has_derived_accesses(next(iter(results.values()))):
        times = (_speedup, _time, _sensitivity_range, format_bottleneck)
        every = [(column, cell) for column, cell in every if cell not in times]
    by_time = sorted(results.items(), key=lambda item: item[1]["time_ps"])
    rows = [(scheme, *(cell(result) for _, cell in every)) for scheme, result in by_time]
    return [ScreenTable([Column("scheme", left=True), *(column for column, _ in every)], rows)]


def _allocations(results: Results) -> list[Part]:
    """The largest allocations under the first scheme that adds columns, else under the one that has the most."""
    of_schemes = {name: [row for row in shown_rows(name) if row.section == "allocations"] for name in results}
    shown = max(results, key=lambda name: (bool(of_schemes[name]), len(results[name]["per_allocation"])))
    return _allocations_under(results[shown], of_schemes[shown])


def _allocations_under(result: Flat, of_scheme: Sequence[ShownRow]) -> list[Part]:
    """The largest allocations, and what the scheme says of each; empty without allocations."""
    if not result["per_allocation"]:
        return []
    some_in_host = any(row["space"] == "host" for row in result["per_allocation"])
    seed = f"\n(seed {result['provenance']['seed']})" if _is_synthetic(result) else ""
    columns = [
        Column("allocation", left=True, min_width=22, shorten_to=22),
        Column("size", min_width=8),
        *([Column("memory", left=True)] if some_in_host else []),
        Column("fills", min_width=8),
        Column("write-backs"),
        *(Column(f"{row.label}{seed}") for row in of_scheme),
    ]
    by_size = sorted(result["per_allocation"], key=lambda row: (-row["bytes"], row["index"]))
    rows = [
        (
            make_printable(row["name"]),
            format_bytes(row["bytes"]),
            *([row["space"]] if some_in_host else []),
            format_count(row["fills"]),
            format_count(row["writebacks"]),
            *(_of_allocation(row, shown) for shown in of_scheme),
        )
        for row in by_size[:MAX_ALLOCATIONS]
    ]
    hidden = len(by_size) - MAX_ALLOCATIONS
    return ["", ScreenTable(columns, rows), *([f"and {hidden} smaller ones: --json FILE"] if hidden > 0 else [])]


def _of_allocation(allocation: Flat, row: ShownRow) -> str:
    value = allocation.get(row.counters[0].partition(".")[2])
    if row.kind == "text":
        return NOT_APPLICABLE if allocation["space"] == "host" else str(value)
    moved = allocation["fills"] + allocation["writebacks"]
    return NOT_APPLICABLE if value is None or not moved else format_percent(value)


def _simulator_speed(results: Results, seconds: float | None) -> str:
    if seconds is None:
        return ""
    instructions = sum(result["memory_instructions"] for result in results.values())
    rate = f" ({format_rate(instructions / seconds)[:-2]} memory instructions/s)" if seconds else ""
    return f"simulated in {format_significant(seconds)} s{rate}"
