"""Captures name kernels whose work-groups PoCL allows and no GPU supports."""

from __future__ import annotations

from buddysim.capture.opencl.trace_recorder import TraceCounts


def test_too_wide_group_is_named() -> None:
    counts = TraceCounts()
    counts.note_group("narrow", 1024)
    assert counts.too_wide is None
    counts.note_group("wide", 4096)
    counts.note_group("narrow", 256)
    assert "kernel wide has work-groups of 4,096 work-items" in str(counts.too_wide)
    assert "--report-as-gpu" in str(counts.too_wide)
