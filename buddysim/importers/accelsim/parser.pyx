"""Parses the instruction lines of Accel-Sim kernel traces and times each warp's instruction stream.

A warp issues in order, one instruction per cycle at most. An instruction waits for its registers: if a fixed-latency
instruction wrote one, until that has executed and a pipeline step more. An execution unit starts an instruction per
interval; a few can queue for it before issue has to wait. Loads return at once here; what really delays a warp is their
use, which is what `use_*` of an operation says.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import struct

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.importers.accelsim.image cimport MemoryImage
from buddysim.importers.accelsim.text cimport Cursor, next_token, parse_decimal, parse_hex, token_is
from buddysim.trace.coalesce cimport MAX_OP_LINES, coalesce_op
from buddysim.trace.records cimport (
    FLAG_BYPASS_L1, FLAG_NO_RETURN, FLAG_TIMED, OP_ATOMIC, OP_BARRIER, OP_LOAD, OP_STORE,
    BlockRecord, WarpOp, WarpRecord,
)
from buddysim.trace.records import BLOCK_DTYPE, LINE_DTYPE, OP_DTYPE, WARP_DTYPE

cdef extern from *:
    int popcount "__builtin_popcount"(unsigned int x) noexcept nogil

cdef enum:
    # A generic window, where the other base doesn't bound it: as large as the gap that drivers leave.
    WINDOW_BYTES = 1 << 24
    # Threads that share one interleaved local memory: 2048 on each of 80 SMs, as Accel-Sim maps it.
    LOCAL_THREADS = 2048 * 80
    MAX_LOCAL_PIECES = 8        # of 4 B per lane

# Addresses beyond any that a GPU has, for local memory as the hardware interleaves it.
cdef uint64_t LOCAL_REGION = <uint64_t>1 << 60
cdef uint64_t ADDRESS_LIMIT = <uint64_t>1 << 57

COUNTS = (
    "warp_instructions", "lane_instructions", "memory_lines", "predicated_off", "shared_lines", "local_lines",
    "other_lines", "barriers", "lines", "sectors",
)


cdef class _Rows:
    """A growing C array of fixed-size rows."""
    cdef char* data
    cdef size_t row_bytes
    cdef size_t n
    cdef size_t room

    def __cinit__(self, size_t row_bytes):
        self.row_bytes = row_bytes
        self.data = NULL
        self.n = self.room = 0

    def __dealloc__(self):
        free(self.data)

    cdef void* add(self, size_t count=1) except NULL:
        """Space for `count` rows more; the address is good until the next call."""
        cdef size_t room
        cdef char* data
        if self.n + count > self.room:
            room = max(2 * self.room, self.n + count, <size_t>64)
            data = <char*>realloc(self.data, room * self.row_bytes)
            if data == NULL:
                raise MemoryError("no memory for a kernel's operations")
            self.data, self.room = data, room
        self.n += count
        return self.data + (self.n - count) * self.row_bytes

    cdef object take(self, object dtype):
        """The rows as a numpy array; the next ones start over."""
        cdef uint8_t[::1] view
        array = np.empty(self.n * self.row_bytes, dtype=np.uint8)
        if self.n:
            view = array
            memcpy(&view[0], self.data, self.n * self.row_bytes)
        self.n = 0
        return array.view(dtype)


cdef inline bint later(Clock a, Clock b) noexcept nogil:
    return a.cycles + NOMINAL_STEP * a.steps > b.cycles + NOMINAL_STEP * b.steps


cdef inline uint64_t advance(uint64_t now, uint64_t then) noexcept nogil:
    return now - then if now > then else 0


cdef inline uint32_t saturated(uint64_t value, uint64_t most) noexcept nogil:
    return <uint32_t>(value if value < most else most)


cdef bint parse_register(Cursor token, int* register) noexcept nogil:
    """R7, UR7, P7, UP7, B7: the register's number, NO_REGISTER where nobody waits for it."""
    cdef bint uniform = token.at < token.end and token.at[0] == 85  # U
    cdef bint general
    cdef int64_t number = -1
    if uniform:
        token.at += 1
    if token.at >= token.end:
        return False
    general = token.at[0] == 82  # R
    if not general and token.at[0] != 80 and token.at[0] != 66:  # P, B
        return False
    token.at += 1
    if not parse_decimal(token, &number) or not 0 <= number <= 255:
        return False
    register[0] = NO_REGISTER
    if general and not uniform and number < 255:
        register[0] = <int>number
    elif general and uniform and number != 63 and number != 255:
        register[0] = <int>number + 256
    return True


