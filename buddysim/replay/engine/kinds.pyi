from enum import IntEnum

class Placement(IntEnum):
    DEVICE = 0
    COMPRESSED = 1
    HOST = 2

class Traffic(IntEnum):
    DEMAND = 0
    OVERFETCH = 1
    READ_MODIFY_WRITE = 2
    WRITE_BACK = 3
    METADATA_READ = 4
    METADATA_WRITE = 5
    SCHEME_TRAFFIC = 6
