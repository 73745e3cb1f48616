"""Named distributions of entry sizes, for allocations of which a trace has no values.

A distribution gives the fraction of entries of each size. Sizes are clustered, as in real memory: every allocation has
one class, from which some pages and, in each page, some entries deviate (outliers). Only integers and a counter-based
hash are used: the same name, seed, allocation and entry give the same class on every computer, in every window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.buddy.entry_sizes import allocation_class, draw_classes
from buddysim.compress import DEFAULT, STUDY_CLASSES

#: The default distribution.
DEFAULT_DISTRIBUTION = "isca20-hpc"

_LARGEST_SEED = 2**64 - 1
_COUNTED_AT_ONCE = 2**20  # entries
_OUTLIER_SCALE = 65536


@dataclass(frozen=True)
class Distribution:
    """Entry sizes and how they cluster.

    Parameters
    ----------
    name : its name on the command line
    weights : for each size class (0, 8, 16, 32, 64, 80, 96, 128 B), in any common unit
    outlier_pages : of 65536 pages of 8 KB, those with a class of their own instead of their allocation's
    outlier_entries : of 65536 entries, those with a class of their own instead of their page's
    source : the source of the weights
    algorithm : the compressor whose sizes these are; None: assumed sizes, for any compressor
    """

    name: str
    weights: tuple[int, ...]
    outlier_pages: int
    outlier_entries: int
    source: str
    algorithm: str | None = None

    @classmethod
    def load(cls, name: str) -> Distribution:
        """Return a distribution by its name; ``uniform:BYTES`` gives every entry one size class."""
        if name.startswith("uniform:"):
            size = name.removeprefix("uniform:")
            if size not in map(str, STUDY_CLASSES):
                sizes = ", ".join(map(str, STUDY_CLASSES))
                raise BuddysimError(
                    f"distribution {shortened(name)}: {shortened(size)} is no size class, expected one of {sizes}"
                )
            return _uniform(name, int(size))
        for known in _NAMED:
            if known.name == name:
                return known
        names = cls.names()
        raise BuddysimError(
            f"distribution {shortened(name)}: unknown, expected one of {', '.join(names)}{hint(name, names)}"
        )

    @staticmethod
    def names() -> list[str]:
        """Return the names that `load` accepts; the last one, ``uniform:BYTES``, exists for every size class."""
        return [*(known.name for known in _NAMED), "uniform:BYTES"]

    def check_algorithm(self, algorithm: str, where: str) -> None:
        """Refuse a compressor whose sizes these are not; `where` names the allocation without data values."""
        if self.algorithm not in (None, algorithm):
            assumed = [known.name for known in _NAMED if known.algorithm is None]
            raise BuddysimError(
                f"{where}: the trace has neither sizes by {algorithm} nor contents, and the distribution {self.name} "
                f"has sizes by {self.algorithm}: expected one of {', '.join(assumed)}, uniform:BYTES"
            )

    @property
    def fractions(self) -> tuple[float, ...]:
        """Fraction of entries of each class, 0 to 1."""
        return tuple(weight / sum(self.weights) for weight in self.weights)

    @cached_property
    def _ends(self) -> NDArray[np.uint64]:
        total, below, ends = sum(self.weights), 0, []
        for weight in self.weights:
            below += weight
            ends.append((below << 32) // total)
        return np.array(ends, dtype=np.uint64)

    def write(self, out: NDArray[np.uint8], seed: int, allocation: int, first_entry: int = 0) -> None:
        """Write sampled class numbers of an allocation's entries, from `first_entry` on, into `out`."""
        draw_classes(out, self._ends, seed, allocation, first_entry, self.outlier_pages, self.outlier_entries)

    def counts(self, seed: int, allocation: int, entries: int) -> NDArray[np.int64]:
        """Return the entries of each class that `write` samples, counted one by one."""
        totals = np.zeros(len(self.weights), dtype=np.int64)
        for first in range(0, entries, _COUNTED_AT_ONCE):
            classes = np.empty(min(_COUNTED_AT_ONCE, entries - first), dtype=np.uint8)
            self.write(classes, seed, allocation, first)
            totals += np.bincount(classes, minlength=len(totals))
        return totals

    def counts_of_each(self, seed: int, allocations: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        """Return the `counts` of several allocations (index, entries): int64 (allocations, classes)."""
        totals = np.zeros((len(allocations), len(self.weights)), dtype=np.int64)
        first = 0
        while first < len(allocations):
            end, total = first, 0
            while end < len(allocations) and total + allocations[end][1] <= _COUNTED_AT_ONCE:
                total += allocations[end][1]
                end += 1
            if end == first:
                totals[first] = self.counts(seed, *allocations[first])
                first += 1
                continue
            classes, at = np.empty(total, dtype=np.uint8), 0
            for number, entries in allocations[first:end]:
                self.write(classes[at : at + entries], seed, number)
                at += entries
            owners = np.repeat(np.arange(end - first), [entries for _, entries in allocations[first:end]])
            counted = np.bincount(owners * len(self.weights) + classes, minlength=(end - first) * len(self.weights))
            totals[first:end] = counted.reshape(-1, len(self.weights))
            first = end
        return totals

    def expected_counts(self, seed: int, allocation: int, entries: int) -> NDArray[np.int64]:
        """Return the expected `counts` of an allocation with the class that it samples, as integers."""
        own_page, own_entry = self.outlier_pages / _OUTLIER_SCALE, self.outlier_entries / _OUTLIER_SCALE
        fractions = np.array(self.fractions) * (own_entry + (1 - own_entry) * own_page)
        fractions[allocation_class(self._ends, seed, allocation)] += (1 - own_entry) * (1 - own_page)
        ends = np.rint(np.cumsum(fractions) * entries).astype(np.int64)
        ends[-1] = entries
        return np.diff(ends, prepend=0)


def checked_seed(seed: int) -> int:
    """Return the seed, if it is valid."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _LARGEST_SEED:
        raise BuddysimError(f"seed {seed!r}: expected an integer from 0 to {_LARGEST_SEED}")
    return seed


def _uniform(name: str, size: int) -> Distribution:
    weights = tuple(int(size == known) for known in STUDY_CLASSES)
    return Distribution(name, weights, 0, 0, f"assumed: every entry takes {size} B")


_FIG_5B = (
    "Buddy Compression, ISCA 2020 version, Fig. 5b: fraction of 128 B entries per size over the {} programs, read from "
    "the figure (+-0.002). Assumed: one class per allocation, from which pages and entries deviate, as much as gives "
    "the profiler's final targets the buddy accesses of Fig. 7 there ({}) over many allocations: that a run agrees "
    "with Fig. 7 is no evidence"
)

_NAMED = (
    Distribution(
        "isca20-hpc",
        weights=(235, 36, 16, 75, 233, 31, 10, 364),
        outlier_pages=128,
        outlier_entries=64,
        source=_FIG_5B.format("HPC", "0.11 %"),
        algorithm=DEFAULT,
    ),
    Distribution(
        "isca20-dl",
        weights=(197, 33, 68, 85, 99, 34, 54, 428),
        outlier_pages=4096,
        outlier_entries=4096,
        source=_FIG_5B.format("DL", "4 %"),
        algorithm=DEFAULT,
    ),
    _uniform("all-zero", 0),
    _uniform("incompressible", 128),
)
