"""`staggered`: all banks of a pseudo-channel refresh together, one pseudo-channel after the other, spread over tREFI."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport Bank, Dram, refresh_interval_start
from buddysim.replay.dram.refresh.base cimport RefreshBase
from buddysim.replay.primitives.arena cimport Arena

ORDER = 2


cdef int64_t refresh_began(Dram* dram, const Bank* bank, int64_t t) noexcept nogil:
    """Start of the last refresh of the bank's pseudo-channel; every one was refreshed before time 0, too."""
    cdef int64_t after = dram.pseudo[(bank - dram.banks) >> dram.bank_bits].bus.refresh_offset_ps - dram.timing.refi
    return refresh_interval_start(dram, t - after) + after


cdef class Refresh(RefreshBase):
    SUMMARY = "one pseudo-channel after the other refreshes, for tRFC"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        dram.refresh_began, dram.staggers_refreshes = refresh_began, True
        return 0
