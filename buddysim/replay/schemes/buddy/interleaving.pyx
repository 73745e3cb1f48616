"""Look-ups of metadata at another L2 slice (`hashed`), or of a copy of their line at the entry's own (`own_slice`)."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.compressed.entries cimport SizeLookup
from buddysim.replay.crossbar.crossbar cimport between_slices
from buddysim.replay.memory.address_map cimport CacheLocation, l2_location
from buddysim.replay.memory.memory cimport MemorySystem, Slice
from buddysim.replay.primitives.address_map_simd cimport LineLocation
from buddysim.replay.primitives.division cimport divide
from buddysim.replay.schemes.buddy.metadata_cache cimport look_up_in, metadata_of, metadata_set


cdef int interleaving_init(MetadataCache* cache, dict n) except -1:
    """Sets up the look-ups of a machine (`metadata_numbers`)."""
    cache.hop_ps = n["metadata_hop_ps"]
    cache.own_slices = n["metadata_interleaving"] == "own_slice"
    if cache.own_slices:
        cache.look_up = own_slice
    elif n["metadata_interleaving"] == "hashed":
        cache.look_up = hashed
    return 0


cdef uint32_t own_l2_slice(const MemorySystem* m, uint32_t entry, const LineLocation* at) noexcept nogil:
    """Number of an entry's L2 slice."""
    cdef CacheLocation location
    if at != NULL:
        return at.slice
    l2_location(m, entry, &location)
    return location.slice


cdef SizeLookup hashed(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write, int64_t t) noexcept nogil:
    """Asks the slice of the hash of the entry's metadata line; a fill that speculates is answered twice."""
    cdef MetadataCache* cache = metadata_of(m)
    cdef uint32_t set_offset = at.own[0] if at else metadata_set(cache, entry >> cache.line_shift)
    cdef uint32_t unit = divide(cache.slice_bytes, set_offset)
    cdef Slice* home = &m.l2.slices[unit * m.l2.n_slices.by / cache.slices.by]
    cdef Slice* own = &m.l2.slices[own_l2_slice(m, entry, at)]
    cdef SizeLookup answer
    if home == own:
        return look_up_in(m, cache, entry, set_offset, at, write, t)
    answer = look_up_in(m, cache, entry, set_offset, at, write, between_slices(m, own, home, cache.hop_ps, t))
    if answer.speculative and at != NULL:
        answer.fetch_begin_ps = between_slices(m, home, own, cache.hop_ps, answer.fetch_begin_ps)
    answer.known_ps = between_slices(m, home, own, cache.hop_ps, answer.known_ps)
    if not answer.speculative:
        answer.fetch_begin_ps = answer.known_ps
    return answer


cdef SizeLookup own_slice(MemorySystem* m, uint32_t entry, const LineLocation* at, bint write, int64_t t) noexcept nogil:
    """Looks in the metadata cache at the entry's L2 slice."""
    cdef MetadataCache* cache = metadata_of(m)
    cache.own_slice = own_l2_slice(m, entry, at) * cache.slices.by / m.l2.n_slices.by
    return look_up_in(m, cache, entry, metadata_set(cache, entry >> cache.line_shift), at, write, t)
