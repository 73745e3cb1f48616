"""Times each warp's instruction stream and makes its operations.

A warp issues in order, at most one instruction per cycle. An instruction waits for its registers: for a fixed-latency
producer, until the end of its execution plus the pipeline latency. An execution unit starts one instruction per
initiation interval; a few instructions can queue for it before issue waits. Loads return at once in this model. Their
first use delays a warp, which `use_*` of an operation describes.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from buddysim.importers.accelsim.instruction cimport (
    ASYNC_COMMIT, ASYNC_COPY, ASYNC_WAIT, ATOMIC, BARRIER, LOAD, LOCAL_LOAD, LOCAL_STORE, MEMORY_FENCE, NO_REGISTER,
    SHARED, STORE, WINDOW_BYTES, Instruction,
)
from buddysim.importers.rows cimport Rows
from buddysim.trace.coalesce cimport MAX_OP_LINES, coalesce_op, atomic_conflicts, bank_words
from buddysim.trace.records cimport (
    ATOMIC_CONFLICTS_SHIFT, BANK_WORDS_SHIFT, FLAG_BYPASS_L1, FLAG_NO_RETURN, FLAG_TIMED, OP_ATOMIC, OP_BARRIER, OP_LOAD, OP_STORE,
    WarpOp,
    WarpRecord,
)

cdef extern from *:
    int popcount "__builtin_popcount"(unsigned int x) noexcept nogil

cdef enum:
    # Threads that share one interleaved local memory: 2048 on each of 80 SMs, as in Accel-Sim.
    LOCAL_THREADS = 2048 * 80
    MAX_LOCAL_WORDS = 8        # of 4 B per lane

# Addresses beyond any that a GPU has, for local memory as the hardware interleaves it.
cdef uint64_t LOCAL_REGION = <uint64_t>1 << 60


cdef inline bint later(DependenceClock a, DependenceClock b) noexcept nogil:
    return a.cycles + NOMINAL_STEP * a.steps > b.cycles + NOMINAL_STEP * b.steps


cdef inline uint64_t advance(uint64_t now, uint64_t then) noexcept nogil:
    return now - then if now > then else 0


cdef inline uint32_t saturated(uint64_t value, uint64_t most) noexcept nogil:
    return <uint32_t>(value if value < most else most)


cdef inline int nth_register(int register, int n) noexcept nogil:
    """Return the n-th of consecutive registers, NO_REGISTER past the end of the register file."""
    if register == NO_REGISTER or (register & 255) + n >= 255:
        return NO_REGISTER
    return register + n


cdef int bank_conflicts(const Instruction* instruction) noexcept nogil:
    """Return the largest number of distinct words in one of the 32 shared-memory banks."""
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


cdef class WarpStream(InstructionReader):
    def __cinit__(self, path, header, classify, *, first_line=0, include_local=False, image=None):
        self.include_local = include_local
        self.block_threads = header.block[0] * header.block[1] * header.block[2]
        self.grid_threads = self.block_threads * header.grid_blocks
        self.warps = Rows(sizeof(WarpRecord))
        self.ops = Rows(sizeof(WarpOp))
        self.lines = Rows(sizeof(uint64_t))
        self.pcs = Rows(sizeof(uint64_t))
        self.pending = Rows(sizeof(PendingOp))

    cdef int start_warp(self, int64_t number) except -1:
        """Begin a warp with all registers ready."""
        cdef WarpRecord* warp = <WarpRecord*>self.warps.add()
        self.warp = number
        memset(warp, 0, sizeof(WarpRecord))
        warp.warp = <uint32_t>number
        warp.first_op = <uint32_t>self.ops.n
        self.now.cycles = self.now.steps = 0
        self.last_op_clock = self.written = self.now
        self.number = self.last_op_number = 0
        self.async_group = 1
        self.drop_async = True
        self.pending.n = 0
        memset(self.ready, 0, sizeof(self.ready))
        memset(self.loader, 0, sizeof(self.loader))
        memset(self.unit_free, 0, sizeof(self.unit_free))
        memset(self.unit_busy, 0, sizeof(self.unit_busy))
        return 0

    cdef void close_warp(self) noexcept:
        """End a warp after its last issue; it ends when all instructions have executed."""
        cdef WarpRecord* warp = <WarpRecord*>self.warps.data + (self.warps.n - 1)
        cdef DependenceClock end = self.now
        # Pending execution continues after a one-cycle instruction such as EXIT, whose end the replay determines.
        if self.written.steps and self.written.cycles:
            self.written.cycles -= 1
            self.written.steps -= 1
            if later(self.written, end):
                end = self.written
        warp.n_ops = <uint32_t>self.ops.n - warp.first_op
        warp.tail_gap_instructions = saturated(self.number - self.last_op_number, 0xFFFFFFFF)
        warp.tail_critical_path_cycles = saturated(advance(end.cycles, self.last_op_clock.cycles), 0xFFFFFFFF)
        warp.tail_critical_path_hops = saturated(advance(end.steps, self.last_op_clock.steps), 0xFFFFFFFF)
        warp.tail_unit_busy_slots = saturated(self.take_unit_busy_slots(self.number - self.last_op_number), 0xFFFFFFFF)

    cdef int issue(self, Instruction* instruction) except -1:
        """Issue the instruction when its registers and unit are ready, and record its memory operations."""
        cdef int role = self.role_of(instruction), unit = instruction.opcode.unit
        cdef uint64_t latency = instruction.opcode.latency, interval = instruction.opcode.interval
        cdef uint64_t passes = 1        # through shared memory, one for each distinct word of the busiest bank
        cdef DependenceClock clock, done, start
        cdef size_t index
        cdef bint waits_for_memory = False
        self.number += 1
        self.last_pc = max(self.last_pc, instruction.pc)
        self.n_instructions += 1
        self.n_lane_instructions += instruction.n_lanes
        if instruction.has_memory:
            self.n_memory += 1
            if instruction.n_lanes == 0:
                self.n_off += 1

        clock = self.registers_ready(instruction)
        # A unit starts one instruction per initiation interval; a few can queue for it.
        start = self.unit_free[unit]
        if start.cycles > UNIT_QUEUE * interval:
            start.cycles -= UNIT_QUEUE * interval
            if later(start, clock):
                clock = start
        start = self.unit_free[unit] if later(self.unit_free[unit], clock) else clock
        self.unit_free[unit].cycles, self.unit_free[unit].steps = start.cycles + interval, start.steps
        self.now = clock
        self.use_registers(instruction, clock)
        if role == MEMORY_FENCE:
            for index in range(self.pending.n):
                self.use(index, clock)
        elif role == ASYNC_COMMIT:
            self.async_group += 1
        elif role == ASYNC_WAIT:
            self.wait_async(instruction.immediate, clock)

        if role == SHARED and instruction.has_memory and instruction.n_lanes:
            passes = bank_conflicts(instruction)
            latency += passes - 1
        self.unit_busy[unit] += interval * passes * instruction.opcode.shared_by
        if role == BARRIER and instruction.n_lanes:
            self.n_barriers += 1
            self.add_op(instruction, OP_BARRIER, NULL, 0, clock)
        elif instruction.has_memory and instruction.n_lanes:
            if role == LOAD or role == STORE or role == ATOMIC or role == ASYNC_COPY:
                self.add_access(instruction, role, clock)
                waits_for_memory = True
            elif role == SHARED:
                self.n_shared += 1
            elif role == LOCAL_LOAD or role == LOCAL_STORE:
                self.n_local += 1
                if self.include_local:
                    self.add_local(instruction, role, clock)
                    waits_for_memory = True
            else:
                self.n_other += 1

        done.cycles, done.steps = start.cycles + latency, start.steps + 1
        if waits_for_memory:
            self.write_registers(instruction, clock, self.pending.n)
        else:
            self.write_registers(instruction, done, 0)
            if later(done, self.written):
                self.written = done
        return 0

    cdef DependenceClock registers_ready(self, Instruction* instruction) noexcept:
        """Return the first cycle after the last issue in which no write to the instruction's registers is pending."""
        cdef DependenceClock clock
        cdef int i, j, register
        clock.cycles, clock.steps = self.now.cycles + 1, self.now.steps
        for i in range(instruction.n_sources):
            register = instruction.sources[i]
            if register != NO_REGISTER and later(self.ready[register], clock):
                clock = self.ready[register]
        for i in range(instruction.n_destinations):
            for j in range(instruction.opcode.registers):
                register = nth_register(instruction.destinations[i], j)
                if register != NO_REGISTER and later(self.ready[register], clock):
                    clock = self.ready[register]
        return clock

    cdef void use_registers(self, Instruction* instruction, DependenceClock clock) noexcept:
        """Record the first use of operations whose results the instruction reads or overwrites."""
        cdef int i, j, register
        for i in range(instruction.n_sources):
            register = instruction.sources[i]
            if register != NO_REGISTER and self.loader[register]:
                self.use(self.loader[register] - 1, clock)
        for i in range(instruction.n_destinations):
            for j in range(instruction.opcode.registers):
                register = nth_register(instruction.destinations[i], j)
                if register != NO_REGISTER and self.loader[register]:
                    self.use(self.loader[register] - 1, clock)
                    self.loader[register] = 0

    cdef void write_registers(self, Instruction* instruction, DependenceClock ready, size_t loader) noexcept:
        """Set when the destinations are ready; `loader`: 1 + index in `pending` of the writing operation, or 0."""
        cdef int i, j, register
        for i in range(instruction.n_destinations):
            for j in range(instruction.opcode.registers):
                register = nth_register(instruction.destinations[i], j)
                if register != NO_REGISTER:
                    self.ready[register] = ready
                    self.loader[register] = loader

    cdef void use(self, size_t index, DependenceClock clock) noexcept:
        """Record that the issuing instruction uses the result of operation `index`."""
        cdef PendingOp* pending = <PendingOp*>self.pending.data + index
        cdef WarpRecord* warp = <WarpRecord*>self.warps.data + (self.warps.n - 1)
        cdef WarpOp* op = <WarpOp*>self.ops.data + warp.first_op + index
        if not pending.open:
            return
        pending.open = False
        op.use_distance = saturated(self.number - pending.number, 0xFFFFFFFF)
        op.use_cycles = saturated(advance(clock.cycles, pending.issued.cycles), 0xFFFFFFFF)
        op.use_hops = <uint16_t>saturated(advance(clock.steps, pending.issued.steps), 0xFFFF)

    cdef void wait_async(self, int64_t newest, DependenceClock clock) noexcept:
        """Execute DEPBAR: all closed groups of asynchronous copies except the `newest` ones have arrived."""
        cdef size_t index
        cdef uint64_t closed = self.async_group - 1
        cdef PendingOp* pending
        for index in range(self.pending.n):
            pending = <PendingOp*>self.pending.data + index
            if pending.group and pending.group <= closed and closed - pending.group >= <uint64_t>max(newest, 0):
                self.use(index, clock)

    cdef uint64_t take_unit_busy_slots(self, uint64_t instructions) noexcept:
        """Return the cycles of the busiest unit since the last operation, in excess of one per instruction."""
        cdef uint64_t busiest = instructions
        cdef int unit
        for unit in range(N_UNITS):
            busiest = max(busiest, self.unit_busy[unit])
            self.unit_busy[unit] = 0
        return busiest - instructions

    cdef WarpOp* add_op(
        self, Instruction* instruction, int kind, const uint64_t* lines, int n_lines, DependenceClock clock
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
        op.gap_instructions = saturated(self.number - self.last_op_number - 1, 0xFFFFFFFF)
        op.unit_busy_slots = <uint16_t>saturated(self.take_unit_busy_slots(self.number - self.last_op_number), 0xFFFF)
        op.critical_path_cycles = saturated(advance(clock.cycles, self.last_op_clock.cycles), 0xFFFFFFFF)
        op.critical_path_hops = saturated(advance(clock.steps, self.last_op_clock.steps), 0xFFFFFFFF)
        # A later path can have fewer cycles and more hops: the excess is left for the next operation.
        self.last_op_clock.cycles += op.critical_path_cycles
        self.last_op_clock.steps += op.critical_path_hops
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

    cdef int add_access(self, Instruction* instruction, int role, DependenceClock clock) except -1:
        """Add an access to global memory."""
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
        if kind == OP_ATOMIC:
            op.flags |= <uint8_t>(atomic_conflicts(
                instruction.addresses, instruction.n_lanes, instruction.opcode.width) << ATOMIC_CONFLICTS_SHIFT)
        else:
            op.flags |= <uint8_t>(bank_words(
                instruction.addresses, instruction.n_lanes, instruction.opcode.width, lines, op.n_lines) << BANK_WORDS_SHIFT)
        if instruction.opcode.bypass_l1:
            op.flags |= FLAG_BYPASS_L1
        if role == ASYNC_COPY:
            (<PendingOp*>self.pending.data)[self.pending.n - 1].group = self.async_group
        return 0

    cdef int add_local(self, Instruction* instruction, int role, DependenceClock clock) except -1:
        """Add an access to local memory: 4-byte words of neighbouring threads are interleaved."""
        cdef uint64_t addresses[32]
        cdef uint64_t lines[MAX_OP_LINES * MAX_LOCAL_WORDS]
        cdef uint64_t threads = min(self.grid_threads, <uint64_t>LOCAL_THREADS), thread, offset
        cdef int lane, n, word, n_lines = 0, width = instruction.opcode.width, first
        for word in range((width + 3) // 4):
            n = 0
            for lane in range(32):
                if instruction.mask >> lane & 1:
                    thread = (<uint64_t>self.block * self.block_threads + <uint64_t>self.warp * 32 + lane) % threads
                    offset = (instruction.addresses[n] & (WINDOW_BYTES - 1)) + 4 * word
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
