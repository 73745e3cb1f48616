"""`next_line`: after a miss, the metadata line of the following entries is fetched, too."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.schemes.buddy.metadata_cache cimport MetadataCache, fetch_ahead_of_use
from buddysim.replay.schemes.buddy.prefetcher.base cimport MetadataPrefetcherBase


cdef void fetch_next(MemorySystem* m, MetadataCache* cache, uint32_t line, int64_t t) noexcept nogil:
    fetch_ahead_of_use(m, cache, line + 1, t)


cdef class MetadataPrefetcher(MetadataPrefetcherBase):
    SUMMARY = "the next line after each miss"

    cdef int prepare(self, Arena* arena) except -1:
        self.fetch_ahead = fetch_next
        return 0
