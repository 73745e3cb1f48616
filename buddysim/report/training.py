"""The result of a simulated training iteration on one screen: a row for each scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from buddysim.report.quantities import gib_text, share_text
from buddysim.report.table import assumptions, make_console

WIDTH_WHEN_PIPED = 120

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]


def _fits(result: Flat) -> str:
    return "yes" if result["fits"] else "NO"


def _vs_oracle(result: Flat) -> str:
    return "-" if result["time_vs_oracle"] is None else f"{result['time_vs_oracle']:.3f}"


def _ms(key: str) -> Callable[[Flat], str]:
    return lambda result: f"{result[key]:,.1f}" if result[key] else "-"


def _gib(key: str) -> Callable[[Flat], str]:
    return lambda result: gib_text(result[key]) if result[key] else "-"


def _saved(key: str) -> Callable[[Flat], str]:
    """The share of the network-wide baseline that is saved."""
    return lambda result: share_text(1 - result[key] / result["memory.baseline_bytes"])


def _batch(result: Flat) -> str:
    return f"{result['provenance']['batch']:,}"


COLUMNS: Sequence[tuple[str, Callable[[Flat], str]]] = (
    ("fits", _fits),
    ("time ms", _ms("time_ms")),
    ("oracle/time", _vs_oracle),
    ("stall ms", _ms("stall_ms")),
    ("peak GiB", _gib("memory.peak_bytes")),
    ("average", _gib("memory.average_bytes")),
    ("saved avg", _saved("memory.average_bytes")),
    ("offloaded", _gib("offload.bytes")),
    ("on link", _gib("link.bytes")),
    ("pinned", _gib("host.pinned_bytes")),
)


def training_table(results: Results, full_result: str, batches: Mapping[str, int] | None = None) -> RenderableType:
    """One screen: which schemes fit, their costs and savings, decisions and assumptions.

    Parameters
    ----------
    results : what `TrainingResult.to_dict` gives, by scheme name
    full_result : text that names the file of the full result
    batches : the largest batch of each scheme that fits, where these were looked for; 0 for none
    """
    parts: list[RenderableType] = [_heading(results, batches), _comparison(results, batches)]
    missing = [f"{name}: {missing_text(result)}" for name, result in results.items() if not result["fits"]]
    if missing:
        parts.append(Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in missing)))
    parts += [_decisions(results), _calibration(results), assumptions(results), full_result]
    kept = [part for part in parts if not (isinstance(part, Group) and not part.renderables)]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in kept[:-1]), kept[-1])


def missing_text(result: Flat) -> str:
    """How far a result is from fitting: at its peak, and where it fails first."""
    over = result["missing.at_peak_bytes"]
    return f"{gib_text(over)} GiB over at its peak; first: {result['missing.text']}" if over else result["missing.text"]


def print_training(
    results: Results, full_result: str, batches: Mapping[str, int] | None = None, console: Console | None = None
) -> None:
    """Prints the screen, without blanks at the ends of lines."""
    console = console or make_console(WIDTH_WHEN_PIPED)
    with console.capture() as captured:
        console.print(training_table(results, full_result, batches))
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _heading(results: Results, batches: Mapping[str, int] | None) -> str:
    first = next(iter(results.values()))
    run = first["provenance"]
    capacities = [result["memory.capacity_bytes"] for result in results.values() if result["memory.capacity_bytes"]]
    memory = f"{gib_text(capacities[0])} GiB" if capacities else "as much memory as it takes"
    if batches is not None:
        return f"{run['network']} on {run['machine']} ({memory}): the largest batch that fits"
    return (
        f"{run['network']}, batch {run['batch']}, on {run['machine']} ({memory}): one iteration; network-wide with the "
        f"fastest algorithms {gib_text(first['memory.baseline_bytes'])} GiB, of that workspace "
        f"{gib_text(first['memory.baseline_workspace_bytes'])}; oracle {first['oracle_ms']:,.1f} ms"
    )


def _comparison(results: Results, batches: Mapping[str, int] | None) -> Table:
    table = Table(
        title=_conditions(next(iter(results.values()))),
        title_justify="left",
        title_style="none",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("scheme", no_wrap=True)
    columns = list(COLUMNS)
    if batches is not None:
        columns.insert(0, ("batch", _batch))
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, result in results.items():
        cells = [text(result) for _, text in columns]
        if batches is not None and not batches[name]:
            cells[0] = "none"
        elif batches is not None and not result["memory.capacity_bytes"]:
            cells = ["any", *[""] * (len(columns) - 1)]
        table.add_row(name, *cells)
    return table


def _conditions(result: Flat) -> str:
    """What every time of the table depends on: precision, calibration, link."""
    run = result["provenance"]
    calibrated = f"calibrated ({run['library']})" if run["calibrated"] else f"UNCALIBRATED ({run['library']})"
    return (
        f"{run['precision']}; layer times {calibrated}; link {run['link']}: "
        f"{run['link_offload_bytes_per_s'] / 1e9:g} GB/s out, {run['link_prefetch_bytes_per_s'] / 1e9:g} GB/s back"
    )


def _decisions(results: Results) -> Group:
    """Decisions of each scheme, in one line; those that are among the assumptions are left out."""
    lines = []
    for name, result in results.items():
        run = result["provenance"]
        assumed = {f"{subject}: {text}" for subject, text in run["assumptions"].items()}
        decisions = [decision for decision in run["decisions"] if decision not in assumed]
        if decisions:
            lines.append(Text(f"{name}: {'; '.join(decisions)}", overflow="fold"))
    return Group(*lines)


def _calibration(results: Results) -> Group:
    run = next(iter(results.values()))["provenance"]
    return Group(
        Text(f"layer times: {run['library']}, {run['calibration']}", no_wrap=True, overflow="ellipsis"),
        Text(f"link: both directions at the same time; prefetch: {run['prefetch']}"),
    )
