"""`sector`: a bank for each sector of a line; lines of an instruction that have no common bank enter together."""
from libc.stdint cimport int64_t

from buddysim.replay.l1.banking.base cimport L1BankingBase
from buddysim.replay.l1.l1 cimport L1, L1s, l1_enter
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed

ORDER = 1

cdef struct Banks:
    unsigned int used       # in the cycle of the instruction's previous line; all before its first one


cdef inline unsigned int sectors_from_conflict(unsigned int sectors, unsigned int used_banks) noexcept nogil:
    """The sectors of a line from the first one on whose bank is used."""
    cdef unsigned int conflict = sectors & used_banks
    return sectors & -(conflict & -conflict)


cdef int64_t enter(const L1s* l1, MemorySystem* m, L1* sm_l1, const LineLocation* line, int number, int64_t now) noexcept nogil:
    """In the cycle of the previous line if it uses no bank again, else in the next one; its first sectors still enter before."""
    cdef Banks* banks = <Banks*>l1.banking
    cdef unsigned int sectors = line.masks & 15
    if not number:
        banks.used = 15
    if not sectors & banks.used:
        banks.used |= sectors
        return sm_l1.free_ps - l1.line_ps
    banks.used = sectors_from_conflict(sectors, banks.used)
    return l1_enter(l1, m, sm_l1, now)


cdef class L1Banking(L1BankingBase):
    SUMMARY = "sector n of each line is in bank n; lines of an instruction without a common bank enter together"

    cdef int prepare(self, Arena* arena) except -1:
        self.state, self.enter = arena_zeroed(arena, 1, sizeof(Banks)), enter
        return 0
