"""The screen of `profile`: the compression ratio, and for each allocation its sizes, target and overflow."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.buddy import AllocationProfile, Distribution, Profile, ProfileOptions
from buddysim.buddy.profile_options import SYNTHETIC_SEEDS
from buddysim.buddy.profiler import STATES
from buddysim.report.quantities import (
    format_bytes,
    format_percent,
    format_percent_number,
    format_whole_percent,
)
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable, make_printable

_SYNTHETIC_MARK = " *"
_SIZES = "% of entries by size in sectors"
_OVERFLOW = "overflow, %"


def profile_parts(profile: Profile, saved: str = "") -> list[Part]:
    """Return the screen of a profile.

    Parameters
    ----------
    saved : where the targets are
    """
    parts: list[Part] = [*_synthetic_sizes(profile), *_answer(profile), "", _table(profile)]
    notes = [*_notes(profile)]
    return [*parts, *([""] if notes else []), *notes, *(["", saved] if saved else [])]


def _synthetic_sizes(profile: Profile) -> Iterator[str]:
    """The line that says that sizes are synthetic, and of how many entries."""
    synthetic = sum(row.entries for row in profile.rows if row.is_synthetic)
    entries = sum(row.entries for row in profile.rows)
    if not synthetic:
        return
    some = f"of {format_percent(synthetic, entries)} of the entries"
    which = "the trace has no data values" if synthetic == entries else some
    yield f"SYNTHETIC SIZES: {which}; ratios are ranges over {SYNTHETIC_SEEDS} seeds"


def _answer(profile: Profile) -> Iterator[str]:
    spread = profile.ratio_range
    ratio = f"{profile.ratio:.2f}x" if spread is None else f"{spread[0]:.2f}x - {spread[1]:.2f}x"
    yield (
        f"target ratios: compression ratio {ratio}, expected buddy-access fraction "
        f"{format_percent(profile.buddy_access_fraction)}{'' if spread is None else f' (seed {profile.options.seed})'}"
    )
    yield f"chosen by: {describe_options(profile)}"
    if spread is None:
        yield f"upper bound with a size per entry: {profile.per_entry_ratio:.2f}x"


def describe_options(profile: Profile) -> str:
    """Return how the targets were chosen: threshold, snapshots, policy."""
    options = profile.options
    snapshots = max((len(row.snapshots) for row in profile.rows), default=0)
    aggregate = "worst" if options.aggregate == "worst" else "mean"
    of_snapshots = f", {aggregate} of {snapshots} snapshot{'s' if snapshots != 1 else ''}" if snapshots else ""
    until = f" up to launch {options.profile_until_launch}" if options.profile_until_launch is not None else ""
    sizes = f", sizes by {options.compressor}" if options.compressor != ProfileOptions.compressor else ""
    return f"threshold {format_whole_percent(options.threshold)}{of_snapshots}{until}, policy {options.policy}{sizes}"


def _table(profile: Profile) -> ScreenTable:
    columns = [
        Column("allocation", left=True, shorten_to=14),
        Column("size", min_width=8),
        Column("target"),
        *(Column(name, group=_SIZES, min_width=4) for name in STATES),
        Column("mean", group=_OVERFLOW),
        Column("worst", group=_OVERFLOW),
    ]
    counts = {len(row.snapshots) for row in profile.rows if not row.is_synthetic}
    rows = [_cells(profile, row) for row in profile.rows]
    if len(counts) > 1:
        columns.append(Column("snapshots", priority=1))
        rows = [
            [*cells, str(len(row.snapshots)) if row.snapshots else NOT_APPLICABLE]
            for cells, row in zip(rows, profile.rows, strict=True)
        ]
    return ScreenTable(columns, rows)


def _cells(profile: Profile, row: AllocationProfile) -> list[str]:
    overflow, worst = float(profile.overflow_fraction(row)), float(profile.overflow_fraction(row, "worst"))
    return [
        make_printable(row.name) + (_SYNTHETIC_MARK if row.is_synthetic else ""),
        format_bytes(row.bytes),
        row.target.name,
        *(format_percent_number(fraction) if fraction else NOT_APPLICABLE for fraction in row.histogram),
        format_percent_number(overflow),
        format_percent_number(worst),
    ]


def _notes(profile: Profile) -> Iterator[str]:
    """What the table leaves open: where synthetic sizes come from, allocations without a profile or a target."""
    if any(row.is_synthetic for row in profile.rows):
        distribution = Distribution.load(profile.options.size_distribution)
        yield (f"* sizes are sampled from {distribution.name}; targets and overflow are of seed {profile.options.seed}")
    unseen = [row.name for row in profile.rows if row.unseen]
    if unseen:
        names = ", ".join(map(make_printable, unseen))
        yield f"no sizes up to launch {profile.options.profile_until_launch}, counted as incompressible: {names}"
    if profile.host:
        yield f"in host memory, without a target: {', '.join(map(make_printable, profile.host))}"
