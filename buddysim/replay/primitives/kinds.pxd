"""Names that the engine and Python have in common: placements of allocations, kinds of traffic, queues, sizes."""

# Memory that an allocation lies in.
cpdef enum Placement:
    DEVICE = 0      # device memory, uncompressed
    COMPRESSED = 1  # device memory, compressed; overflow behind the link
    HOST = 2        # host memory, behind the link

# Why sectors move.
cpdef enum Traffic:
    DEMAND = 0
    OVERFETCH = 1
    READ_MODIFY_WRITE = 2
    WRITEBACK = 3
    SCHEME_TRAFFIC = 4  # this and the next two: a scheme's own reasons, which its `TRAFFIC` or counters name

# Where a request may have to wait.
cpdef enum Queue:
    L1_PORT = 0        # lines of memory instructions, for the L1 port
    L1_MSHR = 1        # L1 misses, for an MSHR
    L1_STORE = 2       # stores, for an entry of the store buffer
    REQUEST_PORT = 3   # an SM's port into the crossbar
    REPLY_PORT = 4     # an SM's port out of the crossbar
    SLICE_PORT = 5     # port of an L2 slice
    L2_MSHR = 6
    COMPRESSOR = 7     # compressor or decompressor of a slice
    DRAM_READ = 8      # for bank, row and bus
    DRAM_WRITE = 9     # for an entry of the channel's write queue
    LINK_READ = 10
    LINK_WRITE = 11
    SCHEME_QUEUE = 12  # a scheme's own, which its `QUEUES` names

cdef enum:
    QUEUES = 13
    ENTRY_BYTES = 128    # a memory-entry, and a cache line
    SECTOR_BYTES = 32
    TRAFFIC_KINDS = 7
    HISTOGRAM_BINS = 64  # bin b counts times in [2^b, 2^(b+1)) ps


cdef inline int sectors_needed(int size_class) noexcept nogil:
    """Sectors that an entry of a size class fills (`buddysim.compress.SECTORS_OF_CLASS`, a digit each)."""
    return <int>((<unsigned int>0x43321110 >> (size_class << 2)) & 15)
