"""The comparison with Accel-Sim: errors are within bounds, and counts are equal."""

from __future__ import annotations

import pytest

from tests.tools.test_tools import load


@pytest.fixture(scope="module")
def tool():
    return load("validate_accelsim")


@pytest.fixture(scope="module")
def validation(tool):
    return tool.validate()


def test_cycles_are_within_the_bounds(validation):
    assert len(validation.bounded) == 8
    assert abs(validation.sum_error) <= 0.15
    assert abs(validation.worst.error) <= 0.40


def test_imported_counts_and_read_traffic_are_equal(validation):
    bfs, vectoradd = validation.programs
    for program in validation.programs:
        assert all(simulated == reference for simulated, reference in program.imported.values())
    for name in ("device_read", "l2_read", "l2_write"):
        assert len(set(vectoradd.traffic[name])) == 1, name
    simulated, reference = bfs.traffic["device_read"]
    assert simulated == pytest.approx(reference, abs=2)
    simulated, reference = vectoradd.traffic["device_write"]
    assert simulated == pytest.approx(reference, rel=0.15)


def test_the_page_has_every_kernel(tool, validation):
    text = "\n".join(tool.lines(validation))
    assert all(f"{one.simulated:,} | {one.reference:,}" in text for one in validation.bounded)
