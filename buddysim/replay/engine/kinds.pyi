from enum import IntEnum

class Placement(IntEnum):
    DEVICE = 0
    COMPRESSED = 1
    HOST = 2

class Traffic(IntEnum):
    DEMAND = 0
    OVERFETCH = 1
    READ_MODIFY_WRITE = 2
    WRITEBACK = 3
    METADATA_READ = 4
    METADATA_WRITE = 5
    SCHEME_TRAFFIC = 6

class Queue(IntEnum):
    L1_PORT = 0
    L1_MSHR = 1
    L1_STORE = 2
    REQUEST_PORT = 3
    REPLY_PORT = 4
    SLICE_PORT = 5
    L2_MSHR = 6
    COMPRESSOR = 7
    METADATA_PORT = 8
    DRAM_READ = 9
    DRAM_WRITE = 10
    LINK_READ = 11
    LINK_WRITE = 12
