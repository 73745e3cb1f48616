"""The profiler: choose a target ratio for each allocation from the snapshots of a trace.

Buddy Compression, section 3.4. An entry overflows a target if it needs more sectors than the target has in device
memory. The fraction of entries that overflow is the static estimate of buddy accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.notebook import html
from buddysim.base.result import file_name
from buddysim.base.stack_frames import frame
from buddysim.buddy.distribution import Distribution
from buddysim.buddy.entry_values import N_CLASSES, EntryValues
from buddysim.buddy.over_time import largest_first_until_none_over, sums_over_time
from buddysim.buddy.profile_options import ProfileOptions, exact_fraction
from buddysim.buddy.targets import ALL_TARGETS, TARGET, Target, Targets
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES, SECTORS_OF_CLASS, STUDY_CLASSES
from buddysim.trace import Allocation, Trace, open_trace
from buddysim.trace.partial import require_complete

if TYPE_CHECKING:
    import pandas

#: Classes of the histogram: sectors needed; 8 B is separate because a 16x target has 8 B.
STATES = ("0", "8 B", "1", "2", "3", "4")
LARGEST_RATIO = 4  # the carve-out is three times device memory (section 3.2)

_EIGHT_BYTES = TARGET["16x"].device_bytes_per_entry
_STATE_OF_CLASS = tuple(
    sectors + (size > _EIGHT_BYTES) for size, sectors in zip(STUDY_CLASSES, SECTORS_OF_CLASS, strict=True)
)
#: Entries of a trace whose synthetic sizes are counted one by one; later allocations have expected fractions.
COUNTED_ENTRIES = 2**27
_CACHED_COUNTS = 4096
_UNSAMPLED_COUNTS = np.zeros((1, N_CLASSES), dtype=np.int64)


@dataclass(frozen=True)
class AllocationProfile:
    """Entry sizes of an allocation over the snapshots, and the target chosen for it.

    Attributes
    ----------
    index, name, bytes, entries : the allocation's
    snapshots : indices of the snapshots over the run with sizes of it; empty if its sizes are synthetic
    counts : int64 (snapshots, or 1; 8): entries of each size class
    target : the ratio chosen
    unseen : the trace has sizes of it, but none up to `ProfileOptions.profile_until_launch`; it counts as
        incompressible
    """

    index: int
    name: str
    bytes: int
    entries: int
    snapshots: tuple[int, ...]
    counts: NDArray[np.int64]
    target: Target = ALL_TARGETS[0]
    unseen: bool = False

    @property
    def is_synthetic(self) -> bool:
        """Whether the trace has no data values of the allocation."""
        return not self.snapshots and not self.unseen

    @property
    def histogram(self) -> tuple[float, ...]:
        """Fraction of entries in each of `STATES`, the mean over the snapshots."""
        fractions = [Fraction(0)] * len(STATES)
        for number, state in enumerate(_STATE_OF_CLASS):
            fractions[state] += _mean(self._fractions(lambda row, number=number: int(row[number])))  # type: ignore[misc]
        return tuple(float(fraction) for fraction in fractions)

    @property
    def mean_entry_bytes(self) -> Fraction:
        """Bytes per entry under free placement in the 8 size classes, the mean over the snapshots."""
        return _mean(self._fractions(lambda row: int(row @ np.array(STUDY_CLASSES))))

    @property
    def mean_sectors(self) -> Fraction:
        """Sectors needed per entry, the mean over the snapshots."""
        return _mean(self._fractions(lambda row: int(row @ np.array(SECTORS_OF_CLASS))))

    def overflow_fraction(self, target: Target, aggregate: str = "mean", eight_byte_class: bool = True) -> Fraction:
        """Return the fraction of entries that overflow a target: of the worst snapshot, or the mean over snapshots."""

        return _overflow(self.counts.tobytes(), target, aggregate, eight_byte_class)

    def _fractions(self, count: Callable[[NDArray[np.int64]], int]) -> list[Fraction]:
        return [Fraction(count(row), int(row.sum())) for row in self.counts]


@dataclass(frozen=True, repr=False)
class Profile:
    """A trace's target ratios and the entry sizes that they are chosen from.

    Attributes
    ----------
    rows : one per device allocation
    host : names of the allocations in host memory, which have no target
    targets : the chosen target ratios
    options : the options of the choice
    """

    rows: list[AllocationProfile]
    host: list[str]
    targets: Targets
    options: ProfileOptions

    @property
    def ratio(self) -> float:
        """Peak of allocated bytes / peak of device bytes, without metadata."""
        return _ratio(self.targets.allocations, self.rows)

    @cached_property
    def ratio_range(self) -> tuple[float, float] | None:
        """The lowest and highest ratio over seeds; None where no sizes are synthetic.

        The ratio of a single seed says nothing about a program without data values.
        """
        if not any(row.is_synthetic for row in self.rows):
            return None
        allocations, ratios = self.targets.allocations, []
        for options in self.options.over_seeds():
            ratios.append(
                _ratio(allocations, _with_targets(allocations, _with_synthetic_counts(self.rows, options), options))
            )
        return min(ratios), max(ratios)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return one row per allocation, as in `to_dict`, and columns of sectors needed (needs pandas)."""
        rows = self.to_dict()["allocations"]
        fractions = [
            {f"sectors_needed.{state}": fraction for state, fraction in row.pop("sectors_needed").items()}
            for row in rows
        ]
        return frame([row | fraction for row, fraction in zip(rows, fractions, strict=True)], "name")

    def __repr__(self) -> str:
        """Return one line; with synthetic sizes the ratio is a range over seeds."""
        spread = self.ratio_range
        ratio = (
            f"{self.ratio:.2f}x"
            if spread is None
            else "{:.2f}x to {:.2f}x over seeds of synthetic sizes".format(*spread)
        )
        return f"<Profile: {len(self.rows)} allocations, {ratio}, {self.buddy_access_fraction:.2%} buddy accesses>"

    def _repr_html_(self) -> str:
        """The screen of ``buddysim profile``, in a notebook."""
        return html("profile", self)

    @property
    def per_entry_ratio(self) -> float:
        """Bytes allocated / bytes if every entry had just its size class; inf for 0 B."""
        stored = sum((row.entries * row.mean_entry_bytes for row in self.rows), Fraction(0))
        return float(sum(row.entries for row in self.rows) * ENTRY_BYTES / stored) if stored else float("inf")

    @property
    def per_entry_sector_ratio(self) -> float:
        """Bytes allocated / bytes if every entry had just the sectors that it needs; inf for 0 B."""
        entries = sum(row.entries for row in self.rows)
        stored = sum((row.entries * row.mean_sectors for row in self.rows), Fraction(0))
        return float(entries * ENTRY_BYTES / (stored * SECTOR_BYTES)) if stored else float("inf")

    def overflow_at(self, snapshot: int) -> tuple[int, float]:
        """Return the entries with sizes in a snapshot, and how many of them overflow their targets."""
        entries, over = 0, Fraction(0)
        for row in self.rows:
            if snapshot in row.snapshots:
                at_snapshot = replace(row, snapshots=(snapshot,), counts=row.counts[[row.snapshots.index(snapshot)]])
                entries += row.entries
                over += row.entries * self.overflow_fraction(at_snapshot)
        return entries, float(over)

    @property
    def buddy_access_fraction(self) -> float:
        """Fraction of all entries that overflow their target, the mean over the snapshots."""
        entries = sum(row.entries for row in self.rows)
        overflowing = sum((row.entries * self.overflow_fraction(row) for row in self.rows), Fraction(0))
        return float(overflowing / entries) if entries else 0.0

    def overflow_fraction(self, row: AllocationProfile, aggregate: str = "mean") -> Fraction:
        """Return the fraction of a row's entries that overflow its target."""
        return row.overflow_fraction(row.target, aggregate, self.options.eight_byte_class)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        options = self.options
        return {
            "threshold": float(options.threshold),
            "aggregate": options.aggregate,
            "policy": options.policy,
            "compressor": options.compressor,
            "zero_fraction": float(options.zero_fraction),
            "seed": options.seed,
            "size_distribution": options.size_distribution,
            "profile_until_launch": options.profile_until_launch,
            "ratio": self.ratio,
            "ratio_range": self.ratio_range,
            "per_entry_ratio": self.per_entry_ratio if self.per_entry_ratio != float("inf") else None,
            "buddy_access_fraction": self.buddy_access_fraction,
            "host": self.host,
            "allocations": [
                {
                    "index": row.index,
                    "name": row.name,
                    "bytes": row.bytes,
                    "entries": row.entries,
                    "snapshots": len(row.snapshots),
                    "sizes_synthetic": row.is_synthetic,
                    "sizes_unseen": row.unseen,
                    "sectors_needed": dict(zip(STATES, row.histogram, strict=True)),
                    "target": row.target.name,
                    "buddy_access_fraction": float(self.overflow_fraction(row)),
                    "worst_buddy_access_fraction": float(self.overflow_fraction(row, "worst")),
                }
                for row in self.rows
            ],
        }


