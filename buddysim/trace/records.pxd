"""The records of a decoded chunk, as C sees them. `records.py` mirrors them as numpy dtypes.

A line is one uint64: (address >> 7) << 8 | fully_written_mask << 4 | sector_mask.
Bit s of sector_mask: the operation accesses sector s of the 128 B line. Bit s of fully_written_mask: a store
writes all 32 bytes of sector s (always a subset of sector_mask, zero for loads).
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum OpKind:
    OP_LOAD = 0
    OP_STORE = 1
    OP_ATOMIC = 2
    OP_BARRIER = 3

cdef enum OpFlag:
    FLAG_BYPASS_L1 = 1      # the L2 serves it even if the L1 has the line
    FLAG_TIMED = 2          # critical_path_* and use_* are recorded; without it a run assumes them from gap_instructions
    FLAG_NO_RETURN = 4      # an atomic whose result no instruction reads (RED)

cdef enum:
    ATOMIC_CONFLICTS_SHIFT = 3      # first bit of an atomic's conflict count in its flags
    BANK_WORDS_SHIFT = 3            # first bit of a load's or store's `bank_words` in its flags (coalesce.pxd)

cdef struct WarpOp:
    uint32_t first_line             # index of the op's first line in the chunk's lines
    uint32_t gap_instructions       # other instructions issued by the warp since its last op
    uint32_t critical_path_cycles   # execution cycles on the longest dependence chain since the last op
    uint32_t critical_path_hops     # dependent waits on that chain; a machine adds its cost for each
    uint32_t use_distance           # load: instructions to the first use of its result, 0 = never used
    uint32_t use_cycles             # load: like critical_path_cycles, from this op to the first use
    uint16_t use_hops               # load: like critical_path_hops, from this op to the first use
    uint8_t n_lines                 # 0 for a barrier
    uint8_t kind                    # OpKind
    uint8_t bytes_per_lane
    uint8_t flags                   # OpFlag
    uint16_t unit_busy_slots        # issue slots for which the busiest execution unit stays busy longer; saturates at 65535

cdef struct WarpRecord:
    uint32_t warp                   # index in its thread block
    uint32_t first_op               # index in the chunk's ops
    uint32_t n_ops
    uint32_t tail_gap_instructions  # instructions after the last op
    uint32_t tail_critical_path_cycles
    uint32_t tail_critical_path_hops
    uint32_t tail_unit_busy_slots   # like unit_busy_slots, but never saturated

cdef struct BlockRecord:
    uint32_t block                  # linear thread-block index, x fastest
    uint32_t first_warp             # index in the chunk's warps
    uint32_t n_warps
