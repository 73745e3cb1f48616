"""A kernel's chunks as the engine takes them: decoded, addresses turned into entry numbers.

One at a time, when the engine asks: a thread that decoded ahead cost the engine as much as it took off it (records came
from another core's cache).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from buddysim.errors import TraceFileError
from buddysim.replay.translate import translate_lines
from buddysim.trace import Chunk, ChunkRef, Kernel, Trace


class ChunkFeed:
    """The chunks of one kernel, in order.

    Parameters
    ----------
    trace, kernel : what to read
    table : live allocations (`Layout.live_table`)
    """

    def __init__(self, trace: Trace, kernel: Kernel, table: NDArray[np.int64]) -> None:
        self.trace, self.kernel, self.table = trace, kernel, table
        self.refs = iter(enumerate(kernel.chunks))
        self.most_warps = -(-kernel.block[0] * kernel.block[1] * kernel.block[2] // 32)

    def next_chunk(self) -> Chunk | None:
        """The next chunk, or None after the last."""
        for number, ref in self.refs:
            return self._decode(number, ref)
        return None

    def _decode(self, number: int, ref: ChunkRef) -> Chunk:
        chunk = self.trace.decode_chunk(ref)
        where = f"chunk {number} of kernel {self.kernel.index} ({self.kernel.name})"
        if len(chunk.blocks) and int(chunk.blocks["n_warps"].max()) > self.most_warps:
            raise TraceFileError(
                self.trace.path, where, ref.offset, f"a thread block of {int(chunk.blocks['n_warps'].max())} warps: "
                f"expected at most {self.most_warps} in blocks of {self.kernel.block} threads",
            )
        outside = translate_lines(chunk.lines, self.table)
        if outside >= 0:
            address = int(chunk.lines[outside]) >> 8 << 7
            raise TraceFileError(
                self.trace.path, where, ref.offset,
                f"line {outside} is at address 0x{address:x}: expected one inside a live allocation",
            )
        return chunk