def profile(
    trace: Trace | str | PathLike[str],
    threshold: float = ProfileOptions.threshold,
    aggregate: str = ProfileOptions.aggregate,
    policy: str = ProfileOptions.policy,
    *,
    compressor: str = ProfileOptions.compressor,
    seed: int = ProfileOptions.seed,
    size_distribution: str = ProfileOptions.size_distribution,
    zero_fraction: float = ProfileOptions.zero_fraction,
    eight_byte_class: bool = ProfileOptions.eight_byte_class,
    profile_until_launch: int | None = ProfileOptions.profile_until_launch,
    partial: bool = False,
) -> Profile:
    """Choose target ratios of a trace or of a trace file; `partial` accepts a file whose end is missing.

    The other parameters and the errors are those of `ProfileOptions` and `profile_with`.
    """
    options = ProfileOptions(
        threshold,
        aggregate,
        policy,
        compressor,
        seed,
        size_distribution,
        zero_fraction,
        eight_byte_class,
        profile_until_launch,
    )
    if isinstance(trace, Trace):
        require_complete(trace, partial)
        return profile_with(trace, options)
    with open_trace(trace) as opened:
        require_complete(opened, partial)
        return profile_with(opened, options)


def profile_with(trace: Trace, options: ProfileOptions, observed: Sequence[AllocationProfile] | None = None) -> Profile:
    """Choose target ratios.

    Parameters
    ----------
    trace : with snapshots; allocations without data values get sizes from a distribution
    options : the options of the choice
    observed : result of `observe` for the trace and these options, with any seed; None: `observe` is called

    Returns
    -------
    Profile, whose ``targets`` are the trace's

    Raises
    ------
    BuddysimError
        no snapshot is as early as `ProfileOptions.profile_until_launch`; the distribution is of another compressor
    """
    seen = observe(trace, options) if observed is None else observed
    rows = _with_targets(trace.allocations, _with_synthetic_counts(seen, options), options)
    host = [a.name for a in trace.allocations if a.space == "host"]
    targets = Targets(trace, {row.index: row.target for row in rows}, _source(trace, rows, options))
    return Profile(rows, host, targets, options)


