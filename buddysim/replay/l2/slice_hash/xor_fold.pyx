"""`xor_fold`: low bits of the unit's number exclusive-or a hash of the others; the engine inlines it (`swizzle`)."""
from buddysim.replay.l2.slice_hash.base cimport SliceHashBase

ORDER = 0


cdef class SliceHash(SliceHashBase):
    SUMMARY = "low bits of the line number exclusive-or a hash of the others; any number of slices"
