"""`xor_all`: the slice's bits are exclusive ors of all bits of the unit's number, without multiplications."""
from libc.stdint cimport uint32_t

from buddysim.replay.l2.slice_hash.base cimport SliceHashBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed

cdef struct Fold:
    int bits                    # log2 of the slices


cdef void slices_of(const void* state, const uint32_t* units, int n, uint32_t* slices) noexcept nogil:
    cdef int bits = (<const Fold*>state).bits, i
    cdef uint32_t rest
    for i in range(n):
        slices[i], rest = 0, units[i]
        while rest:
            slices[i] ^= rest & ((<uint32_t>1 << bits) - 1)
            rest >>= bits


cdef class SliceHash(SliceHashBase):
    SUMMARY = "exclusive or of all groups of bits; a power of two of slices, at least 2"

    @staticmethod
    def misfits(machine):
        slices = machine.l2.slices
        if slices < 2 or slices & slices - 1:
            yield f"l2.slices: {slices} with slice_hash xor_all: expected a power of two, at least 2"

    cdef int prepare(self, Arena* arena, uint32_t slices, uint32_t slices_per_channel) except -1:
        cdef Fold* fold = <Fold*>arena_zeroed(arena, 1, sizeof(Fold))
        fold.bits = (<int>slices).bit_length() - 1
        self.state, self.slices_of = fold, slices_of
        return 0