def profile_under(trace: Trace, targets: Targets, options: ProfileOptions) -> Profile:
    """Return ratio and overflow of a trace's entries under targets that were chosen elsewhere.

    Parameters
    ----------
    targets : target ratios of the trace's allocations
    options : source of the sizes, and the stored size classes
    """
    rows = [
        _with_target(row, targets.of(row.index)) for row in _with_synthetic_counts(observe(trace, options), options)
    ]
    return Profile(rows, [a.name for a in trace.allocations if a.space == "host"], targets, options)


def _ratio(allocations: Sequence[Allocation], rows: Sequence[AllocationProfile]) -> float:
    sizes = [(row.entries * ENTRY_BYTES, row.entries * row.target.device_bytes_per_entry) for row in rows]
    live = [allocations[row.index] for row in rows]
    _, sums = sums_over_time(live, np.array(sizes, dtype=np.int64).reshape(-1, 2))
    allocated, device = map(int, sums.max(axis=0))
    return allocated / device if device else 1.0


def _with_targets(
    allocations: Sequence[Allocation], seen: Sequence[AllocationProfile], options: ProfileOptions
) -> list[AllocationProfile]:
    """Return the rows with the targets that the options choose."""
    limit = exact_fraction("threshold", options.threshold)
    known: dict[bytes, Target] = {}  # by counts: small allocations often have the same

    def per_allocation(row: AllocationProfile) -> Target:
        counts = row.counts.tobytes()
        if counts not in known:
            overflow = {
                t: row.overflow_fraction(t, options.aggregate, options.eight_byte_class) for t in ALL_TARGETS[:4]
            }
            known[counts] = [t for t, fraction in overflow.items() if fraction <= limit][-1]  # nothing overflows 1x
        return known[counts]

    targets = [_naive(seen)] * len(seen) if options.policy == "naive" else [per_allocation(row) for row in seen]
    rows = [_with_target(row, target) for row, target in zip(seen, targets, strict=True)]
    if options.policy == "final":
        rows = _with_mostly_zero(allocations, rows, options)
    return rows


