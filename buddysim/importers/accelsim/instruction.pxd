"""An instruction line of a kernel trace, and the memory contents that it reveals; reference model: `ref_parser.py`."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from buddysim.importers.accelsim.image cimport MemoryImage
from buddysim.importers.accelsim.text cimport Cursor
from buddysim.importers.rows cimport Rows

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
    NO_REGISTER = -1            # a register that always reads zero, or a predicate
    MAX_OPERANDS = 16           # registers that one side of an instruction names at most
    WINDOW_BYTES = 1 << 24      # of a generic window, where the other base doesn't bound it: as large as drivers leave

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


cdef class InstructionReader:
    """Reads instruction lines of one kernel and writes the values that they contain to an image of memory.

    The parameters are those of `KernelParser`.
    """
    cdef readonly set unknown_opcodes
    cdef str path
    cdef object classify
    cdef int64_t line_number
    cdef int version
    cdef bint line_info
    cdef int prefix             # fields before each instruction
    cdef uint64_t shared_base, local_base
    cdef MemoryImage image
    cdef dict opcode_index      # by the opcode's text, into `opcodes`
    cdef Rows opcodes
    cdef bint drop_async        # the next line of an asynchronous copy in a raw trace is its first

    cdef int fail(self, str problem) except -1
    cdef str shown(self, Cursor token)
    cdef int read_instruction(self, Cursor line, bint raw, Instruction* instruction) except -1
    cdef int64_t read_mask(self, Cursor* line) except -1
    cdef int read_registers(self, Cursor* line, int* registers) except -1
    cdef OpcodeEntry find_opcode(self, Cursor name) except *
    cdef int64_t read_immediate(self, Cursor* line) except? -1
    cdef int read_addresses(self, Cursor* line, Instruction* instruction) except -1
    cdef int read_store_data(self, Cursor* line, Instruction* instruction) except -1
    cdef int read_store_value(self, Cursor token, Cursor kind, uint64_t* bits) except -1
    cdef int read_register_values(self, Cursor* line, Instruction* instruction) except -1
    cdef int store_values(self, Instruction* instruction, const uint64_t* values, int count) except -1
    cdef bint is_global(self, Instruction* instruction) noexcept
    cdef int role_of(self, Instruction* instruction) noexcept
