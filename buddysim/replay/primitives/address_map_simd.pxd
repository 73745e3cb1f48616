"""Address map of eight lines at a time (`address_map_simd.h`)."""
from libc.stdint cimport uint16_t, uint32_t, uint64_t

cdef extern from "address_map_simd.h" nogil:
    ctypedef struct LineLocation:              # offsets are in bytes
        uint32_t entry                      # entry number
        uint32_t masks                      # fully written sectors << 4 | requested sectors
        uint32_t size_class                 # of a store or atomic: size class of the entry after it
        uint32_t slice                      # slice number
        uint32_t l1_set                     # offset of the set from the first set of an SM
        uint32_t l2_set                     # offset of the set in SectorCache.set_data
        uint32_t row                        # row number
        uint16_t bank                       # number among the banks of all pseudo-channels
        uint16_t own_short                  # these three: words of the scheme's own (`LocateOwnOp`)
        uint32_t[2] own
    ctypedef struct OwnWords:               # of up to eight lines
        uint32_t[8] shorts                  # 16 bits each
        uint32_t[8] first
        uint32_t[8] second
    ctypedef void (*SlicesOp)(const void* state, const uint32_t* units, int n, uint32_t* slices) noexcept nogil   # n: up to 8
    ctypedef void (*LocateOwnOp)(const void* state, const uint32_t* entries, int n, OwnWords* own) noexcept nogil  # n: up to 8
    ctypedef struct LaneDivisor:
        uint32_t by
    ctypedef struct LocationRules:
        LaneDivisor slices
        LaneDivisor slices_per_channel
        LaneDivisor l1_sets
        LaneDivisor l2_sets
        LaneDivisor pseudo_per_slice
        LaneDivisor row_stripes
        LaneDivisor banks_of_group
        LaneDivisor stripes
        uint32_t l1_set_bytes
        uint32_t l2_set_bytes
        uint32_t banks                      # of a pseudo-channel
        uint32_t bank_groups
        uint32_t interleave_shift           # log2 of the consecutive lines in one slice
        SlicesOp slices_of                  # the slice hash's; NULL: `swizzle`
        const void* slice_hash              # its first argument
        LocateOwnOp locate_own              # the scheme's, which sets `own_short` and `own` of lines; NULL: they are 0
        const void* own_state               # its first argument
    LaneDivisor lane_divisor(uint32_t by) noexcept
    void location_begin(LineLocation* location, uint64_t line) noexcept      # from size_class << 40 | entry << 8 | masks
    void locate_lines_simd(const LocationRules* rules, const uint64_t* lines, int n, LineLocation* locations) noexcept
    void complete_locations_simd(const LocationRules* rules, LineLocation* const* locations) noexcept    # eight
    bint has_eight_lane_lookup() noexcept