def _source(trace: Trace, rows: Sequence[AllocationProfile], options: ProfileOptions) -> dict[str, Any]:
    """Return how targets were chosen, for the provenance of results."""
    used = {snapshot for row in rows for snapshot in row.snapshots}
    return {
        "kind": "profile",
        "trace": file_name(trace.path),
        "trace_checksum": trace.fingerprint,
        "partial": trace.interrupted,
        "snapshot_points": sorted(trace.snapshots[snapshot].launch_index for snapshot in used),
        "options": asdict(options),
    }


def _is_seen(point: int, options: ProfileOptions) -> bool:
    return options.profile_until_launch is None or point <= options.profile_until_launch


def observe(trace: Trace, options: ProfileOptions) -> list[AllocationProfile]:
    """Return the captured sizes of a trace's allocations, without targets and without synthetic sizes.

    It is the same for every seed; parameters and errors are those of `profile_with`.
    """
    values, distribution = EntryValues(trace, options.compressor), Distribution.load(options.size_distribution)
    rows = []
    points = {s: trace.snapshots[s].launch_index for s in values.snapshots}
    if points and not any(_is_seen(point, options) for point in points.values()):
        raise BuddysimError(
            f"{trace.path}: profile_until_launch {options.profile_until_launch}: no snapshot was taken by then: the "
            f"first one after launch {min(points.values())}"
        )
    for a in trace.allocations:
        if a.space == "host" or not a.bytes:
            continue
        over_the_run = values.over_the_run(a.index)
        snapshots = [s for s in over_the_run if _is_seen(points[s], options)]
        counted = [(s, values.counts(s, a.index)) for s in snapshots]
        counted = [(s, row) for s, row in counted if row.sum()]
        unseen = not counted and len(snapshots) < len(over_the_run)
        if counted:
            counts = np.array([row for _, row in counted], dtype=np.int64)
        elif unseen:
            counts = np.array([[*[0] * (N_CLASSES - 1), a.entries]], dtype=np.int64)
        else:
            distribution.check_algorithm(options.compressor, f"{trace.path}: allocation {a.name}")
            counts = _UNSAMPLED_COUNTS
        used = tuple(s for s, _ in counted)
        rows.append(AllocationProfile(a.index, a.name, a.bytes, a.entries, used, counts, unseen=unseen))
    return rows


