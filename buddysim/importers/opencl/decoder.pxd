"""Decoder of an OpenCL capture's packed warp records to warp operations; reference model: `ref_decoder.py`."""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef packed struct PackedRecord:    # little-endian; n_lanes - 1 distances of 4 B follow
    uint32_t launch
    uint32_t block
    uint16_t warp
    uint16_t instruction
    uint8_t op                      # 0 load, 1 store, 2 atomic
    uint8_t bytes_per_lane
    uint16_t n_lanes
    uint32_t mask
    uint64_t address                # of the first active lane
