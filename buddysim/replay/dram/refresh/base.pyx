"""The base of every refresh mode."""


cdef class RefreshBase(Component):
    """When banks are refreshed, and for how long.

    A mode is one module with a class `Refresh` derived from this one. A refresh closes the rows of its banks and keeps them for
    its duration.
    """

    @staticmethod
    def duration(timing):
        """Returns the duration of a refresh, one of the keys of `dram.timing`.

        Parameters
        ----------
        timing : DramTimingConfig

        Returns
        -------
        Time
        """
        return timing.tRFC

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        """Sets `dram.refresh_began` and `dram.blocking_refresh_ps`, unless all banks refresh together; only with a refresh."""
        return 0