def _with_synthetic_counts(rows: Sequence[AllocationProfile], options: ProfileOptions) -> list[AllocationProfile]:
    """Return the rows; those without data values have counts of synthetic sizes."""
    distribution, left = Distribution.load(options.size_distribution), COUNTED_ENTRIES
    counted_rows = list(rows)
    counted: list[int] = []
    for number, row in enumerate(rows):
        if row.is_synthetic and row.entries <= left:
            left -= row.entries
            counted.append(number)
        elif row.is_synthetic:
            counted_rows[number] = _with(
                row, distribution.expected_counts(options.seed, row.index, row.entries)[np.newaxis]
            )
    sampled = distribution.counts_of_each(
        options.seed, [(rows[number].index, rows[number].entries) for number in counted]
    )
    for number, counts in zip(counted, sampled[:, np.newaxis], strict=True):
        counted_rows[number] = _with(rows[number], counts)
    return counted_rows


def _naive(rows: Sequence[AllocationProfile]) -> Target:
    """Return the largest ratio up to 4x that free placement reaches, sizes averaged over snapshots and entries."""
    entries = sum(row.entries for row in rows)
    stored = sum((row.entries * row.mean_entry_bytes for row in rows), Fraction(0))
    reached = [t for t in ALL_TARGETS[:4] if stored <= t.device_bytes_per_entry * entries]
    return reached[-1]


def _with_mostly_zero(
    allocations: Sequence[Allocation], rows: Sequence[AllocationProfile], options: ProfileOptions
) -> list[AllocationProfile]:
    """Give 16x to mostly-zero allocations; the largest return to 4x where live allocations exceed the buddy pool."""
    sixteen, four = TARGET["16x"], TARGET["4x"]
    max_overflow = 1 - exact_fraction("zero_fraction", options.zero_fraction)
    known: dict[bytes, bool] = {}

    def is_mostly_zero(row: AllocationProfile) -> bool:
        counts = row.counts.tobytes()
        if counts not in known:
            known[counts] = row.overflow_fraction(sixteen, "worst", options.eight_byte_class) <= max_overflow
        return known[counts]

    result = [_with_target(row, sixteen) if is_mostly_zero(row) else row for row in rows]

    def over(row: AllocationProfile) -> int:
        return row.entries * (ENTRY_BYTES - LARGEST_RATIO * row.target.device_bytes_per_entry)

    excess = [over(row) for row in result]
    back = [
        was - over(_with_target(row, four)) if row.target is sixteen else 0
        for row, was in zip(result, excess, strict=True)
    ]
    live = [allocations[row.index] for row in rows]
    for i in largest_first_until_none_over(live, excess, back, [row.entries for row in rows]):
        result[i] = _with_target(result[i], four)
    return result


def _with_target(row: AllocationProfile, target: Target) -> AllocationProfile:
    return row if row.target is target else _with(row, row.counts, target)


def _with(row: AllocationProfile, counts: NDArray[np.int64], target: Target | None = None) -> AllocationProfile:
    """Return the row with another target; `dataclasses.replace` would double the time of a small allocation."""
    return AllocationProfile(
        row.index, row.name, row.bytes, row.entries, row.snapshots, counts, target or row.target, row.unseen
    )


@lru_cache(_CACHED_COUNTS)
def _overflow(counts: bytes, target: Target, aggregate: str, eight_byte_class: bool) -> Fraction:
    """Return the target for these counts; cached, since small allocations often have equal counts."""
    fitting = [_fits(number, target, eight_byte_class) for number in range(N_CLASSES)]
    fractions = []
    for row in np.frombuffer(counts, dtype=np.int64).reshape(-1, N_CLASSES).tolist():
        total = sum(row)
        fractions.append(Fraction(total - sum(count for count, fits in zip(row, fitting, strict=True) if fits), total))
    return max(fractions) if aggregate == "worst" else _mean(fractions)


def _fits(size_class: int, target: Target, eight_byte_class: bool) -> bool:
    """Return whether an entry of a size class fits the device sectors of a target."""
    if target.device_sectors == 0:
        return STUDY_CLASSES[size_class] <= (target.device_bytes_per_entry if eight_byte_class else 0)
    return STUDY_CLASSES[size_class] <= target.device_bytes_per_entry


def _mean(fractions: Sequence[Fraction]) -> Fraction:
    return sum(fractions, Fraction(0)) / len(fractions)
