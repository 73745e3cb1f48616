"""`tag_and_data`: four banks of tags and 32 of data, as counters of an A100 and an H200 show them (docs/validation/method.md)."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.l1.banking.base cimport L1BankingBase
from buddysim.replay.l1.l1 cimport L1, L1s
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.cache cimport sector_count
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport L1_PORT
from buddysim.replay.primitives.waits cimport count_wait
from buddysim.replay.sm.stream cimport StreamOp
from buddysim.trace.records cimport OP_ATOMIC, OP_LOAD

ORDER = 2

cdef enum:
    TAG_BANKS = 4

# Of one memory instruction.
cdef struct Conflicts:
    int cycles                   # cycles that its lines take at the tag banks
    int sectors                  # sectors of its lines
    uint32_t lines_per_tag_bank  # one byte per tag bank


cdef inline unsigned int tag_bank(uint32_t entry) noexcept nogil:
    """Tag bank of a line: XOR of all pairs of bits of its entry number."""
    entry ^= entry >> 16
    entry ^= entry >> 8
    entry ^= entry >> 4
    return (entry ^ entry >> 2) & (TAG_BANKS - 1)


cdef int64_t enter(const L1s* l1, MemorySystem* m, L1* sm_l1, const LineLocation* line, int number, int64_t now) noexcept nogil:
    """A cycle after the operation's previous line in the same tag bank."""
    cdef Conflicts* conflicts = <Conflicts*>l1.banking
    cdef unsigned int shift = 8 * tag_bank(line.entry)
    cdef int cycle
    cdef int64_t t
    if not number:
        conflicts[0] = Conflicts(0, 0, 0)
    cycle = conflicts.lines_per_tag_bank >> shift & 255
    conflicts.lines_per_tag_bank += <uint32_t>1 << shift
    conflicts.sectors += sector_count(line.masks & 15)
    if cycle == conflicts.cycles:
        conflicts.cycles += 1
        sm_l1.free_ps = max_i64(sm_l1.free_ps, now) + l1.line_ps
    t = sm_l1.free_ps - (conflicts.cycles - cycle) * l1.line_ps
    count_wait(&m.waits, L1_PORT, t - now)
    return t


cdef inline int data_bank_cycles(const StreamOp* op, int sectors) noexcept nogil:
    """Cycles of an operation at the data banks: those of its full sectors, unless the trace records others."""
    cdef int sector_cycles = (sectors + 3) >> 2
    return (((sector_cycles if sector_cycles < 32 else 32) - 1 + op.bank_words) & 31) + 1


cdef int64_t leave(const L1s* l1, MemorySystem* m, L1* sm_l1, const StreamOp* op, int64_t arrival) noexcept nogil:
    """Adds the data-bank cycles of a load or store that exceed its tag-bank cycles."""
    cdef Conflicts* conflicts = <Conflicts*>l1.banking
    cdef int data_cycles = data_bank_cycles(op, conflicts.sectors) if op.kind != OP_ATOMIC else 0
    m.count.l1_conflict_cycles += (data_cycles if data_cycles > conflicts.cycles else conflicts.cycles) - op.n_lines
    if data_cycles > conflicts.cycles:
        sm_l1.free_ps += (data_cycles - conflicts.cycles) * l1.line_ps
        if op.kind == OP_LOAD and l1.enabled:
            return max_i64(arrival, sm_l1.free_ps - l1.line_ps + l1.hit_ps)
    return arrival


cdef class L1Banking(L1BankingBase):
    SUMMARY = (
        "an instruction takes one cycle per line in the busiest of 4 tag banks, and at least one per word in the busiest of "
        "32 data banks; lines_per_cycle is 1"
    )

    @staticmethod
    def misfits(machine):
        lines = machine.l1.lines_per_cycle
        if lines != 1:
            yield (
                f"l1.lines_per_cycle: {lines} with bank_conflicts tag_and_data: expected 1, as the banks determine the lines per "
                "cycle"
            )

    cdef int prepare(self, Arena* arena) except -1:
        self.state, self.enter, self.leave = arena_zeroed(arena, 1, sizeof(Conflicts)), enter, leave
        return 0
