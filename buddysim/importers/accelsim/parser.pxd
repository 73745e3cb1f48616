"""Instruction lines of a kernel -> warp operations with their timing. `naive_parser.py` is the readable twin."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum Role:                 # as in opcodes.py
    PLAIN = 0
    LOAD = 1
    STORE = 2
    ATOMIC = 3
    GENERIC_LOAD = 4
    GENERIC_STORE = 5
    LOCAL_LOAD = 6
    LOCAL_STORE = 7
    SHARED = 8
    BARRIER = 9
    ASYNC_COPY = 10
    ASYNC_COMMIT = 11
    ASYNC_WAIT = 12
    MEMORY_FENCE = 13
    UNSUPPORTED = 14

cdef enum:
    N_REGISTERS = 512           # R0..R254 at 0, UR0..UR62 at 256
    NO_REGISTER = -1            # a register that always reads zero, or a predicate
    MAX_OPERANDS = 16           # registers that one side of an instruction names
    N_UNITS = 10
    UNIT_QUEUE = 4              # instructions of a warp that can wait for a unit without holding up issue
    NOMINAL_STEP = 6            # cycles of a dependent wait; only to find the longer of two paths

cdef struct OpcodeEntry:
    uint8_t role
    uint8_t width               # bytes per lane
    uint8_t registers           # that the destination names by the first
    uint8_t bypass_l1
    uint8_t no_return
    uint8_t unit
    uint16_t latency            # core cycles
    uint16_t interval           # core cycles until the unit takes another
    uint16_t shared_by          # schedulers

cdef struct Clock:              # a warp's time: execution cycles and dependent waits
    uint64_t cycles
    uint64_t steps

cdef struct Instruction:
    uint64_t pc
    uint32_t mask               # active lanes
    OpcodeEntry opcode
    int n_destinations
    int n_sources
    int destinations[MAX_OPERANDS]
    int sources[MAX_OPERANDS]
    int n_lanes
    bint has_memory             # the line has a memory operand
    uint64_t addresses[32]      # of the active lanes, ascending
    int64_t immediate

cdef struct PendingOp:          # an operation of the current warp, for its later use
    Clock issued
    uint64_t number             # of its instruction in the warp
    uint64_t group              # of an asynchronous copy, 0: none
    bint open                   # its result hasn't been used yet
