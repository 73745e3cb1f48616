"""`none`: nothing is fetched ahead; the engine knows it as NULL."""
from buddysim.replay.schemes.buddy.prefetcher.base cimport MetadataPrefetcherBase

ORDER = 0


cdef class MetadataPrefetcher(MetadataPrefetcherBase):
    SUMMARY = "nothing is fetched ahead"
