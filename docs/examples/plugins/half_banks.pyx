"""`half_banks`: banks of even numbers refresh together, those of odd numbers half an interval later."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport Bank, Dram, refresh_interval_start
from buddysim.replay.dram.refresh.base cimport RefreshBase
from buddysim.replay.primitives.arena cimport Arena


cdef int64_t refresh_began(Dram* dram, const Bank* bank, int64_t t) noexcept nogil:
    cdef int64_t before = ((bank - dram.banks) & 1) * (dram.timing.refi >> 1)
    return refresh_interval_start(dram, t + before) - before


cdef class Refresh(RefreshBase):
    SUMMARY = "half of the banks at a time, for tRFC"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        dram.refresh_began, dram.blocking_refresh_ps = refresh_began, 0
        return 0
