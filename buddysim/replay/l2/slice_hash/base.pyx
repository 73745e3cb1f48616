"""The base of every L2 slice hash."""


cdef class SliceHashBase:
    """A hash that chooses the L2 slice of a unit of memory (`l2.interleave_granularity`).

    A hash is one module with a class `SliceHash` derived from this one. Its name in machine files is the module's. `prepare`
    sets `slices_of`, which gets up to eight units and writes their slices. Each aligned group of as many units as there are
    slices has one unit in every slice.

    An instance serves one run.
    """

    #: Description for lists, one line.
    SUMMARY = ""

    @staticmethod
    def misfits(machine):
        """Yields a text for each key of a machine that the hash does not fit: the key, colon, what was expected.

        Parameters
        ----------
        machine : Machine
        """
        yield from ()

    cdef int prepare(self, Arena* arena, uint32_t slices, uint32_t slices_per_channel) except -1:
        """Allocates the tables (`arena_zeroed`) and sets `slices_of` and `state`."""
        return 0
