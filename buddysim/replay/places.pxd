"""Where an operation's lines lie in caches and device memory (`places.h`)."""
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "places.h" nogil:
    enum:
        PLACES_MAX
    ctypedef struct Places:                 # of an operation's lines; bytes from the start of the engine's array, or numbers
        uint32_t[256] entry                 # a number
        uint32_t[256] slice                 # a number
        uint32_t[256] l1_set
        uint32_t[256] l2_set
        uint32_t[256] channel
        uint32_t[256] bank
        uint32_t[256] row                   # a number
        uint32_t[256] metadata_set
        uint32_t[256] metadata_channel
        uint32_t[256] metadata_bank
        uint32_t[256] metadata_row          # a number
        bint in_memory                      # have the places in device memory been found?
    ctypedef struct LaneDivisor:
        uint32_t by
    ctypedef struct PlaceRules:
        LaneDivisor slices
        LaneDivisor slices_per_channel
        LaneDivisor l1_sets
        LaneDivisor l2_sets
        LaneDivisor pseudo_per_slice
        LaneDivisor pieces
        LaneDivisor banks_of_group
        LaneDivisor stripes
        LaneDivisor metadata_slices
        LaneDivisor metadata_sets
        uint32_t l1_row_bytes
        uint32_t l2_row_bytes
        uint32_t metadata_row_bytes
        uint32_t channel_bytes
        uint32_t bank_bytes
        uint32_t banks                      # of a pseudo-channel
        uint32_t bank_groups
        uint32_t metadata_shift
        uint32_t metadata_sectors
        uint32_t metadata_entry
        bint has_metadata
    LaneDivisor lane_divisor(uint32_t by) noexcept
    void places_locate(const PlaceRules* rules, uint32_t sm, const uint64_t* lines, int n, Places* places) noexcept
    bint places_eight_at_a_time() noexcept
