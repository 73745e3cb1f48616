"""Write small traces for tests of events between kernels and during other kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import buddysim.trace as bt
from tests.trace.builders import line, records

BASE = 1 << 33
Event = tuple[str, tuple[object, ...], dict[str, object]]


def provenance(**assumptions: str) -> bt.Provenance:
    """Return the provenance of the tests' traces."""
    return bt.Provenance("test", "1", "hand-written", "CC0", "", assumptions)


def load_block(addresses: Iterable[int], number: int = 0, gap: int = 0, sectors: int = 1):
    """Return a block of one warp that loads the first sector, or those of a mask, each dependent on the last."""
    fields = {
        "gap_instructions": gap,
        "use_distance": 1,
        "use_cycles": 1,
        "critical_path_cycles": gap + 1,
        "flags": bt.FLAG_TIMED,
    }
    return number, [({"warp": 0}, [(fields, [line(address, sectors)]) for address in addresses])]


def write_kernels(
    path: Path, kernels: Sequence[tuple[int, Sequence[int]]], size: int = 1 << 21, copies_after: Sequence[int] = ()
) -> Path:
    """Write a kernel of one warp for each (stream, addresses), and copies after the numbered kernels."""
    with bt.TraceWriter(path, provenance()) as writer:
        writer.add_allocation("data", BASE, size)
        for number, (stream, addresses) in enumerate(kernels):
            writer.begin_kernel(f"kernel{number}", (1, 1, 1), (32, 1, 1), stream=stream)
            writer.add_blocks(*records([load_block([BASE + address for address in addresses])]))
            writer.end_kernel()
            if number in copies_after:
                writer.memcpy("htod", BASE, 128)
    return path
