"""A profile on one screen: sectors that entries need, the target of each allocation, the ratio that comes of it."""

from __future__ import annotations

from buddysim.buddy import AllocationProfile, Distribution, Profile, ProfileOptions
from buddysim.buddy.profile import STATES
from buddysim.buddy.profile_options import DRAWN_SEEDS
from buddysim.report.quantities import format_bytes, format_percent
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable, make_printable

_ASSUMED = " *"


def profile_parts(found: Profile) -> list[Part]:
    """The screen; of drawn sizes the ratio is given as it spreads over seeds."""
    headings = ("snap-\nshots", *(f"{state}\nsectors" if state.isdigit() else state for state in STATES))
    table = ScreenTable(
        [
            Column("allocation", left=True),
            *map(Column, ("bytes", *headings, "target", "buddy\naccesses", "in the worst\nsnapshot")),
        ],
        [_cells(found, row) for row in found.rows],
    )
    spread, free = found.ratio_range, found.per_entry_ratio
    measured = f"ratio {found.ratio:.2f} (entries placed freely in 8 sizes: {free:.2f})"
    ratio = measured if spread is None else f"ratio {spread[0]:.2f} to {spread[1]:.2f}, drawn"
    parts: list[Part] = [table, ""]
    parts.append(f"{ratio}, static buddy-access share {format_percent(found.buddy_access_fraction)} ({how(found)})")
    if any(row.drawn for row in found.rows):
        drawn = Distribution.load(found.options.size_distribution)
        parts.append(
            f"* the trace has no values: sizes drawn from a distribution ({drawn.name}), not measured; targets and "
            f"accesses are those of seed {found.options.seed}, the ratio is over {DRAWN_SEEDS} seeds ({drawn.source})"
        )
    unseen = [row.name for row in found.rows if row.unseen]
    if unseen:
        names = ", ".join(map(make_printable, unseen))
        parts.append(f"without sizes up to launch {found.options.profile_until_launch}, kept whole: {names}")
    if found.host:
        parts.append(f"in host memory, without a target: {', '.join(map(make_printable, found.host))}")
    return parts


def _cells(found: Profile, row: AllocationProfile) -> list[str]:
    shares = [format_percent(share) if share else NOT_APPLICABLE for share in row.histogram]
    overflow, worst = float(found.overflow_fraction(row)), float(found.overflow_fraction(row, "worst"))
    return [
        make_printable(row.name) + (_ASSUMED if row.drawn else ""),
        format_bytes(row.bytes),
        str(len(row.snapshots)) if row.snapshots else "none",
        *shares,
        row.target.name,
        format_percent(overflow),
        format_percent(worst),
    ]


def how(found: Profile) -> str:
    """How the targets were chosen."""
    options = found.options
    decides = "the worst snapshot decides" if options.aggregate == "worst" else "the mean over the snapshots decides"
    sizes = f", sizes by {options.compressor}" if options.compressor != ProfileOptions.compressor else ""
    until = (
        f", snapshots up to launch {options.profile_until_launch}" if options.profile_until_launch is not None else ""
    )
    return f"policy {options.policy}, threshold {options.threshold:g}, {decides}{sizes}{until}"
