"""The result of a simulated training iteration on one screen: a row for each scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from buddysim.report.caveats import assumption_lines
from buddysim.report.quantities import format_gib, format_percent
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable, make_printable, print_screen
from buddysim.training.schemes import UNCHANGED

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

#: What every iteration leaves out stands right below the table.
_NOT_MODELLED = "model"


def _fits(result: Flat) -> str:
    return "yes" if result["fits"] else "NO"


def _speed(result: Flat) -> str:
    """The oracle's time over this one."""
    return (
        NOT_APPLICABLE if result["performance_vs_oracle"] is None else format_percent(result["performance_vs_oracle"])
    )


def _ms(key: str) -> Callable[[Flat], str]:
    return lambda result: f"{result[key]:,.1f}" if result[key] else NOT_APPLICABLE


def _gib(key: str) -> Callable[[Flat], str]:
    return lambda result: format_gib(result[key]) if result[key] else NOT_APPLICABLE


def _saved(key: str) -> Callable[[Flat], str]:
    """The share of the network-wide baseline that is saved."""
    return lambda result: format_percent(1 - result[key] / result["memory.baseline_bytes"])


def _batch(result: Flat) -> str:
    return f"{result['provenance']['batch']:,}"


COLUMNS: Sequence[tuple[str, Callable[[Flat], str]]] = (
    ("fits", _fits),
    ("time\nms", _ms("time_ms")),
    ("speed of\noracle's", _speed),
    ("stalls\nms", _ms("stall_ms")),
    ("peak\nGiB", _gib("memory.peak_bytes")),
    ("average\nGiB", _gib("memory.time_mean_bytes")),
    ("average\nsaved", _saved("memory.time_mean_bytes")),
    ("offloaded\nGiB", _gib("offload.bytes")),
    ("on the\nlink, GiB", _gib("link.bytes")),
    ("pinned on\nhost, GiB", _gib("host.peak_pinned_bytes")),
)


def _codes(result: Flat) -> str:
    """Encoding and decoding on the GPU."""
    spent = result["encode_ms"] + result["decode_ms"]
    return f"{spent:,.1f}" if spent else NOT_APPLICABLE


def _footprint_ratio(result: Flat) -> str:
    """Gist's memory footprint ratio, of schemes that have one."""
    ratio = result["memory.footprint_ratio"]
    return NOT_APPLICABLE if ratio is None else f"{ratio:.2f} x"


def _accuracy(result: Flat) -> str:
    """What the scheme does to the accuracy of what is trained."""
    return str(result["provenance"].get("accuracy", "not measured"))


def training_parts(
    results: Results,
    full_result: str = "",
    batches: Mapping[str, int] | None = None,
    beyond: Results | None = None,
    changed: Mapping[str, object] | None = None,
) -> list[Part]:
    """One screen: which schemes fit, their costs and savings, their limits, decisions and assumptions.

    Parameters
    ----------
    results : what `TrainingResult.to_dict` gives, by scheme name
    full_result : text that names the file of the full result
    batches : the largest batch of each scheme that fits, where these were looked for; 0 for none
    beyond : of these schemes, the counters ``missing.*`` of one sample more, which does not fit
    changed : figures of the machine that are not those of its name
    """
    sections: tuple[list[Part], ...] = (
        [_heading(results, batches), *_changed(changed or {}), _conditions(next(iter(results.values())))],
        [_comparison(results, batches)],
        list(_not_modelled(results)),
        list(_limits(results, beyond or {})),
        list(_decisions(results)),
        [*_calibration(results), *map(make_printable, _other_assumptions(results))],
        [full_result] * bool(full_result),
    )
    parts: list[Part] = []
    for section in filter(None, sections):
        parts += [""] * bool(parts) + section
    return parts


def missing_text(result: Flat) -> str:
    """How far a result is from fitting: at its peak, and where it fails first."""
    over = result["oom.peak_excess_bytes"]
    return f"{format_gib(over)} GiB over at its peak; first: {result['oom.message']}" if over else result["oom.message"]


def print_training(
    results: Results,
    full_result: str,
    batches: Mapping[str, int] | None = None,
    beyond: Results | None = None,
    changed: Mapping[str, object] | None = None,
) -> None:
    """Prints the screen."""
    print_screen(training_parts(results, full_result, batches, beyond, changed))


def _changed(settings: Mapping[str, object]) -> Iterator[str]:
    if settings:
        yield make_printable(f"changed: {', '.join(f'{key} = {value}' for key, value in settings.items())}")


