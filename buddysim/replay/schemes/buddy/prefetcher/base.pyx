"""The base of every metadata prefetcher."""


cdef class MetadataPrefetcherBase(Component):
    """What the metadata cache fetches in addition to a line that missed.

    A prefetcher is one module with a class `MetadataPrefetcher` derived from this one. `fetch_ahead` gets the number of the line
    that missed, once it has been requested; it requests others by `fetch_ahead_of_use`, which no lookup waits for before it needs
    them.
    """

    cdef int prepare(self, Arena* arena) except -1:
        """Allocates the state (`arena_zeroed`); sets `fetch_ahead` and `state`."""
        return 0
