"""A kernel's chunks, decoded one at a time when the engine asks.

Decoding ahead in another thread gains at most 5 % where a core is idle, and loses where none is
(docs/developers/performance.md).
"""

from __future__ import annotations

from buddysim.base.errors import TraceFileError
from buddysim.trace import Chunk, ChunkRef, Kernel, Trace


class ChunkReader:
    """The chunks of one kernel, in order.

    Parameters
    ----------
    trace, kernel : the trace and one of its kernels
    """

    def __init__(self, trace: Trace, kernel: Kernel) -> None:
        self.trace, self.kernel = trace, kernel
        self.refs = iter(enumerate(kernel.chunks))
        self.at: tuple[int, ChunkRef] | None = None
        self.max_warps = -(-kernel.block[0] * kernel.block[1] * kernel.block[2] // 32)

    def next_chunk(self) -> Chunk | None:
        """Return the next chunk; None after the last."""
        self.at = next(self.refs, None)
        if self.at is None:
            return None
        chunk = self.trace.decode_chunk(self.at[1])
        n_warps = int(chunk.blocks["n_warps"].max()) if len(chunk.blocks) else 0
        if n_warps > self.max_warps:
            raise self._error(
                f"a thread block of {n_warps} warps: expected at most {self.max_warps} in blocks of "
                f"{self.kernel.block} threads"
            )
        return chunk

    def outside(self, line: int, index: int) -> TraceFileError:
        """Return the error for a line of the current chunk that is in no allocation."""
        return self._error(f"line {index} is at address 0x{line >> 8 << 7:x}: expected one inside a live allocation")

    def _error(self, problem: str) -> TraceFileError:
        assert self.at is not None
        number, ref = self.at
        where = f"chunk {number} of kernel {self.kernel.index} ({self.kernel.name})"
        return TraceFileError(self.trace.path, where, ref.offset, problem)
