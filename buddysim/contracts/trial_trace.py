"""A small trace with data values, on which analyses and figures of traces are tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from buddysim.contracts.sample_data import entries
from buddysim.synthetic.parts.kernels import line_records, load, store, write_kernel
from buddysim.trace import Provenance, TraceWriter
from buddysim.trace.format import REPLAY_LABEL

_BASE = 0x7F00_0000_0000
_PAGE_BYTES = 2 * 2**20
_ENTRIES = 512
_KERNELS = 3


def trial_trace(path: Path, with_contents: bool = True) -> Path:
    """Write two allocations, kernels that read one and write the other, and snapshots: of the run, and for replay."""
    data, bases = entries()[: 128 * _ENTRIES], {"input": _BASE, "output": _BASE + _PAGE_BYTES}
    assumptions = {"contents": "patterns", "compute_gaps": "none"}
    with TraceWriter(path, Provenance("trial", "1", "made for a trial", "CC0", "", assumptions)) as writer:
        numbers = [writer.add_allocation(name, base, 128 * _ENTRIES) for name, base in bases.items()]
        for launch in range(_KERNELS + 1):
            if with_contents:
                snapshot = writer.add_snapshot(launch, f"{REPLAY_LABEL} {launch}" if launch % 2 else "")
                writer.add_contents(snapshot, numbers[0], data)
                writer.add_contents(snapshot, numbers[1], np.roll(data, 128 * 100 * launch) * (launch > 0))
            if launch < _KERNELS:
                _write_kernel(writer, bases, launch)
    return path


def _write_kernel(writer: TraceWriter, bases: dict[str, int], launch: int) -> None:
    warp, step = (np.arange(4, dtype=np.uint64).reshape(shape) for shape in ((1, -1, 1, 1), (1, 1, -1, 1)))

    def lines_of(block: NDArray[np.uint64]) -> NDArray[np.uint64]:
        line = (block * np.uint64(4) + warp) * np.uint64(4) + step
        read, written = (line_records(base, line) for base in bases.values())
        return np.concatenate([read, written], axis=-1)

    write_kernel(
        writer,
        f"copy{launch}",
        blocks=_ENTRIES // 16,
        warps_per_block=4,
        operations=[load(), store()],
        repeats=4,
        lines_of=lines_of,
    )
