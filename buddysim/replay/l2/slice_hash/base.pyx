"""The base of every L2 slice hash."""


cdef class SliceHashBase(Component):
    """A hash that chooses the L2 slice of a unit of memory (`l2.interleave_granularity`).

    A hash is one module with a class `SliceHash` derived from this one. Its name in machine files is the module's. `prepare`
    sets `slices_of`, which gets up to eight units and writes their slices. Each aligned group of as many units as there are
    slices has one unit in every slice.
    """

    cdef int prepare(self, Arena* arena, uint32_t slices, uint32_t slices_per_channel) except -1:
        """Allocates the tables (`arena_zeroed`) and sets `slices_of` and `state`."""
        return 0
