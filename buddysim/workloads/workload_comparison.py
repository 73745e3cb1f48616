"""A workload's size classes compared with those of the unmodified program that it stands for.

``reference/`` has the fraction of every size class in complete programs, from all entries. It has every allocation
of at least 1 % of a program, at the first, the middle and the last of ten snapshots of its run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import csv_tables, parse_json
from buddysim.compress import DEFAULT, ENTRY_BYTES, STUDY_CLASSES
from buddysim.trace import Trace, open_trace
from buddysim.workloads.workload_registry import REGISTRY

MAX_POINTS: Final = 2.0
"""Largest difference of a share, in points of a hundred, at which an allocation counts as alike."""
MAX_RATIO: Final = 0.05
"""The same of the ratio of all compared allocations, relative."""

#: Indices of the reference's snapshots among the ten of a run.
POINTS: Final = {"first": 0, "middle": 5, "last": 9}

_FOLDER: Final = Path(__file__).parent / "reference"
_SIZES: Final = np.array(STUDY_CLASSES, np.float64)


Names = str | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AllocationComparison:
    """An allocation at a point of the run.

    Attributes
    ----------
    bytes : size of the allocation in the reference and in the workload
    reference_fractions, workload_fractions : fraction of entries of each size class
    """

    name: str
    when: str
    bytes: tuple[int, int]
    reference_fractions: NDArray[np.float64]
    workload_fractions: NDArray[np.float64]

    @property
    def ratios(self) -> tuple[float, float]:
        """Compression ratios of the reference and of the workload."""
        return _ratio_of(self.reference_fractions), _ratio_of(self.workload_fractions)

    @property
    def points(self) -> float:
        """The largest difference of a size class's fraction, in percentage points."""
        return float(np.abs(self.reference_fractions - self.workload_fractions).max() * 100)

    @property
    def alike(self) -> bool:
        return self.points <= MAX_POINTS


@dataclass(frozen=True)
class WorkloadComparison:
    """A workload compared with its reference program.

    Attributes
    ----------
    key : of the reference
    program : description of the reference, with its input
    """

    workload: str
    key: str
    program: str
    rows: tuple[AllocationComparison, ...]

    def ratios(self, when: str) -> tuple[float, float]:
        """Compression ratios of all compared allocations together: of the reference and of the workload."""
        rows = [row for row in self.rows if row.when == when]
        ratios = []
        for side in range(2):
            stored = sum(row.bytes[side] / row.ratios[side] for row in rows)
            ratios.append(sum(row.bytes[side] for row in rows) / stored)
        return ratios[0], ratios[1]

    def alike(self, when: str) -> bool:
        """Whether the ratio is within `MOST_RATIO`."""
        reference, workload = self.ratios(when)
        return abs(workload / reference - 1) <= MAX_RATIO


def compare(path: str | os.PathLike[str]) -> WorkloadComparison:
    """Compare a workload's trace, made at the scale ``reference``.

    Raises
    ------
    BuddysimError
            a file that is not such a trace
    """
    with open_trace(path) as trace:
        name, key = _what(trace, path)
        workload = REGISTRY.find(name)
        names: Mapping[str, Names] = getattr(workload, "REFERENCE_ARRAYS", {})
        index = {allocation.name: number for number, allocation in enumerate(trace.allocations)}
        counts = class_counts(trace)
        rows = []
        for entry in allocations(key):
            mine = names_in_workload(names, entry)
            if not set(mine) <= index.keys():
                continue
            point = counts[POINTS[entry["when"]]]
            at = np.sum([point[index[one]] for one in mine], axis=0)
            size = int(entry["bytes_each"]) * int(entry["count_merged"])
            reference_fractions = np.array([float(entry[f"share_{size_class}"]) for size_class in STUDY_CLASSES])
            sizes = size, sum(trace.allocations[index[one]].bytes for one in mine)
            rows.append(
                AllocationComparison(entry["allocation"], entry["when"], sizes, reference_fractions, at / at.sum())
            )
    program = next(f"{row['program']}, {row['input']}" for row in summary() if row["key"] == key)
    return WorkloadComparison(name, key, program, tuple(rows))


def names_in_workload(names: Mapping[str, Names], entry: Mapping[str, str]) -> tuple[str, ...]:
    """Return the workload's arrays that correspond to an allocation of the reference.

    Parameters
    ----------
    names : ``REFERENCE_ARRAYS`` of a workload: by the allocation's name, or its name and bytes
    entry : a row of `allocations`
    """
    name = entry["allocation"]
    arrays = names.get(f"{name} {entry['bytes_each']}", names.get(name, name))
    return (arrays,) if isinstance(arrays, str) else arrays


def _what(trace: Trace, path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the workload of a trace, and the key of its reference."""
    name, scale, which, _ = origin(trace, path)
    if scale != "reference":
        raise BuddysimError(f"{os.fspath(path)}: {name} at {scale}: expected a trace made with --scale reference")
    return name, str(REGISTRY.find(name).REFERENCE[which])


def origin(trace: Trace, path: str | os.PathLike[str]) -> tuple[str, str, str, dict[str, Any]]:
    """Return name, scale, input and problem of a workload's trace.

    Raises
    ------
    BuddysimError
            a trace of something else
    """
    from buddysim.workloads.make_workload import TOOL

    if trace.provenance.tool != TOOL:
        raise BuddysimError(f"{os.fspath(path)}: not the trace of a workload: expected one by 'workloads make'")
    name, scale, which, problem = trace.provenance.source.split(" ", 3)
    return name, scale, which, parse_json(problem, os.fspath(path))


def class_counts(trace: Trace) -> list[dict[int, NDArray[np.int64]]]:
    """Return the entries of each size class, by allocation, for each snapshot over the run."""
    over_run = [snapshot.index for snapshot in trace.snapshots if _of_run(trace, snapshot.index)]
    counts_of: dict[int, dict[int, NDArray[np.int64]]] = {index: {} for index in over_run}
    for sizes in trace.size_maps:
        if sizes.snapshot in counts_of and sizes.compressor == DEFAULT:
            total = np.zeros(len(STUDY_CLASSES), np.int64)
            for _, classes in sizes.blocks():
                total += np.bincount(classes, minlength=len(STUDY_CLASSES))[: len(STUDY_CLASSES)]
            counts_of[sizes.snapshot][sizes.allocation] = total
    return [counts_of[index] for index in over_run]


def _of_run(trace: Trace, index: int) -> bool:
    return not trace.snapshots[index].for_replay


def ratio(counts: Mapping[int, NDArray[np.int64]]) -> float:
    """Return the compression ratio: bytes of all entries over bytes of their size classes."""
    total = np.sum(list(counts.values()), axis=0)
    return float(total.sum() * ENTRY_BYTES / (total @ _SIZES))


def _ratio_of(fractions: NDArray[np.float64]) -> float:
    stored = float(fractions @ _SIZES)
    return ENTRY_BYTES / stored if stored else float("inf")


@cache
def summary() -> Sequence[dict[str, str]]:
    """Return the rows of whole programs: ratio and fractions at ten snapshots of each run."""
    return _read("real_programs_summary.csv")


@cache
def _all_allocations() -> Sequence[dict[str, str]]:
    return _read("real_programs_allocations.csv")


def allocations(key: str) -> Sequence[dict[str, str]]:
    """Return the rows of a program's allocations at three snapshots of its run."""
    return [row for row in _all_allocations() if row["key"] == key]


def _read(name: str) -> list[dict[str, str]]:
    return list(csv_tables((_FOLDER / name).read_text(encoding="utf-8"), name))
