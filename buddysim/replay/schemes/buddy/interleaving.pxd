"""`metadata_cache.interleaving`: at which L2 slice an entry's metadata lie, and what the way there takes."""
from buddysim.replay.schemes.buddy.metadata_cache cimport MetadataCache


cdef int interleaving_init(MetadataCache* cache, dict n) except -1
