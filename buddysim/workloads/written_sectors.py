"""Memory that the traced launches of a file touch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.compress import ENTRY_BYTES
from buddysim.trace import Trace

_SECTOR_BYTES = 32
_SECTORS = ENTRY_BYTES // _SECTOR_BYTES


def touched_bytes(trace: Trace) -> int:
    """Return the number of distinct bytes that the kernels of a trace read or write, in whole sectors of 32 B."""
    bases = np.array([one.base for one in trace.allocations], np.uint64)
    order = np.argsort(bases)
    firsts = (bases[order] // ENTRY_BYTES).astype(np.int64)
    entries = np.array([-(-trace.allocations[index].bytes // ENTRY_BYTES) + 1 for index in order], np.int64)
    offsets = np.r_[0, np.cumsum(entries)]
    touched: NDArray[np.bool_] = np.zeros((int(offsets[-1]), _SECTORS), np.bool_)
    for kernel in trace.kernels:
        for reference in kernel.chunks:
            lines = np.asarray(trace.decode_chunk(reference).lines).astype(np.uint64)
            number = (lines >> np.uint64(8)).astype(np.int64)
            owner = np.searchsorted(firsts, number, side="right") - 1
            index = offsets[owner] + number - firsts[owner]
            for sector in range(_SECTORS):
                touched[index[(lines >> np.uint64(sector) & np.uint64(1)) != 0], sector] = True
    return int(touched.sum()) * _SECTOR_BYTES
