"""`single_bank`: one bank after the other refreshes (REFSB), spread evenly over tREFI; bus and activations stay free."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport Bank, Dram, refresh_interval_start
from buddysim.replay.dram.refresh.base cimport RefreshBase
from buddysim.replay.primitives.arena cimport Arena

ORDER = 1


cdef int64_t refresh_began(Dram* dram, const Bank* bank, int64_t t) noexcept nogil:
    """Start of the bank's last refresh; every bank was refreshed before time 0, too."""
    cdef int64_t after = ((bank - dram.banks) & (dram.n_banks - 1)) * dram.timing.refi / dram.n_banks - dram.timing.refi
    return refresh_interval_start(dram, t - after) + after


cdef class Refresh(RefreshBase):
    SUMMARY = "one bank after the other refreshes, for tRFCSB"

    @staticmethod
    def duration(timing):
        return timing.tRFCSB

    @staticmethod
    def misfits(machine):
        timing = machine.dram.timing
        if 0 < machine.exact_ps(timing.tREFI) <= machine.exact_ps(timing.tRFCSB):
            yield f"dram.timing.tREFI: {timing.tREFI} is not longer than tRFCSB, {timing.tRFCSB}"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        dram.refresh_began, dram.blocking_refresh_ps = refresh_began, 0
        return 0
