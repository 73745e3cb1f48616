"""A snapshot of a run's GPU memory next to a simulated step, as a screen."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.report.quantities import format_bytes, format_gib
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.caching_allocator.snapshot.comparison import SnapshotComparison
from buddysim.training.caching_allocator.snapshot.lifetimes import KINDS

_ROWS = 12


def snapshot_parts(comparison: SnapshotComparison) -> list[Part]:
    """The allocator's decisions, the peaks, and the sizes that make their difference."""
    return [*_events(comparison), "", _peaks(comparison), "", *_sizes(comparison)]


def _events(comparison: SnapshotComparison) -> Iterator[str]:
    events, snapshot = comparison.events, comparison.snapshot
    settings = snapshot.settings.text() or "default settings"
    yield f"{comparison.path}: {len(snapshot.events):,} events of GPU {snapshot.device}, {settings}"
    total, equal = events.compared.total(), events.equal_events
    yield (
        f"Allocator: {equal:,} of {total:,} events have the recorded outcome, "
        f"{events.equal_blocks:,} of {events.blocks:,} blocks at the end are equal"
    )
    for what, count in events.differences.most_common():
        first = next((f", the first at event {index}" for index, kind in events.examples if kind == what), "")
        yield f"  {what}: {count:,} times{first}"
    if events.contradictions:
        yield f"The record isn't whole: {events.contradictions:,} events contradict the rest of it"
    if events.assumed:
        yield f"Blocks in use before the record whose size is assumed: {events.assumed:,}"


def _peaks(comparison: SnapshotComparison) -> ScreenTable:
    events, replay = comparison.events, comparison.replay
    measured, predicted = comparison.measured, comparison.predicted
    rows = [
        _row("allocated", events.peak_allocated, replay.peak_allocated_bytes),
        _row("reserved", events.peak_reserved, replay.peak_reserved_bytes),
        (),
        *[
            _row(kind, measured.by_kind[kind], predicted.by_kind[kind])
            for kind in KINDS
            if measured.by_kind[kind] or predicted.by_kind[kind]
        ],
    ]
    columns = [Column("at the peak", left=True), *map(Column, ("run\nGiB", "simulated\nGiB", "difference\n%"))]
    return ScreenTable(columns, rows)


def _row(name: str, measured: int, predicted: int) -> tuple[str, ...]:
    difference = f"{100 * (predicted - measured) / measured:+.1f}" if measured else NOT_APPLICABLE
    return name, format_gib(measured), format_gib(predicted), difference


def _sizes(comparison: SnapshotComparison) -> list[Part]:
    rows = comparison.differences()
    if not rows:
        return ["Every block at the peak has one of the same kind and size in the simulation"]
    shown = [
        (format_bytes(row.size), row.kind, f"{row.measured:,}", f"{row.predicted:,}", format_gib(row.bytes))
        for row in rows[:_ROWS]
    ]
    headings = ("run\nblocks", "simulated\nblocks", "difference\nGiB")
    columns = [Column("size"), Column("kind", left=True), *map(Column, headings)]
    left = len(rows) - len(shown)
    return [ScreenTable(columns, shown), *([f"{left:,} more sizes differ by less"] if left > 0 else [])]
