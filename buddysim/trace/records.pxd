"""The records of a decoded chunk, as C sees them. `records.py` mirrors them as numpy dtypes.

A line is one uint64: (address >> 7) << 8 | whole_mask << 4 | sector_mask.
Bit s of sector_mask: sector s of the 128 B line is touched; bit s of whole_mask: a store
writes all 32 bytes of it (always a subset of sector_mask, zero for loads).
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum OpKind:
    OP_LOAD = 0
    OP_STORE = 1
    OP_ATOMIC = 2
    OP_BARRIER = 3

cdef enum OpFlag:
    FLAG_BYPASS_L1 = 1      # served by the L2 whatever the L1 holds
    FLAG_TIMED = 2          # chain_* and use_* are known, not to be assumed from gap
    FLAG_NO_RETURN = 4      # an atomic whose result nobody reads (RED)

cdef enum:
    REPEATS_SHIFT = 3       # from this bit of an atomic's flags on: how often its threads meet at a word
    WORDS_SHIFT = 3         # of a load's or store's: its `words_code` (coalesce.pxd)

cdef struct WarpOp:
    uint32_t first_line     # index of the op's first line in the chunk's lines
    uint32_t gap            # other instructions issued by the warp since its last op
    uint32_t chain_cycles   # execution cycles on the longest dependent chain since the last op
    uint32_t chain_steps    # dependent waits on that chain (a machine adds its cost for each)
    uint32_t use_distance   # load: instructions to the first use of its result, 0 = never used
    uint32_t use_cycles     # load: as chain_cycles, from this op to the first use
    uint16_t use_steps      # load: as chain_steps, from this op to the first use
    uint8_t n_lines         # 0 for a barrier
    uint8_t kind            # OpKind
    uint8_t bytes_per_lane
    uint8_t flags           # OpFlag
    uint16_t unit_slots     # issue slots besides that the busiest execution unit takes for the gap; 65535 = that or more

cdef struct WarpRecord:
    uint32_t warp           # number in its thread block
    uint32_t first_op       # index in the chunk's ops
    uint32_t n_ops
    uint32_t tail_gap       # instructions after the last op
    uint32_t tail_cycles    # as chain_cycles
    uint32_t tail_steps
    uint32_t tail_unit_slots    # as unit_slots, but for its bound

cdef struct BlockRecord:
    uint32_t block          # linear thread-block number, x fastest
    uint32_t first_warp     # index in the chunk's warps
    uint32_t n_warps
