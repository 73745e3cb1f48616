"""Comparison of workloads with unmodified programs, and its table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.compress import STUDY_CLASSES
from buddysim.trace import Provenance, TraceWriter
from buddysim.workloads.make_workload import TOOL
from buddysim.workloads.workload_comparison import (
    AllocationComparison,
    WorkloadComparison,
    allocations,
    compare,
    summary,
)
from buddysim.workloads.workload_comparison import names_in_workload as array_names
from buddysim.workloads.workload_registry import REGISTRY, solver_of
from buddysim.workloads.workload_table import table
from tests.capture.opencl.running import needs_opencl


def fractions(**of: float) -> np.ndarray:
    return np.array([of.get(f"of_{size}", 0.0) for size in STUDY_CLASSES])


def row(workload: np.ndarray, reference: np.ndarray, size: int = 1280) -> AllocationComparison:
    return AllocationComparison("a", "first", (size, size), reference, workload)


def test_rows_are_alike_within_two_points() -> None:
    reference = fractions(of_0=0.5, of_128=0.5)
    assert row(fractions(of_0=0.519, of_128=0.481), reference).alike
    other = row(fractions(of_0=0.53, of_128=0.47), reference)
    assert not other.alike
    assert other.points == pytest.approx(3.0)
    assert other.ratios == pytest.approx((2.0, 1 / 0.47))


def test_the_ratio_weighs_allocations_by_their_bytes() -> None:
    whole, halved = fractions(of_128=1.0), fractions(of_64=1.0)
    comparison = WorkloadComparison("x", "k", "p", (row(whole, whole, 300), row(halved, whole, 100)))
    assert comparison.ratios("first") == pytest.approx((1.0, 400 / 350))
    assert not comparison.alike("first")


def test_every_reference_is_in_the_tables_and_its_arrays_exist() -> None:
    for name, workload in REGISTRY.items():
        for which, key in getattr(workload, "REFERENCE", {}).items():
            assert any(entry["key"] == key for entry in summary())
            arrays = solver_of(name, "reference", which).arrays
            names = getattr(workload, "REFERENCE_ARRAYS", {})
            both = [entry for entry in allocations(key) if set(array_names(names, entry)) <= set(arrays)]
            assert len(both) >= 2


def written(path: Path, scale: str, tool: str = TOOL) -> Path:
    """Write a trace of one array that has CG's name."""
    with TraceWriter(path, Provenance(tool, source=f"cg {scale} profile {{}}")) as writer:
        writer.add_allocation("a", 1 << 30, 1280)
        for point in range(10):
            snapshot = writer.add_snapshot(point, f"after {point} launches")
            writer.add_size_map(snapshot, 0, np.full(10, 7, np.uint8), "bpc")
    return path


def test_compares_a_trace_of_the_right_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "cg.bin", "reference")
    comparison = compare(path)
    assert [one.name for one in comparison.rows] == ["a"] * 3
    assert all(one.alike for one in comparison.rows)  # CG's values don't compress
    assert main(["workloads", "diff", str(path)]) == 0
    assert "3 of 3 rows" in capsys.readouterr().out
    assert "NPB-CPP CG" in table([path])


def test_refuses_other_files(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="expected a trace made with --scale reference"):
        compare(written(tmp_path / "small.bin", "small"))
    with pytest.raises(BuddysimError, match="not the trace of a workload"):
        compare(written(tmp_path / "other.bin", "reference", "another tool"))


@pytest.mark.slow
def test_cg_holds_what_npb_holds(tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    needs_opencl()
    path = tmp_path / "cg.bin"
    assert main(["workloads", "make", "cg", "--scale", "reference", "-o", str(path)]) == 0
    comparison = compare(path)
    assert all(one.alike for one in comparison.rows)
    assert all(comparison.alike(when) for when in ("first", "middle", "last"))