cdef class KernelParser:
    """Turns the text of one kernel, piece by piece, into records.

    Parameters
    ----------
    path : of the file, for messages
    header : the kernel's header
    classify : opcode text -> Opcode
    first_line : lines of the file before the text, for messages
    include_local : make operations of local memory too, interleaved over threads as the hardware does
    image : memory contents to which stored values are written, if wanted
    """
    cdef readonly set unknown_opcodes
    cdef str path
    cdef object classify
    cdef bytes rest
    cdef int64_t line_number
    cdef int version
    cdef bint line_info, include_local
    cdef int prefix
    cdef uint64_t shared_base, local_base, block_threads, grid_threads
    cdef uint64_t grid[3]
    cdef uint64_t block_warps
    cdef MemoryImage image
    cdef dict opcode_index
    cdef _Rows opcodes, blocks, warps, ops, lines, pcs, pending
    # what is being read
    cdef bint in_block, in_warp, have_block, have_count
    cdef int64_t block, last_block, warp, left
    cdef size_t block_start_warps
    # the current warp's scoreboard
    cdef Clock now, last_op_clock
    cdef uint64_t number, last_op_number, async_group
    cdef bint drop_async
    cdef Clock[N_REGISTERS] ready
    cdef Clock[N_UNITS] unit_free
    cdef uint64_t[N_UNITS] unit_busy    # by the instructions since the last operation, core cycles of a scheduler's share
    cdef size_t[N_REGISTERS] loader     # 1 + index in `pending` of the operation that writes the register
    cdef uint64_t n_instructions, n_lane_instructions, n_memory, n_off, n_shared, n_local, n_other, n_barriers
    cdef uint64_t n_lines, n_sectors

    def __cinit__(self, path, header, classify, *, first_line=0, include_local=False, image=None):
        self.path = str(path)
        self.classify = classify
        self.rest = b""
        self.line_number = first_line
        self.version = header.version
        self.line_info = header.line_info
        self.include_local = include_local
        self.prefix = 4 if self.version < 3 else 0
        self.shared_base, self.local_base = header.shared_base, header.local_base
        self.grid[0], self.grid[1], self.grid[2] = header.grid
        self.block_threads = header.block[0] * header.block[1] * header.block[2]
        self.grid_threads = self.block_threads * header.grid_blocks
        self.block_warps = header.block_warps
        self.image = image
        self.opcode_index = {}
        self.unknown_opcodes = set()
        self.opcodes = _Rows(sizeof(OpcodeEntry))
        self.blocks = _Rows(sizeof(BlockRecord))
        self.warps = _Rows(sizeof(WarpRecord))
        self.ops = _Rows(sizeof(WarpOp))
        self.lines = _Rows(sizeof(uint64_t))
        self.pcs = _Rows(sizeof(uint64_t))
        self.pending = _Rows(sizeof(PendingOp))
        self.last_block = -1

    @property
    def counts(self):
        """Counts so far, by the names in COUNTS."""
        values = (self.n_instructions, self.n_lane_instructions, self.n_memory, self.n_off, self.n_shared, self.n_local,
                  self.n_other, self.n_barriers, self.n_lines, self.n_sectors)
        return dict(zip(COUNTS, values, strict=True))

    cdef int fail(self, str problem) except -1:
        raise BuddysimError(f"{self.path}: line {self.line_number}: {problem}")

    cdef str shown(self, Cursor token):
        text = (<const char*>token.at)[:token.end - token.at].decode("ascii", "replace")
        return repr(text if len(text) <= 40 else text[:37] + "...")

    # -- text ---------------------------------------------------------------------------------------------------------

    def feed(self, bytes text):
        """Read a piece of a grouped trace; it may end anywhere."""
        cdef bytes whole = self.rest + text if self.rest else text
        cdef const unsigned char* start = whole
        cdef Cursor line
        cdef const unsigned char* end = start + len(whole)
        cdef const unsigned char* last
        line.at = start
        while line.at < end:
            last = line.at
            while last < end and last[0] != 10:
                last += 1
            if last == end:
                break
            line.end = last
            self.read_line(line)
            line.at = last + 1
        self.rest = whole[<Py_ssize_t>(line.at - start):]
        if len(self.rest) > 1 << 20:
            self.line_number += 1
            self.fail("a line of more than 1 MiB")

    def finish(self):
        """The text ends here."""
        cdef bytes last = self.rest
        cdef Cursor line
        self.rest = b""
        if last:
            line.at = last
            line.end = line.at + len(last)
            self.read_line(line)
        if self.in_block:
            self.fail("the file ends inside a thread block, expected #END_TB")

    def feed_lines(self, text, int prefix, const int64_t[::1] offsets, const uint64_t[::1] keys,
                   const int64_t[::1] numbers):
        """Read instruction lines of a raw trace in the order given.

        Parameters
        ----------
        text : buffer that holds the file
        prefix : fields before each instruction (block, warp and more)
        offsets : where each line starts
        keys : block number times warps per block plus warp, ascending
        numbers : line number of each line, for messages
        """
        cdef const unsigned char[::1] view = text
        cdef Py_ssize_t i, n = offsets.shape[0], size = view.shape[0]
        cdef uint64_t key
        cdef int64_t block
        cdef Cursor line
        self.prefix = prefix
        for i in range(n):
            self.line_number = numbers[i]
            key = keys[i]
            block = <int64_t>(key // self.block_warps)
            if not self.in_block or block != self.block:
                if self.in_block:
                    self.end_block()
                self.begin_block(block)
            if not self.in_warp or <int64_t>(key % self.block_warps) != self.warp:
                self.begin_warp(<int64_t>(key % self.block_warps))
            line.at = &view[0] + offsets[i]
            line.end = line.at
            while line.end < &view[0] + size and line.end[0] != 10:
                line.end += 1
            self.read_instruction(line, True)

    def end_lines(self):
        """The lines given to `feed_lines` were the kernel's last."""
        if self.in_block:
            self.end_block()

    cdef int read_line(self, Cursor line) except -1:
        cdef Cursor rest = line, token
        self.line_number += 1
        if not next_token(&rest, &token):
            return 0
        if token.at[0] == 35:  # '#'
            if token_is(token, b"#BEGIN_TB"):
                if self.in_block:
                    self.fail("#BEGIN_TB inside a thread block, expected #END_TB")
                self.in_block, self.have_block, self.in_warp = True, False, False
            elif token_is(token, b"#END_TB"):
                if not self.in_block or not self.have_block:
                    self.fail("#END_TB without a thread block")
                self.end_block()
            return 0
        if not self.in_block:
            self.fail(f"found {self.shown(token)} outside a thread block, expected #BEGIN_TB")
        if token_is(token, b"thread"):
            return self.read_block_line(rest)
        if token_is(token, b"cluster"):
            return 0
        if token_is(token, b"warp"):
            if not self.have_block:
                self.fail("a warp before 'thread block = x,y,z'")
            self.begin_warp(self.read_value(rest, "warp"))
            return 0
        if token_is(token, b"insts"):
            if not self.in_warp or self.have_count:
                self.fail("'insts =' without a warp")
            self.left = self.read_value(rest, "insts")
            self.have_count = True
            return 0
        if not self.in_warp or not self.have_count:
            self.fail(f"found {self.shown(token)}, expected 'warp =' and 'insts ='")
        if self.left == 0:
            self.fail("more instructions than 'insts =' says")
        self.left -= 1
        return self.read_instruction(line, False)

    cdef int64_t read_value(self, Cursor rest, str what) except -1:
        """The number after an equals sign."""
        cdef Cursor token
        cdef int64_t value = 0
        if not next_token(&rest, &token) or not token_is(token, b"=") or not next_token(&rest, &token) \
                or not parse_decimal(token, &value) or value < 0 or next_token(&rest, &token):
            self.fail(f"expected '{what} = number'")
        return value

    cdef int read_block_line(self, Cursor rest) except -1:
        cdef Cursor token, part
        cdef int64_t[3] place
        cdef int i
        if self.have_block:
            self.fail("a second 'thread block =' before #END_TB")
        if not next_token(&rest, &token) or not token_is(token, b"block") or not next_token(&rest, &token) \
                or not token_is(token, b"=") or not next_token(&rest, &token):
            self.fail("expected 'thread block = x,y,z'")
        for i in range(3):
            part.at = token.at
            while token.at < token.end and token.at[0] != 44:
                token.at += 1
            part.end = token.at
            if not parse_decimal(part, &place[i]) or not 0 <= place[i] < <int64_t>self.grid[i] \
                    or (token.at < token.end) != (i < 2):
                self.fail("expected 'thread block = x,y,z' inside the grid")
            token.at += 1
        self.begin_block((place[2] * <int64_t>self.grid[1] + place[1]) * <int64_t>self.grid[0] + place[0])
        return 0

    # -- blocks and warps ---------------------------------------------------------------------------------------------

    cdef int begin_block(self, int64_t number) except -1:
        cdef BlockRecord* block
        if number <= self.last_block:
            self.fail(f"thread block {number} after {self.last_block}, expected them in order")
        self.block = self.last_block = number
        self.in_block = self.have_block = True
        self.in_warp = False
        self.warp = -1
        self.block_start_warps = self.warps.n
        block = <BlockRecord*>self.blocks.add()
        block.block = <uint32_t>number
        block.first_warp = <uint32_t>self.warps.n
        block.n_warps = 0
        return 0

    cdef int end_block(self) except -1:
        if self.in_warp:
            self.end_warp()
        (<BlockRecord*>self.blocks.data)[self.blocks.n - 1].n_warps = <uint32_t>(self.warps.n - self.block_start_warps)
        self.in_block = self.have_block = False
        return 0

    cdef int begin_warp(self, int64_t number) except -1:
        cdef WarpRecord* warp
        if self.in_warp:
            self.end_warp()
        if not self.warp < number < <int64_t>self.block_warps:
            self.fail(f"warp {number} after {self.warp}, expected them in order, below {self.block_warps}")
        self.warp = number
        self.in_warp, self.have_count, self.left = True, False, 0
        warp = <WarpRecord*>self.warps.add()
        memset(warp, 0, sizeof(WarpRecord))
        warp.warp = <uint32_t>number
        warp.first_op = <uint32_t>self.ops.n
        self.now.cycles = self.now.steps = 0
        self.last_op_clock = self.now
        self.number = self.last_op_number = 0
        self.async_group = 1
        self.drop_async = True
        self.pending.n = 0
        memset(self.ready, 0, sizeof(self.ready))
        memset(self.loader, 0, sizeof(self.loader))
        memset(self.unit_free, 0, sizeof(self.unit_free))
        memset(self.unit_busy, 0, sizeof(self.unit_busy))
        return 0

    cdef int end_warp(self) except -1:
        cdef WarpRecord* warp = <WarpRecord*>self.warps.data + (self.warps.n - 1)
        if self.left:
            self.fail(f"{self.left} instructions of warp {self.warp} are missing")
        warp.n_ops = <uint32_t>self.ops.n - warp.first_op
        warp.tail_gap = saturated(self.number - self.last_op_number, 0xFFFFFFFF)
        warp.tail_cycles = saturated(advance(self.now.cycles, self.last_op_clock.cycles), 0xFFFFFFFF)
        warp.tail_steps = saturated(advance(self.now.steps, self.last_op_clock.steps), 0xFFFFFFFF)
        self.in_warp = False
        return 0

    # -- one instruction ----------------------------------------------------------------------------------------------

    cdef int read_instruction(self, Cursor line, bint raw) except -1:
        cdef Instruction instruction
        cdef Cursor token, name
        cdef int64_t width = 0
        for _ in range(self.prefix):
            if not next_token(&line, &token):
                self.fail(f"expected {self.prefix} numbers of block and warp first")
        if self.line_info and not next_token(&line, &token):
            self.fail("expected a source line number")
        if not next_token(&line, &token) or not parse_hex(token, &instruction.pc):
            self.fail(f"found {self.shown(token)}, expected the instruction's address")
        instruction.mask = self.read_mask(&line)
        instruction.n_lanes = popcount(instruction.mask)
        instruction.n_destinations = self.read_registers(&line, instruction.destinations)
        if not next_token(&line, &name) or not 65 <= name.at[0] <= 90:
            self.fail(f"found {self.shown(name)}, expected an opcode")
        instruction.opcode = self.find_opcode(name)
        instruction.n_sources = self.read_registers(&line, instruction.sources)
        if not next_token(&line, &token) or not parse_decimal(token, &width) or not 0 <= width <= 1024:
            self.fail(f"found {self.shown(token)}, expected the access width")
        if instruction.opcode.role == UNSUPPORTED:
            self.fail(f"{self.shown(name)} is not supported")
        instruction.has_memory = width > 0
        if width:
            self.read_addresses(&line, &instruction)
        instruction.immediate = 0
        if self.version >= 5:
            instruction.immediate = self.read_immediate(&line)
        if self.version >= 6:
            self.read_immediate(&line)
        # Raw traces show an asynchronous copy twice, its shared side first.
        if raw and instruction.opcode.role == ASYNC_COPY:
            self.drop_async = not self.drop_async
            if not self.drop_async:
                return 0
        if self.version >= 6:
            self.read_register_values(&line, &instruction)
        else:
            self.read_store_data(&line, &instruction)
        return self.issue(&instruction)

    cdef int64_t read_mask(self, Cursor* line) except -1:
        cdef Cursor token
        cdef uint64_t mask = 0
        if not next_token(line, &token) or token.end - token.at != 8 or not parse_hex(token, &mask) or mask >> 32:
            self.fail(f"found {self.shown(token)}, expected the active mask as 8 hexadecimal digits")
        return <int64_t>mask

    cdef int read_registers(self, Cursor* line, int* registers) except -1:
        """A count and that many registers; those that matter are kept."""
        cdef Cursor token
        cdef int64_t count = 0
        cdef int i, register = NO_REGISTER
        if not next_token(line, &token) or not parse_decimal(token, &count) or not 0 <= count <= MAX_OPERANDS:
            self.fail(f"found {self.shown(token)}, expected a number of registers")
        for i in range(<int>count):
            if not next_token(line, &token) or not parse_register(token, &register):
                self.fail(f"found {self.shown(token)}, expected a register")
            registers[i] = register
        return <int>count

    cdef OpcodeEntry find_opcode(self, Cursor name) except *:
        cdef bytes text = (<const char*>name.at)[:name.end - name.at]
        cdef OpcodeEntry* entry
        index = self.opcode_index.get(text)
        if index is None:
            if len(text) > 256:
                self.fail(f"found {self.shown(name)}, expected an opcode")
            found = self.classify(text.decode("ascii", "replace"))
            if not found.known:
                self.unknown_opcodes.add(text.decode("ascii", "replace").split(".")[0])
            index = self.opcodes.n
            entry = <OpcodeEntry*>self.opcodes.add()
            entry.role = found.role
            entry.width = found.width
            entry.registers = found.registers
            entry.bypass_l1 = found.bypass_l1
            entry.no_return = found.no_return
            entry.unit = found.unit
            entry.latency = found.latency
            entry.interval = found.interval
            entry.shared_by = found.shared_by
            if len(self.opcode_index) < 1 << 16:
                self.opcode_index[text] = index
        return (<OpcodeEntry*>self.opcodes.data)[<size_t>index]

    cdef int64_t read_immediate(self, Cursor* line) except? -1:
        cdef Cursor token
        cdef int64_t value = 0
        cdef uint64_t bits = 0
        if not next_token(line, &token):
            self.fail("the line ends early, expected an immediate")
        if not parse_decimal(token, &value):
            if token.end - token.at > 20 or not parse_hex_or_wide(token, &bits):
                self.fail(f"found {self.shown(token)}, expected an immediate")
            value = <int64_t>bits
        return value

    cdef int read_addresses(self, Cursor* line, Instruction* instruction) except -1:
        """The memory operand; addresses of the active lanes."""
        cdef Cursor token
        cdef int64_t mode = -1, step = 0
        cdef uint64_t address = 0
        cdef int lane
        if not next_token(line, &token) or not parse_decimal(token, &mode) or not 0 <= mode <= 2:
            self.fail(f"found {self.shown(token)}, expected an address mode from 0 to 2")
        if mode == 0:
            for lane in range(instruction.n_lanes):
                if not next_token(line, &token) or not parse_hex(token, &instruction.addresses[lane]):
                    self.fail(f"found {self.shown(token)}, expected the address of each active lane")
        else:
            if not next_token(line, &token) or not parse_hex(token, &address):
                self.fail(f"found {self.shown(token)}, expected a base address")
            if mode == 1:
                if not next_token(line, &token) or not parse_decimal(token, &step):
                    self.fail(f"found {self.shown(token)}, expected a stride")
                for lane in range(instruction.n_lanes):
                    instruction.addresses[lane] = address + <uint64_t>lane * <uint64_t>step
            else:
                for lane in range(instruction.n_lanes):
                    if lane:
                        if not next_token(line, &token) or not parse_decimal(token, &step):
                            self.fail(f"found {self.shown(token)}, expected {instruction.n_lanes - 1} distances")
                        address += <uint64_t>step
                    instruction.addresses[lane] = address
        for lane in range(instruction.n_lanes):
            if instruction.addresses[lane] >= ADDRESS_LIMIT:
                self.fail(f"the address {instruction.addresses[lane]:#x}, expected one below {ADDRESS_LIMIT:#x}")
        return 0

    # -- values -------------------------------------------------------------------------------------------------------

    cdef int read_store_data(self, Cursor* line, Instruction* instruction) except -1:
        """Nothing more, or STORE_DATA type registers REGr:Tt:value Tt:value ..."""
        cdef Cursor token, kind
        cdef int64_t count = 0, number = -1, lane = -1
        cdef uint8_t values[32][32]
        cdef uint8_t sizes[32]
        cdef uint64_t bits = 0
        cdef int i, width = instruction.opcode.width, at, n
        if not next_token(line, &token):
            return 0
        if not token_is(token, b"STORE_DATA"):
            self.fail(f"found {self.shown(token)}, expected the end of the line")
        if not next_token(line, &kind) or not next_token(line, &token) or not parse_decimal(token, &count) \
                or not 1 <= count <= 8:
            self.fail("expected STORE_DATA, a type and a number of registers")
        memset(sizes, 0, sizeof(sizes))
        while next_token(line, &token):
            if take_label(&token, b"REG", &number) and not 0 <= number < count:
                self.fail(f"found register {number} in STORE_DATA, expected 0 to {count - 1}")
            if number < 0 or not take_label(&token, b"T", &lane) or not 0 <= lane < 32:
                self.fail(f"found {self.shown(token)} in STORE_DATA, expected REGr:Tt:value or Tt:value")
            n = self.read_store_value(token, kind, &bits)
            at = <int>number * n
            if at + n <= 32:
                for i in range(n):
                    values[lane][at + i] = <uint8_t>(bits >> 8 * i)
                if sizes[lane] == at:
                    sizes[lane] = <uint8_t>(at + n)
        if self.image is None or not self.is_global(instruction) or instruction.opcode.role in (LOAD, GENERIC_LOAD):
            return 0
        n = 0
        for i in range(32):
            if instruction.mask >> i & 1:
                if sizes[i] and instruction.has_memory:
                    self.image.store(instruction.addresses[n], values[i], sizes[i] if sizes[i] < width else width)
                n += 1
        return 0

    cdef int read_store_value(self, Cursor token, Cursor kind, uint64_t* bits) except -1:
        """One lane's value; its number of bytes."""
        cdef int64_t number = 0
        cdef bint wide = kind.end - kind.at >= 2 and (kind.end - 2)[0] == 54 and (kind.end - 1)[0] == 52  # ..64
        if token.end - token.at > 2 and token.at[0] == 48 and (token.at[1] | 32) == 120:
            if not parse_hex(token, bits):
                self.fail(f"found {self.shown(token)}, expected a value")
            return 8 if wide and token.end - token.at > 10 else 4
        if kind.at[0] == 70:  # F: a decimal fraction
            try:
                value = float((<const char*>token.at)[:token.end - token.at])
                bits[0] = struct.unpack("<Q", struct.pack("<d", value))[0] if wide \
                    else struct.unpack("<I", struct.pack("<f", value))[0]
            except (ValueError, OverflowError):
                self.fail(f"found {self.shown(token)}, expected a value")
        else:
            if not parse_decimal(token, &number):
                self.fail(f"found {self.shown(token)}, expected a value")
            bits[0] = <uint64_t>number
        return 8 if wide else 4

    cdef int read_register_values(self, Cursor* line, Instruction* instruction) except -1:
        """NoVal, or Val, the number of destinations, and per register a count and that many values.

        Destinations come first, then the sources. A load tells what memory held, a store what it writes: its last
        source.
        """
        cdef Cursor token
        cdef int64_t n_destinations = 0, count = 0
        cdef uint64_t group[32]
        cdef uint64_t first[32]
        cdef int n_groups = 0, n_first = 0, n_group = 0, i
        cdef bint is_load = instruction.opcode.role in (LOAD, GENERIC_LOAD)
        if not next_token(line, &token):
            self.fail("the line ends early, expected Val or NoVal")
        if token_is(token, b"NoVal"):
            if next_token(line, &token):
                self.fail(f"found {self.shown(token)}, expected the end of the line")
            return 0
        if not token_is(token, b"Val") or not next_token(line, &token) or not parse_decimal(token, &n_destinations) \
                or not 0 <= n_destinations <= MAX_OPERANDS:
            self.fail("expected NoVal, or Val and a number of destinations")
        while next_token(line, &token):
            if not parse_decimal(token, &count) or not 0 <= count <= 32 or n_groups > 2 * MAX_OPERANDS:
                self.fail(f"found {self.shown(token)}, expected a number of values up to 32")
            for i in range(<int>count):
                if not next_token(line, &token) or not parse_hex(token, &group[i]):
                    self.fail(f"found {self.shown(token)}, expected {count} values")
            n_group = <int>count
            if n_groups == 0:
                n_first = n_group
                memcpy(first, group, sizeof(group))
            n_groups += 1
        if n_groups < n_destinations:
            self.fail(f"values of {n_groups} registers, expected {n_destinations}")
        if self.image is None or not self.is_global(instruction):
            return 0
        if is_load and n_destinations:
            return self.store_values(instruction, first, n_first)
        if not is_load and instruction.opcode.role != ATOMIC and n_groups > 1 and n_groups == instruction.n_sources:
            return self.store_values(instruction, group, n_group)
        return 0

    cdef int store_values(self, Instruction* instruction, const uint64_t* values, int count) except -1:
        """One 32-bit value per active lane, or one for all, to where the instruction points."""
        cdef int i, j, n = min(<int>instruction.opcode.width, 4)
        cdef uint8_t data[4]
        cdef uint64_t value
        if not instruction.has_memory or (count != instruction.n_lanes and count != 1):
            return 0
        for i in range(instruction.n_lanes):
            value = values[i if count > 1 else 0]
            for j in range(n):
                data[j] = <uint8_t>(value >> 8 * j)
            self.image.store(instruction.addresses[i], data, n)
        return 0

    # -- memory spaces ------------------------------------------------------------------------------------------------

    cdef bint is_global(self, Instruction* instruction) noexcept:
        return self.role_of(instruction) in (LOAD, STORE, ATOMIC, ASYNC_COPY)

    cdef int role_of(self, Instruction* instruction) noexcept:
        """The instruction's role, generic accesses resolved by their first address."""
        cdef int role = instruction.opcode.role
        cdef uint64_t address, shared_end, local_end
        if role != GENERIC_LOAD and role != GENERIC_STORE:
            return role
        if self.shared_base == 0 or self.local_base == 0 or instruction.n_lanes == 0:
            return SHARED
        shared_end = self.local_base if self.local_base > self.shared_base else self.shared_base + WINDOW_BYTES
        local_end = self.shared_base if self.shared_base > self.local_base else self.local_base + WINDOW_BYTES
        address = instruction.addresses[0]
        if self.shared_base <= address < shared_end:
            return SHARED
        if self.local_base <= address < local_end:
            return LOCAL_LOAD if role == GENERIC_LOAD else LOCAL_STORE
        return LOAD if role == GENERIC_LOAD else STORE

    # -- the scoreboard -----------------------------------------------------------------------------------------------

    cdef void use(self, size_t index, Clock clock) noexcept:
        """The result of the warp's operation `index` is used by the instruction that issues now."""
        cdef PendingOp* pending = <PendingOp*>self.pending.data + index
        cdef WarpRecord* warp = <WarpRecord*>self.warps.data + (self.warps.n - 1)
        cdef WarpOp* op = <WarpOp*>self.ops.data + warp.first_op + index
        if not pending.open:
            return
        pending.open = False
        op.use_distance = saturated(self.number - pending.number, 0xFFFFFFFF)
        op.use_cycles = saturated(advance(clock.cycles, pending.issued.cycles), 0xFFFFFFFF)
        op.use_steps = <uint16_t>saturated(advance(clock.steps, pending.issued.steps), 0xFFFF)

    cdef int issue(self, Instruction* instruction) except -1:
        """Let the instruction issue when its registers allow, and note what it means for memory."""
        cdef int role = self.role_of(instruction), i, j, register, n_registers = instruction.opcode.registers
        cdef uint64_t latency = instruction.opcode.latency, interval = instruction.opcode.interval
        cdef uint64_t passes = 1        # through shared memory, one for each word of the bank that most lanes want
        cdef int unit = instruction.opcode.unit
        cdef Clock clock, done, start
        cdef size_t index
        cdef bint waits_for_memory = False
        self.number += 1
        self.n_instructions += 1
        self.n_lane_instructions += instruction.n_lanes
        if instruction.has_memory:
            self.n_memory += 1
            if instruction.n_lanes == 0:
                self.n_off += 1

        clock.cycles, clock.steps = self.now.cycles + 1, self.now.steps
        for i in range(instruction.n_sources):
            register = instruction.sources[i]
            if register != NO_REGISTER and later(self.ready[register], clock):
                clock = self.ready[register]
        for i in range(instruction.n_destinations):
            for j in range(n_registers):
                register = nth_register(instruction.destinations[i], j)
                if register != NO_REGISTER and later(self.ready[register], clock):
                    clock = self.ready[register]
        # A unit takes an instruction per interval; a few can queue for it.
        start = self.unit_free[unit]
        if start.cycles > UNIT_QUEUE * interval:
            start.cycles -= UNIT_QUEUE * interval
            if later(start, clock):
                clock = start
        start = self.unit_free[unit] if later(self.unit_free[unit], clock) else clock
        self.unit_free[unit].cycles, self.unit_free[unit].steps = start.cycles + interval, start.steps
        self.now = clock
        for i in range(instruction.n_sources):
            register = instruction.sources[i]
            if register != NO_REGISTER and self.loader[register]:
                self.use(self.loader[register] - 1, clock)
        for i in range(instruction.n_destinations):
            for j in range(n_registers):
                register = nth_register(instruction.destinations[i], j)
                if register != NO_REGISTER and self.loader[register]:
                    self.use(self.loader[register] - 1, clock)
                    self.loader[register] = 0
        if role == MEMORY_FENCE:
            for index in range(self.pending.n):
                self.use(index, clock)
        elif role == ASYNC_COMMIT:
            self.async_group += 1
        elif role == ASYNC_WAIT:
            self.wait_async(instruction.immediate, clock)

        if role == BARRIER and instruction.n_lanes:
            self.n_barriers += 1
            self.add_op(instruction, OP_BARRIER, NULL, 0, clock)
        elif instruction.has_memory and instruction.n_lanes:
            if role == LOAD or role == STORE or role == ATOMIC or role == ASYNC_COPY:
                self.add_access(instruction, role, clock)
                waits_for_memory = True
            elif role == SHARED:
                self.n_shared += 1
                passes = bank_conflicts(instruction)
                latency += passes - 1
            elif role == LOCAL_LOAD or role == LOCAL_STORE:
                self.n_local += 1
                if self.include_local:
                    self.add_local(instruction, role, clock)
                    waits_for_memory = True
            else:
                self.n_other += 1

        self.unit_busy[unit] += interval * passes * instruction.opcode.shared_by
        done.cycles, done.steps = start.cycles + latency, start.steps + 1
        for i in range(instruction.n_destinations):
            for j in range(n_registers):
                register = nth_register(instruction.destinations[i], j)
                if register == NO_REGISTER:
                    continue
                if waits_for_memory:
                    self.loader[register] = self.pending.n
                    self.ready[register] = clock
                else:
                    self.ready[register] = done
        return 0

    cdef void wait_async(self, int64_t newest, Clock clock) noexcept:
        """DEPBAR: all groups of asynchronous copies but the `newest` ones that were closed have arrived."""
        cdef size_t index
        cdef uint64_t closed = self.async_group - 1
        cdef PendingOp* pending
        for index in range(self.pending.n):
            pending = <PendingOp*>self.pending.data + index
            if pending.group and pending.group <= closed and closed - pending.group >= <uint64_t>max(newest, 0):
                self.use(index, clock)

    cdef uint16_t take_unit_slots(self, uint64_t instructions) noexcept:
        """How many more cycles than `instructions` of a scheduler's busiest unit go to those since the last operation."""
        cdef uint64_t busiest = instructions
        cdef int unit
        for unit in range(N_UNITS):
            busiest = max(busiest, self.unit_busy[unit])
            self.unit_busy[unit] = 0
        return <uint16_t>saturated(busiest - instructions, 0xFFFF)

    cdef WarpOp* add_op(
        self, Instruction* instruction, int kind, const uint64_t* lines, int n_lines, Clock clock
    ) except NULL:
        cdef PendingOp* pending = <PendingOp*>self.pending.add()
        cdef size_t first_line = self.lines.n
        cdef WarpOp* op
        if n_lines:
            memcpy(self.lines.add(n_lines), lines, n_lines * sizeof(uint64_t))
        if self.lines.n > 0xFFFFFFFF or self.ops.n >= 0xFFFFFFFF:
            self.fail("a thread block with more than 2^32 operations or lines")
        (<uint64_t*>self.pcs.add())[0] = instruction.pc
        op = <WarpOp*>self.ops.add()
        memset(op, 0, sizeof(WarpOp))
        op.first_line = <uint32_t>first_line
        op.gap = saturated(self.number - self.last_op_number - 1, 0xFFFFFFFF)
        op.unit_slots = self.take_unit_slots(self.number - self.last_op_number)
        op.chain_cycles = saturated(advance(clock.cycles, self.last_op_clock.cycles), 0xFFFFFFFF)
        op.chain_steps = saturated(advance(clock.steps, self.last_op_clock.steps), 0xFFFFFFFF)
        # A later path can have fewer cycles and more steps: what can't be subtracted is left for the next operation.
        self.last_op_clock.cycles += op.chain_cycles
        self.last_op_clock.steps += op.chain_steps
        op.n_lines = <uint8_t>n_lines
        op.kind = <uint8_t>kind
        op.bytes_per_lane = 0 if kind == OP_BARRIER else instruction.opcode.width
        op.flags = FLAG_TIMED
        pending.issued = self.last_op_clock
        pending.number = self.number
        pending.group = 0
        pending.open = kind == OP_LOAD or kind == OP_ATOMIC
        self.last_op_number = self.number
        self.n_lines += n_lines
        for i in range(n_lines):
            self.n_sectors += popcount(lines[i] & 15)
        return op

    cdef int add_access(self, Instruction* instruction, int role, Clock clock) except -1:
        """An access to global memory."""
        cdef uint64_t lines[MAX_OP_LINES]
        cdef int i, kind = OP_LOAD if role in (LOAD, ASYNC_COPY) else OP_STORE if role == STORE else OP_ATOMIC
        cdef bint returns = False
        cdef WarpOp* op
        op = self.add_op(instruction, kind, lines, coalesce_op(
            instruction.addresses, instruction.n_lanes, instruction.opcode.width, kind == OP_STORE, lines), clock)
        for i in range(instruction.n_destinations):
            returns = returns or instruction.destinations[i] != NO_REGISTER
        if kind == OP_ATOMIC and (instruction.opcode.no_return or not returns):
            op.flags |= FLAG_NO_RETURN
        if instruction.opcode.bypass_l1:
            op.flags |= FLAG_BYPASS_L1
        if role == ASYNC_COPY:
            (<PendingOp*>self.pending.data)[self.pending.n - 1].group = self.async_group
        return 0

    cdef int add_local(self, Instruction* instruction, int role, Clock clock) except -1:
        """An access to local memory: every thread's 4-byte words lie beside those of its neighbours."""
        cdef uint64_t addresses[32]
        cdef uint64_t lines[MAX_OP_LINES * MAX_LOCAL_PIECES]
        cdef uint64_t threads = min(self.grid_threads, <uint64_t>LOCAL_THREADS), thread, offset
        cdef int lane, n, piece, n_lines = 0, width = instruction.opcode.width, first
        for piece in range((width + 3) // 4):
            n = 0
            for lane in range(32):
                if instruction.mask >> lane & 1:
                    thread = (<uint64_t>self.block * self.block_threads + <uint64_t>self.warp * 32 + lane) % threads
                    offset = (instruction.addresses[n] & (WINDOW_BYTES - 1)) + 4 * piece
                    addresses[n] = LOCAL_REGION + ((offset >> 2) * threads + thread) * 4 + (offset & 3)
                    n += 1
            n_lines += coalesce_op(addresses, n, min(width, 4), role == LOCAL_STORE, lines + n_lines)
        first = 0
        while first < n_lines:  # at most MAX_OP_LINES lines to an operation
            if first:
                self.number += 1
                self.n_instructions += 1
            self.add_op(instruction, OP_LOAD if role == LOCAL_LOAD else OP_STORE, lines + first,
                        min(n_lines - first, <int>MAX_OP_LINES), clock)
            first += MAX_OP_LINES
        return 0

    # -- results ------------------------------------------------------------------------------------------------------

    def take(self):
        """Records of the blocks that are complete: blocks, warps, ops, lines, and the program counter of each op."""
        if self.in_block:
            return self.take_complete()
        return (self.blocks.take(BLOCK_DTYPE), self.warps.take(WARP_DTYPE), self.ops.take(OP_DTYPE),
                self.lines.take(LINE_DTYPE), self.pcs.take(np.uint64))

    cdef object take_complete(self):
        """As `take`, while a block is open: its records stay."""
        cdef size_t blocks = self.blocks.n, warps = self.warps.n, ops = self.ops.n, lines = self.lines.n, i
        cdef size_t keep_blocks, first_warp = warps, first_op = ops, first_line = lines
        if self.have_block:
            keep_blocks = 1
            first_warp = self.block_start_warps
            if first_warp < warps:
                first_op = (<WarpRecord*>self.warps.data)[first_warp].first_op
            if first_op < ops:
                first_line = (<WarpOp*>self.ops.data)[first_op].first_line
        else:
            keep_blocks = 0
        taken = (
            self.cut(self.blocks, blocks - keep_blocks, BLOCK_DTYPE), self.cut(self.warps, first_warp, WARP_DTYPE),
            self.cut(self.ops, first_op, OP_DTYPE), self.cut(self.lines, first_line, LINE_DTYPE),
            self.cut(self.pcs, first_op, np.uint64),
        )
        for i in range(self.blocks.n):
            (<BlockRecord*>self.blocks.data)[i].first_warp -= <uint32_t>first_warp
        for i in range(self.warps.n):
            (<WarpRecord*>self.warps.data)[i].first_op -= <uint32_t>first_op
        for i in range(self.ops.n):
            (<WarpOp*>self.ops.data)[i].first_line -= <uint32_t>first_line
        self.block_start_warps = 0
        return taken

    cdef object cut(self, _Rows rows, size_t count, object dtype):
        """The first `count` rows; the others move to the front."""
        cdef size_t left = rows.n - count, i
        rows.n = count
        taken = rows.take(dtype)
        for i in range(<size_t>(left * rows.row_bytes)):  # forwards, so overlap is harmless
            rows.data[i] = rows.data[i + count * rows.row_bytes]
        rows.n = left
        return taken


cdef inline int nth_register(int register, int n) noexcept nogil:
    """The n-th of consecutive registers, NO_REGISTER past the file's end."""
    if register == NO_REGISTER or (register & 255) + n >= 255:
        return NO_REGISTER
    return register + n


cdef inline bint parse_hex_or_wide(Cursor token, uint64_t* bits) noexcept nogil:
    """An immediate that isn't a short decimal number: 0x.., or one of up to 20 digits, of which the value is unused."""
    if token.end - token.at > 2 and token.at[1] | 32 == 120:
        return parse_hex(token, bits)
    bits[0] = 0
    if token.at < token.end and token.at[0] == 45:
        token.at += 1
    while token.at < token.end:
        if not 48 <= token.at[0] <= 57:
            return False
        token.at += 1
    return True


cdef bint take_label(Cursor* token, const char* label, int64_t* number) noexcept nogil:
    """Take `label`, a number and a colon off the token's front, if they are there."""
    cdef Cursor at = token[0], digits
    while label[0] != 0:
        if at.at >= at.end or at.at[0] != <unsigned char>label[0]:
            return False
        at.at += 1
        label += 1
    digits.at = at.at
    while at.at < at.end and at.at[0] != 58:
        at.at += 1
    digits.end = at.at
    if at.at >= at.end or not parse_decimal(digits, number):
        return False
    token.at = at.at + 1
    return True


cdef int bank_conflicts(const Instruction* instruction) noexcept nogil:
    """Most distinct words that one of the 32 shared-memory banks has to serve."""
    cdef uint64_t words[32]
    cdef int in_bank[32]
    cdef int lane, other, most = 1
    cdef bint repeated
    memset(in_bank, 0, sizeof(in_bank))
    for lane in range(instruction.n_lanes):
        words[lane] = instruction.addresses[lane] >> 2
        repeated = False
        for other in range(lane):
            if words[other] == words[lane]:
                repeated = True
                break
        if not repeated:
            in_bank[words[lane] & 31] += 1
            most = max(most, in_bank[words[lane] & 31])
    return most


def index_lines(path, text, header, int64_t first_line):
    """Find the instruction lines of a raw trace's text, which isn't empty.

    Returns
    -------
    offsets : where each line starts
    keys : block number times warps per block plus warp
    numbers : line numbers
    """
    cdef const unsigned char[::1] view = text
    cdef Py_ssize_t n = view.shape[0], start
    cdef Cursor line, token
    cdef const unsigned char* end
    cdef int64_t number = first_line, value
    cdef int64_t[4] place
    cdef uint64_t[3] grid
    cdef uint64_t block_warps = header.block_warps
    cdef _Rows offsets = _Rows(8), keys = _Rows(8), numbers = _Rows(8)
    cdef int i
    grid[0], grid[1], grid[2] = header.grid
    end = &view[0] + n
    line.at = &view[0]
    while line.at < end:
        line.end = line.at
        while line.end < end and line.end[0] != 10:
            line.end += 1
        number += 1
        start = line.at - &view[0]
        if next_token(&line, &token) and token.at[0] != 35:
            for i in range(4):
                if i and not next_token(&line, &token):
                    token.end = token.at
                if not parse_decimal(token, &place[i]) or place[i] < 0 \
                        or place[i] >= <int64_t>(grid[i] if i < 3 else block_warps):
                    raise BuddysimError(
                        f"{path}: line {number}: expected the block's x y z inside the grid and the warp's number")
            (<int64_t*>offsets.add())[0] = start
            value = (place[2] * <int64_t>grid[1] + place[1]) * <int64_t>grid[0] + place[0]
            (<uint64_t*>keys.add())[0] = <uint64_t>value * block_warps + <uint64_t>place[3]
            (<int64_t*>numbers.add())[0] = number
        line.at = line.end + 1
    return offsets.take(np.int64), keys.take(np.uint64), numbers.take(np.int64)
