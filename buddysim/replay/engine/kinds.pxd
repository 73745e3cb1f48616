"""What the compiled engine and Python both name: placements of allocations, kinds of traffic, sizes."""

cpdef enum Placement:           # which memory an allocation lives in
    DEVICE = 0                  # uncompressed in device memory
    COMPRESSED = 1              # compressed in device memory, what overflows in buddy memory
    HOST = 2                    # in host memory, over the link

cpdef enum Traffic:             # why sectors move
    DEMAND = 0
    OVERFETCH = 1
    READ_MODIFY_WRITE = 2
    WRITEBACK = 3
    METADATA_READ = 4
    METADATA_WRITE = 5
    SCHEME_TRAFFIC = 6          # for a reason of the scheme's own, which its counters name

cpdef enum Queue:               # where a request may have to wait
    L1_PORT = 0                 # lines of instructions for their L1
    L1_MSHR = 1                 # load misses
    L1_STORE = 2                # stores, for one of as many places
    REQUEST_PORT = 3            # of an SM at the crossbar
    REPLY_PORT = 4
    SLICE_PORT = 5              # of an L2 slice
    L2_MSHR = 6
    COMPRESSOR = 7                   # a slice's (de)compressor
    METADATA_PORT = 8           # of a metadata slice
    DRAM_READ = 9               # for bank, row and bus
    DRAM_WRITE = 10             # for room in a channel's write queue
    LINK_READ = 11
    LINK_WRITE = 12

cdef enum:
    QUEUES = 13
    ENTRY_BYTES = 128           # a memory-entry, and a cache line
    SECTOR_BYTES = 32
    TRAFFIC_KINDS = 7
    HISTOGRAM_BINS = 64         # bin b holds times in [2^b, 2^(b+1)) ps


cdef inline int sectors_needed(int size_class) noexcept nogil:
    """Sectors that an entry of a size class fills (`buddysim.compress.SECTORS_OF_CLASS`, a digit each)."""
    return <int>((<unsigned int>0x43321110 >> (size_class << 2)) & 15)
