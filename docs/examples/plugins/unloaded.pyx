"""`unloaded`: each read has the latency of a closed bank and waits for no other; an upper bound."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport DeviceLocation, Dram, DramOps
from buddysim.replay.dram.model.base cimport DramModelBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed


cdef int64_t idle_ps(const Dram* dram, int bursts) noexcept nogil:
    return dram.before_ps + dram.timing.rcd + dram.timing.cl + bursts * dram.burst_ps + dram.after_ps


cdef int64_t read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    return t + idle_ps(dram, bursts)


cdef int64_t write(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    return t


cdef class DramModel(DramModelBase):
    SUMMARY = "latency alone"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        cdef DramOps* ops = <DramOps*>arena_zeroed(arena, 1, sizeof(DramOps))
        ops.read, ops.read_dry_run, ops.write, ops.idle_ps = read, read, write, idle_ps
        dram.model = ops
        return 0
