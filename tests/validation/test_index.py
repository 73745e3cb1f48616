"""docs/validation/index.md has the numbers of the table of all comparisons."""

from __future__ import annotations

import csv
from collections import Counter
from statistics import median

from tests.validation.stored import TABLE

INDEX = (TABLE.parent / "index.md").read_text(encoding="utf-8")
with TABLE.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def line(page: str, quantity: str) -> str:
    """Return the row of the first table that links to a page and names a quantity."""
    (one,) = [row for row in INDEX.splitlines() if f"]({page}" in row and quantity in row]
    return one


def rows_of(comparison: str, **cells: str) -> list[dict[str, str]]:
    return [row for row in ROWS if row["comparison"] == comparison and all(row[k] == v for k, v in cells.items())]


def within(comparison: str) -> str:
    """Return the count within tolerance as text: ``69 of 82``."""
    statuses = Counter(row["status"] for row in rows_of(comparison))
    return f"| {statuses['pass']} of {statuses['pass'] + statuses['fail']} |"


def error(comparison: str, **cells: str) -> float:
    (row,) = rows_of(comparison, **cells)
    return float(row["error_fraction"])


def test_quantities_within_tolerance_are_those_of_the_table() -> None:
    for comparison, page, quantity in (
        ("curves", "hardware.md", "curves"),
        ("kernels", "hardware.md", "kernels"),
        ("um", "unified-memory.md", "Unified Memory"),
        ("accelsim", "accelsim.md", "cycles"),
        ("dram", "dram.md", "bandwidths"),
    ):
        assert within(comparison) in line(page, quantity), comparison


def test_curves_and_device_memory_have_the_median_of_their_errors() -> None:
    medians = [float(row["error_fraction"]) for row in rows_of("curves", quantity="median error")]
    assert f"| {len(medians)} latency and bandwidth curves | median {median(medians):.1%}".replace("%", " %") in INDEX
    streams = [abs(float(row["error_fraction"])) for row in rows_of("dram") if row["tolerance_fraction"]]
    assert f"| {len(streams)} bandwidths of device memory | median {median(streams):.1%}".replace("%", " %") in INDEX


def test_kernels_have_the_medians_over_all_programs() -> None:
    texts = [
        f"{name} {error('kernels', machine='gv100', subject='all programs', quantity=f'{name}: median error'):.1%}"
        for name in ("L2 sectors", "DRAM sectors", "cycles")
    ]
    assert f"medians: {', '.join(texts)}".replace("%", " %") in line("hardware.md", "kernels")


def test_simulators_and_unified_memory_have_the_summaries_of_their_pages() -> None:
    correlation = 1 - error("accelsim", subject="programs", quantity="log correlation")
    mean = error("accelsim", subject="programs", quantity="mean error")
    assert f"log correlation {correlation:.4f}; totals {mean:.1%} on".replace("%", " %") in line(
        "accelsim.md", "cycles"
    )
    slowdowns = 1 - error("um", subject="slowdowns", quantity="rank correlation")
    (programs,) = rows_of("um", quantity="programs in 2x")
    text = f"rank correlation {slowdowns:.2f}; {float(programs['simulated']):.0f} of 4 programs within 2x"
    assert text in line("unified-memory.md", "slowdowns")


def test_layer_times_have_the_errors_of_the_table() -> None:
    (everything,) = rows_of("layer-times", machine="")
    row = line("layer-times.md", "layer times")
    median_error = f"{float(everything['error_fraction']):.1%}".replace("%", " %")
    assert f"| {everything['note'].split()[0]} held-out layer times | median {median_error} |" in row
    assert within("layer-times") in row


def test_papers_have_the_statuses_of_the_table() -> None:
    for page in ("buddy-paper", "training-papers"):
        statuses = Counter(row["status"] for row in ROWS if row["page"] == page)
        counts = ", ".join(f"{name} {statuses[name]}" for name in ("reproduced", "shape only", "not reproduced"))
        assert f"| {statuses.total()} numbers | {counts} |" in line(f"{page}.md", "numbers")


def test_schemes_have_the_largest_errors_of_the_table() -> None:
    """An order has an error of 0. Errors of a slowdown are of the time in addition, or points below 5 %."""
    by_quantity: dict[str, list[dict[str, str]]] = {}
    for row in rows_of("llm"):
        if row["quantity"] in ("slowdown", "bytes saved", "order of variants"):
            by_quantity.setdefault(row["quantity"], []).append(row)
    errors = {
        name: max(abs(float(row["error_fraction"])) for row in rows if row["tolerance_fraction"] != "0.02")
        for name, rows in by_quantity.items()
    }
    statuses = Counter(row["status"] for rows in by_quantity.values() for row in rows)
    text = (
        f"{len(by_quantity['slowdown'])} pairs; order of variants | of the time in addition, {errors['slowdown']:.0%} "
        f"at most; bytes saved {errors['bytes saved']:.0%} |"
    ).replace("%", " %")
    in_index = line("llm.md#schemes", "slowdown")
    assert text in in_index
    assert f"| {statuses['pass']} of {statuses.total()} |" in in_index
