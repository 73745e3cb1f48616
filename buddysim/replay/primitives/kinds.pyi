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
    SCHEME_TRAFFIC = 4

class Queue(IntEnum):
    L1_PORT = 0
    L1_MSHR = 1
    L1_STORE = 2
    REQUEST_PORT = 3
    REPLY_PORT = 4
    SLICE_PORT = 5
    L2_MSHR = 6
    COMPRESSOR = 7
    DRAM_READ = 8
    DRAM_WRITE = 9
    LINK_READ = 10
    LINK_WRITE = 11
    SCHEME_QUEUE = 12
