"""Compressor and decompressor of an L2 slice: one port, one latency."""
from libc.stdint cimport int64_t

from buddysim.replay.memory.memory cimport MemorySystem, Slice
from buddysim.replay.primitives.kinds cimport COMPRESSOR
from buddysim.replay.primitives.waits cimport port_transfer_counted

cdef struct CompressorTiming:
    int64_t latency_ps
    int64_t cost        # one entry through it, in port units


cdef inline int64_t compressor_done(MemorySystem* m, const CompressorTiming* compressor, Slice* slice, int64_t t) noexcept nogil:
    """Time at which an entry that reaches a slice's compressor or decompressor at `t` leaves it."""
    m.last_compressor_ps = t
    return port_transfer_counted(&m.waits, COMPRESSOR, &slice.compressor, t, compressor.cost) + compressor.latency_ps