def _heading(results: Results, batches: Mapping[str, int] | None) -> str:
    first = next(iter(results.values()))
    run = first["provenance"]
    capacities = [result["memory.capacity_bytes"] for result in results.values() if result["memory.capacity_bytes"]]
    memory = f"{format_gib(capacities[0])} GiB" if capacities else "as much memory as it takes"
    if batches is not None:
        return f"{run['network']} on {run['machine']} ({memory}): the largest batch that fits"
    return (
        f"{run['network']}, batch {run['batch']}, on {run['machine']} ({memory}): one iteration; network-wide with the "
        f"fastest algorithms {format_gib(first['memory.baseline_bytes'])} GiB, of that workspace "
        f"{format_gib(first['memory.baseline_workspace_bytes'])} GiB; oracle (as much memory as it takes): "
        f"{first['oracle_ms']:,.1f} ms"
    )


def _comparison(results: Results, batches: Mapping[str, int] | None) -> ScreenTable:
    columns = list(COLUMNS)
    if any(_accuracy(result) != UNCHANGED for result in results.values()):
        columns.append(("accuracy", _accuracy))
    if any(result["encode_ms"] + result["decode_ms"] for result in results.values()):
        columns.append(("codes\nms", _codes))
    if any(result["memory.footprint_ratio"] is not None for result in results.values()):
        columns.append(("maps\nGiB", _gib("memory.footprint_bytes")))
        columns.append(("maps\nsmaller", _footprint_ratio))
    if batches is not None:
        columns.insert(0, ("batch\nsamples", _batch))
    rows = []
    for name, result in results.items():
        cells = [text(result) for _, text in columns]
        if batches is not None and not batches[name]:
            cells[0] = "none"
        elif batches is not None and not result["memory.capacity_bytes"]:
            cells = ["any"]
        rows.append((name, *cells))
    return ScreenTable([Column("scheme", left=True), *(Column(heading) for heading, _ in columns)], rows)


def _conditions(result: Flat) -> str:
    """What every time of the table depends on: precision, calibration, link, optimizer."""
    run = result["provenance"]
    calibrated = f"calibrated ({run['conv_library']})" if run["calibrated"] else f"UNCALIBRATED ({run['conv_library']})"
    updated = "no weight update"
    if run["optimizer"] != "none":
        held = result["memory.optimizer_state_bytes"]
        updated = f"{run['optimizer']} {result['update_ms']:,.1f} ms, state {format_gib(held)} GiB"
    return (
        f"{run['precision']}; layer times {calibrated}; link {run['link']}: "
        f"{run['link_d2h_bytes_per_s'] / 1e9:g} GB/s out, {run['link_h2d_bytes_per_s'] / 1e9:g} GB/s back; "
        f"{updated}"
    )


def _not_modelled(results: Results) -> Iterator[str]:
    texts = {result["provenance"]["assumptions"].get(_NOT_MODELLED) for result in results.values()}
    yield from (f"not modelled, or simpler than in reality: {text}" for text in sorted(filter(None, texts)))


def _other_assumptions(results: Results) -> list[str]:
    return [line for line in assumption_lines(results) if not line.partition(" ")[2].startswith(_NOT_MODELLED)]


def _limits(results: Results, beyond: Results) -> Iterator[str]:
    """What limits each scheme: what is missing, or the memories it fills, the fullest first."""
    for name, result in results.items():
        if not result["fits"]:
            yield f"{name}: {missing_text(result)}"
            continue
        filled = _filled(result)
        if not filled:
            continue
        text = "; next: ".join(f"{what}, {_of(*sizes)}" for what, *sizes in filled)
        if name in beyond:
            more = result["provenance"]["batch"] + 1
            text = f"batch {more} does not fit: {missing_text(beyond[name])}. At batch {_batch(result)}: {text}"
        yield f"{name}: {text}"


def _filled(result: Flat) -> list[tuple[str, int, int]]:
    """The memories in use: name, bytes at most, capacity."""
    both = [
        ("GPU memory (training.device_memory)", result["memory.peak_bytes"], result["memory.capacity_bytes"]),
        (
            "pinned host memory (training.max_pinned_memory)",
            result["host.peak_pinned_bytes"],
            result["host.pinned_capacity_bytes"],
        ),
    ]
    return sorted((row for row in both if row[1] and row[2]), key=lambda row: -row[1] / row[2])


def _of(used: int, capacity: int) -> str:
    return f"{format_gib(used)} of {format_gib(capacity)} GiB ({format_percent(used, capacity)})"


def _decisions(results: Results) -> Iterator[str]:
    """Decisions of each scheme, in one paragraph."""
    for name, result in results.items():
        decisions = result["provenance"]["decisions"]
        if decisions:
            yield f"{name}: {'; '.join(decisions)}"


def _calibration(results: Results) -> list[str]:
    run = next(iter(results.values()))["provenance"]
    return [
        f"layer times: {run['conv_library']}, {run['calibration']}",
        f"link: both directions at the same time; prefetch: {run['prefetch']}",
    ]
