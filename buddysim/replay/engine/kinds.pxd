"""What the compiled engine and Python both name: placements of allocations, kinds of traffic, sizes."""

cpdef enum Placement:           # which memory an allocation lives in
    DEVICE = 0                  # uncompressed in device memory
    COMPRESSED = 1              # compressed in device memory, what overflows in buddy memory
    HOST = 2                    # in host memory, over the link

cpdef enum Traffic:             # why sectors move
    DEMAND = 0
    OVERFETCH = 1
    READ_MODIFY_WRITE = 2
    WRITE_BACK = 3
    METADATA_READ = 4
    METADATA_WRITE = 5
    SCHEME_TRAFFIC = 6          # for a reason of the scheme's own, which its counters name

cdef enum:
    ENTRY_BYTES = 128           # a memory-entry, and a cache line
    SECTOR_BYTES = 32
    TRAFFIC_KINDS = 7
    HISTOGRAM_BINS = 64         # bin b holds times in [2^b, 2^(b+1)) ps


cdef inline int sectors_needed(int size_class) noexcept nogil:
    """Sectors that an entry of a size class fills (`buddysim.compress.SECTORS_OF_CLASS`, a digit each)."""
    return <int>((<unsigned int>0x43321110 >> (size_class << 2)) & 15)
