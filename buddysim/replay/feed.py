"""Reads a kernel's chunks ahead of the engine: decodes them and turns addresses into entry numbers, in a thread."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from buddysim.errors import TraceFileError
from buddysim.replay.translate import translate_lines
from buddysim.trace import Chunk, Kernel, Trace

READ_AHEAD = 2


class ChunkFeed:
    """The chunks of one kernel, in order.

    Parameters
    ----------
    trace, kernel : what to read
    table : live allocations (`Layout.live_table`)
    pool : where to decode
    """

    def __init__(self, trace: Trace, kernel: Kernel, table: NDArray[np.int64], pool: ThreadPoolExecutor) -> None:
        self.trace, self.kernel, self.table, self.pool = trace, kernel, table, pool
        self.refs = iter(enumerate(kernel.chunks))
        self.ahead: deque[Future[Chunk]] = deque()
        self.most_warps = -(-kernel.block[0] * kernel.block[1] * kernel.block[2] // 32)
        for _ in range(READ_AHEAD):
            self._read_ahead()

    def _read_ahead(self) -> None:
        for number, ref in self.refs:
            self.ahead.append(self.pool.submit(self._decode, number, ref))
            return

    def _decode(self, number: int, ref: object) -> Chunk:
        chunk = self.trace.decode_chunk(ref)  # type: ignore[arg-type]
        where = f"chunk {number} of kernel {self.kernel.index} ({self.kernel.name})"
        offset = int(ref.offset)  # type: ignore[attr-defined]
        if len(chunk.blocks) and int(chunk.blocks["n_warps"].max()) > self.most_warps:
            raise TraceFileError(
                self.trace.path, where, offset, f"a thread block of {int(chunk.blocks['n_warps'].max())} warps: "
                f"expected at most {self.most_warps} in blocks of {self.kernel.block} threads",
            )
        outside = translate_lines(chunk.lines, self.table)
        if outside >= 0:
            address = int(chunk.lines[outside]) >> 8 << 7
            raise TraceFileError(
                self.trace.path, where, offset,
                f"line {outside} is at address 0x{address:x}: expected one inside a live allocation",
            )
        return chunk

    def next_chunk(self) -> Chunk | None:
        """The next chunk, or None after the last."""
        if not self.ahead:
            return None
        future = self.ahead.popleft()
        self._read_ahead()
        return future.result()
