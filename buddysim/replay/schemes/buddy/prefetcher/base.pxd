"""Base class of metadata prefetchers, each a module of this folder: what is fetched after a miss of the metadata cache."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.schemes.buddy.metadata_cache cimport FetchAheadOp


cdef class MetadataPrefetcherBase(Component):
    cdef FetchAheadOp fetch_ahead   # NULL: nothing is fetched ahead
    cdef void* state                # in the run's arena; `MetadataCache.prefetcher`

    cdef int prepare(self, Arena* arena) except -1
