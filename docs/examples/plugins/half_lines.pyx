"""`half_lines`: a bank for each half of a line; lines of an instruction that need different halves enter together."""
from libc.stdint cimport int64_t

from buddysim.replay.l1.banking.base cimport L1BankingBase
from buddysim.replay.l1.l1 cimport L1, L1s, l1_enter
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed

cdef struct Halves:
    int used        # in this cycle, by lines of the instruction: 1 the first half, 2 the second


cdef int64_t enter(const L1s* l1, MemorySystem* m, L1* sm_l1, const LineLocation* line, int number,
                   int64_t now) noexcept nogil:
    cdef Halves* halves = <Halves*>l1.banking
    cdef int needed = (1 if line.masks & 3 else 0) | (2 if line.masks & 12 else 0)
    if number and not needed & halves.used:
        halves.used |= needed
        return sm_l1.free_ps - l1.line_ps
    halves.used = needed
    return l1_enter(l1, m, sm_l1, now)


cdef class L1Banking(L1BankingBase):
    SUMMARY = "two banks of 64 B; lines of an instruction that need different halves enter together"

    cdef int prepare(self, Arena* arena) except -1:
        self.state, self.enter = arena_zeroed(arena, 1, sizeof(Halves)), enter
        return 0
