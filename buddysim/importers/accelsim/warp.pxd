"""Conversion of a warp's timed instruction stream to operations; reference model: `ref_parser.py`."""
from libc.stdint cimport int64_t, uint16_t, uint64_t

from buddysim.importers.accelsim.instruction cimport Instruction, InstructionReader
from buddysim.importers.rows cimport Rows
from buddysim.trace.records cimport WarpOp

cdef enum:
    N_REGISTERS = 512           # R0..R254 at 0, UR0..UR62 at 256
    N_UNITS = 10
    UNIT_QUEUE = 4              # instructions of a warp that can wait for a unit without holding up issue
    NOMINAL_STEP = 6            # cycles of a dependent wait; only to find the longer of two paths

cdef struct DependenceClock:              # a warp's time: execution cycles and dependent waits
    uint64_t cycles
    uint64_t steps

cdef struct PendingOp:          # an operation of the current warp, for its later use
    DependenceClock issued
    uint64_t number             # of its instruction in the warp
    uint64_t group              # of an asynchronous copy, 0: none
    bint open                   # its result hasn't been used yet

cdef class WarpStream(InstructionReader):
    """The current warp's scoreboard, and the records of all warps so far."""
    cdef bint include_local
    cdef uint64_t block_threads, grid_threads
    cdef int64_t block, warp            # the current ones
    cdef Rows warps, ops, lines, pcs, pending
    cdef DependenceClock now, last_op_clock
    cdef DependenceClock written                  # when all issued instructions except loads have executed
    cdef uint64_t number, last_op_number, async_group
    cdef DependenceClock[N_REGISTERS] ready
    cdef DependenceClock[N_UNITS] unit_free
    cdef uint64_t[N_UNITS] unit_busy    # by the instructions since the last operation, core cycles of a scheduler's share
    cdef size_t[N_REGISTERS] loader     # 1 + index in `pending` of the operation that writes the register
    cdef uint64_t n_instructions, n_lane_instructions, n_memory, n_off, n_shared, n_local, n_other, n_barriers
    cdef uint64_t n_lines, n_sectors
    cdef readonly uint64_t last_pc      # of the instructions so far, the one that is last in the code

    cdef int start_warp(self, int64_t number) except -1
    cdef void close_warp(self) noexcept
    cdef int issue(self, Instruction* instruction) except -1
    cdef DependenceClock registers_ready(self, Instruction* instruction) noexcept
    cdef void use_registers(self, Instruction* instruction, DependenceClock clock) noexcept
    cdef void write_registers(self, Instruction* instruction, DependenceClock ready, size_t loader) noexcept
    cdef void use(self, size_t index, DependenceClock clock) noexcept
    cdef void wait_async(self, int64_t newest, DependenceClock clock) noexcept
    cdef uint64_t take_unit_busy_slots(self, uint64_t instructions) noexcept
    cdef WarpOp* add_op(
        self, Instruction* instruction, int kind, const uint64_t* lines, int n_lines, DependenceClock clock
    ) except NULL
    cdef int add_access(self, Instruction* instruction, int role, DependenceClock clock) except -1
    cdef int add_local(self, Instruction* instruction, int role, DependenceClock clock) except -1
