"""The trace file: what a program did to memory, warp by warp, with the values that lay there."""

from __future__ import annotations

from buddysim.trace.data_values import Contents, SizeMap, Snapshot
from buddysim.trace.model import (
    Allocation,
    Chunk,
    ChunkRef,
    Event,
    KernelLaunch,
    Memcpy,
    Memset,
    Provenance,
)
from buddysim.trace.reader import Kernel, Trace, open_trace
from buddysim.trace.records import (
    ATOMIC_CONFLICTS_SHIFT,
    BANK_WORDS_SHIFT,
    BLOCK_DTYPE,
    FLAG_BYPASS_L1,
    FLAG_NO_RETURN,
    FLAG_TIMED,
    LINE_DTYPE,
    OP_ATOMIC,
    OP_BARRIER,
    OP_DTYPE,
    OP_LOAD,
    OP_STORE,
    WARP_DTYPE,
)
from buddysim.trace.verify import VerificationSummary, verify_trace
from buddysim.trace.writer import TraceWriter

__all__ = [
    "ATOMIC_CONFLICTS_SHIFT",
    "BANK_WORDS_SHIFT",
    "BLOCK_DTYPE",
    "FLAG_BYPASS_L1",
    "FLAG_NO_RETURN",
    "FLAG_TIMED",
    "LINE_DTYPE",
    "OP_ATOMIC",
    "OP_BARRIER",
    "OP_DTYPE",
    "OP_LOAD",
    "OP_STORE",
    "WARP_DTYPE",
    "Allocation",
    "Chunk",
    "ChunkRef",
    "Contents",
    "Event",
    "Kernel",
    "KernelLaunch",
    "Memcpy",
    "Memset",
    "Provenance",
    "SizeMap",
    "Snapshot",
    "Trace",
    "TraceWriter",
    "VerificationSummary",
    "open_trace",
    "verify_trace",
]
