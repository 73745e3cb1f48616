"""The points of a sweep that replay a trace."""

from __future__ import annotations

from pathlib import Path

from buddysim.sweep.engines import replay
from buddysim.synthetic import make_trace


def test_a_larger_footprint_needs_more_memory(tmp_path: Path) -> None:
    """The engine keeps some bytes for each memory-entry of 128 B."""
    needed = []
    for footprint in ("256 KiB", "8 MiB"):
        path = tmp_path / footprint.replace(" ", "")
        make_trace("stream", path, {"footprint": footprint, "op": "copy"})
        needed.append(replay.memory_bytes({"trace": str(path)}))
    entries = (8 * 2**20 - 256 * 2**10) // 128
    assert entries <= needed[1] - needed[0] <= 16 * entries
