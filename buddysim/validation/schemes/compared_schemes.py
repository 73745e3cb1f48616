"""Each published pair next to its simulation: slowdown and bytes saved, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from buddysim.training.result import TrainingResult
from buddysim.validation.schemes.measured_schemes import MeasuredScheme, scheme_rows
from buddysim.validation.schemes.scheme_settings import simulated_row

#: A measured slowdown above this is compared by its time in addition.
LARGE = 1.05
#: Measured times that differ by less have no order.
SAME = 0.02
_UNITS = {"GiB": float(1 << 30), "GB": 1e9}
#: What the source prints, as a counter; active bytes are allocated ones that no stream still reads. Where it doesn't
#: say, allocated bytes are compared.
_COUNTERS = {
    "active": "memory.peak_allocated_bytes",
    "allocated": "memory.peak_allocated_bytes",
    "reserved": "memory.peak_reserved_bytes",
    "not stated": "memory.peak_allocated_bytes",
}


@dataclass(frozen=True)
class ComparedScheme:
    """A pair.

    Attributes
    ----------
    slowdown, saved : simulated; `saved` in the unit of the row; None where nothing is simulated
    """

    row: MeasuredScheme
    slowdown: float | None = None
    saved: float | None = None

    @property
    def is_large(self) -> bool:
        """Whether the time in addition is compared, not the difference of the slowdowns."""
        return self.row.slowdown is not None and self.row.slowdown > LARGE and not self.row.is_bound

    @property
    def slowdown_error(self) -> float | None:
        """Relative, of the time in addition; of a small slowdown the difference; of a bound the excess."""
        measured = self.row.slowdown
        if self.slowdown is None or measured is None:
            return None
        if self.row.is_bound:
            return max(0.0, self.slowdown - measured)
        if self.is_large:
            return (self.slowdown - 1) / (measured - 1) - 1
        return self.slowdown - measured

    @property
    def saved_error(self) -> float | None:
        """Relative."""
        if self.saved is None or not self.row.saved:
            return None
        return self.saved / self.row.saved - 1


def compared_schemes(progress: Callable[[str], None]) -> Iterator[ComparedScheme]:
    """Yield every pair."""
    simulated = cache(lambda source_set, name: simulated_row(source_set, name).simulate())
    for row in scheme_rows():
        if row.reason:
            yield ComparedScheme(row)
            continue
        with_scheme = simulated(row.source_set, row.id)
        without = simulated(row.source_set, row.compared_with)
        slowdown = with_scheme.counters["time_ms"] / without.counters["time_ms"]
        progress(f"{row.id}: {slowdown:.3f}x")
        yield ComparedScheme(row, slowdown, _saved(row, with_scheme, without))


def _saved(row: MeasuredScheme, with_scheme: TrainingResult, without: TrainingResult) -> float:
    less, more = (result.counters[_COUNTERS[row.memory_kind]] for result in (with_scheme, without))
    return float(more - less) / (more if row.saved_unit == "fraction" else _UNITS[row.saved_unit])


def ordered_pairs(rows: Sequence[ComparedScheme]) -> Iterator[tuple[str, str, bool]]:
    """Yield pairs of variants of one training whose measured times differ: faster, slower, whether simulated so.

    Upper bounds are no times.
    """
    variants: dict[str, dict[str, tuple[float, float]]] = {}
    for one in rows:
        if one.slowdown is not None and one.row.slowdown is not None and not one.row.is_bound:
            own = variants.setdefault(one.row.compared_with, {one.row.compared_with: (1.0, 1.0)})
            own[one.row.id] = one.row.slowdown, one.slowdown
    for group in variants.values():
        by_time = sorted(group.items(), key=lambda item: item[1][0])
        for (faster, first), (slower, second) in combinations(by_time, 2):
            if second[0] - first[0] > SAME:
                yield faster, slower, first[1] < second[1]
