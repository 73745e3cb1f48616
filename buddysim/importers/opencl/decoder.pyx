"""Decodes packed warp records and coalesces their lanes."""
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from buddysim.base.errors import BuddysimError
from buddysim.importers.opencl import assumptions
from buddysim.importers.rows cimport Rows
from buddysim.trace.coalesce cimport MAX_BYTES_PER_LANE, MAX_OP_LINES, coalesce_op, atomic_conflicts, bank_words
from buddysim.trace.records cimport (
    ATOMIC_CONFLICTS_SHIFT, BANK_WORDS_SHIFT, OP_ATOMIC, OP_LOAD, OP_STORE, BlockRecord, WarpOp, WarpRecord
)
from buddysim.trace.records import BLOCK_DTYPE, LINE_DTYPE, OP_DTYPE, WARP_DTYPE

cdef extern from *:
    int popcount "__builtin_popcount"(unsigned int x) noexcept nogil

cdef uint64_t ADDRESS_LIMIT = <uint64_t>1 << 62

cdef enum DecodeStop:
    NEED_DATA = 0
    NEXT_LAUNCH
    NEW_LAUNCH
    NO_MEMORY
    BAD_OP
    BAD_LANES
    BAD_ADDRESS
    BAD_BLOCK
    BAD_WARP
    BAD_LAUNCH

PROBLEMS = {
    BAD_OP: "an operation that isn't 0 to 2, or lanes that aren't 1 to 128 bytes wide",
    BAD_LANES: "its number of lanes doesn't match its mask",
    BAD_ADDRESS: "an address beyond 2^62",
    BAD_BLOCK: "its work-group is out of order or outside the launch",
    BAD_WARP: "its warp is out of order or outside the work-group",
    BAD_LAUNCH: "its launch comes after a later one",
}


cdef class PackedDecoder:
    """Reads records launch by launch.

    Parameters
    ----------
    path : of the file, for messages
    first_launch, end_launch : the launches to decode; other records are skipped
    """
    cdef readonly long finished         # the launch whose records are complete for `take`, or -1
    cdef str path
    cdef uint32_t first_launch, end_launch
    cdef bytes data
    cdef size_t at, read_before
    cdef long current                   # launch being decoded, -1: none
    cdef long last_launch
    cdef uint64_t grid_blocks, block_warps
    cdef long block, warp
    cdef Rows blocks, warps, ops, lines
    cdef uint64_t n_ops, n_lanes
    cdef uint32_t gap_first, gap, tail, in_flight

    def __cinit__(self, path, first_launch, end_launch):
        self.path = str(path)
        self.first_launch, self.end_launch = first_launch, end_launch
        self.data = b""
        self.current = self.last_launch = self.finished = self.block = self.warp = -1
        self.gap_first, self.gap, self.tail = assumptions.FIRST_COMPUTE_GAP, assumptions.COMPUTE_GAP, assumptions.TAIL
        self.in_flight = assumptions.LOADS_IN_FLIGHT
        self.blocks = Rows(sizeof(BlockRecord))
        self.warps = Rows(sizeof(WarpRecord))
        self.ops = Rows(sizeof(WarpOp))
        self.lines = Rows(sizeof(uint64_t))

    @property
    def launch(self):
        """The launch being decoded; -1: none."""
        return self.current

    @property
    def passed(self):
        """Whether all launches to decode have been read."""
        return self.current < 0 and self.last_launch >= 0 and self.last_launch >= self.end_launch

    @property
    def counts(self):
        """Return the numbers of operations and lane accesses decoded so far."""
        return {"operations": self.n_ops, "lanes": self.n_lanes}

    def set_kernel(self, grid_blocks, block_warps):
        """Set the size of the launch that `step` has just reached."""
        self.grid_blocks, self.block_warps = grid_blocks, block_warps

    def push(self, bytes data):
        """Append the next piece of the file; it may end anywhere."""
        self.read_before += self.at
        self.data = self.data[<Py_ssize_t>self.at:] + data
        self.at = 0

    def step(self):
        """Decode until a launch begins (`launch`: call `set_kernel`) or ends (`finished`: call `take`).

        Return False if more data is needed.
        """
        cdef const uint8_t* data = self.data
        cdef size_t n = len(self.data)
        cdef int stop
        self.finished = -1
        with nogil:
            stop = self.decode(data, n)
        if stop == NEED_DATA:
            return False
        if stop == NEXT_LAUNCH:
            self.finished = self.current
            self.current = -1
            return True
        if stop == NEW_LAUNCH:
            return True
        if stop == NO_MEMORY:
            raise MemoryError("no memory for a launch's records")
        raise BuddysimError(f"{self.path}: record at offset {self.read_before + self.at}: {PROBLEMS[stop]}")

    def finish(self):
        """End the file; `finished` is the last launch, if one was open."""
        if self.at != <size_t>len(self.data):
            raise BuddysimError(f"{self.path}: the file ends inside the record at offset {self.read_before + self.at}")
        self.end_warp()
        self.finished, self.current = self.current, -1

    cdef int decode(self, const uint8_t* data, size_t n) noexcept nogil:
        cdef PackedRecord record
        cdef size_t size
        cdef int stop
        while self.at + sizeof(PackedRecord) <= n:
            memcpy(&record, data + self.at, sizeof(PackedRecord))
            if record.n_lanes < 1 or record.n_lanes > 32 or popcount(record.mask) != record.n_lanes:
                return BAD_LANES
            size = sizeof(PackedRecord) + 4 * <size_t>(record.n_lanes - 1)
            if self.at + size > n:
                return NEED_DATA
            if <long>record.launch != self.current:
                if <long>record.launch < self.last_launch:
                    return BAD_LAUNCH
                if self.current >= 0:
                    self.end_warp()
                    return NEXT_LAUNCH
                self.last_launch = record.launch
                if self.first_launch <= record.launch < self.end_launch:
                    self.current = record.launch
                    self.block = self.warp = -1
                    return NEW_LAUNCH
            else:
                stop = self.add(&record, data + self.at + sizeof(PackedRecord))
                if stop != NEED_DATA:
                    return stop
            self.at += size
        return NEED_DATA

    cdef int add(self, const PackedRecord* record, const uint8_t* distances) noexcept nogil:
        cdef uint64_t addresses[32]
        cdef int32_t distance
        cdef int lane
        cdef BlockRecord* block
        cdef WarpRecord* warp
        cdef WarpOp* op
        cdef uint64_t* lines
        if record.op > 2 or record.bytes_per_lane < 1 or record.bytes_per_lane > MAX_BYTES_PER_LANE:
            return BAD_OP
        if record.address >= ADDRESS_LIMIT:
            return BAD_ADDRESS
        addresses[0] = record.address
        for lane in range(1, record.n_lanes):
            memcpy(&distance, distances + 4 * (lane - 1), 4)
            addresses[lane] = record.address + <uint64_t>distance
            if addresses[lane] >= ADDRESS_LIMIT:
                return BAD_ADDRESS
        if <long>record.block != self.block:
            if <long>record.block < self.block or record.block >= self.grid_blocks:
                return BAD_BLOCK
            block = <BlockRecord*>self.blocks.append(1)
            if block == NULL:
                return NO_MEMORY
            block.block = record.block
            block.first_warp = <uint32_t>self.warps.n
            block.n_warps = 0
            self.block, self.warp = record.block, -1
        if <long>record.warp != self.warp:
            if <long>record.warp < self.warp or record.warp >= self.block_warps:
                return BAD_WARP
            self.end_warp()
            warp = <WarpRecord*>self.warps.append(1)
            if warp == NULL:
                return NO_MEMORY
            memset(warp, 0, sizeof(WarpRecord))
            warp.warp = record.warp
            warp.first_op = <uint32_t>self.ops.n
            warp.tail_gap_instructions = self.tail
            (<BlockRecord*>self.blocks.data)[self.blocks.n - 1].n_warps += 1
            self.warp = record.warp
        warp = <WarpRecord*>self.warps.data + (self.warps.n - 1)
        op = <WarpOp*>self.ops.append(1)
        lines = <uint64_t*>self.lines.append(MAX_OP_LINES)
        if op == NULL or lines == NULL:
            return NO_MEMORY
        self.lines.n -= MAX_OP_LINES
        memset(op, 0, sizeof(WarpOp))
        op.first_line = <uint32_t>self.lines.n
        op.gap_instructions = self.gap if warp.n_ops else self.gap_first
        op.kind = OP_LOAD if record.op == 0 else OP_STORE if record.op == 1 else OP_ATOMIC
        op.bytes_per_lane = record.bytes_per_lane
        op.n_lines = <uint8_t>coalesce_op(
            addresses, record.n_lanes, record.bytes_per_lane, op.kind == OP_STORE, lines
        )
        if op.kind == OP_ATOMIC:
            op.flags = <uint8_t>(atomic_conflicts(addresses, record.n_lanes, record.bytes_per_lane) << ATOMIC_CONFLICTS_SHIFT)
        else:
            op.flags = <uint8_t>(bank_words(
                addresses, record.n_lanes, record.bytes_per_lane, lines, op.n_lines) << BANK_WORDS_SHIFT)
        self.lines.n += op.n_lines
        warp.n_ops += 1
        self.n_ops += 1
        self.n_lanes += record.n_lanes
        return NEED_DATA

    cdef void end_warp(self) noexcept nogil:
        """Set the first use of each load of the warp, now that all its accesses are known."""
        cdef WarpRecord* warp
        cdef WarpOp* ops
        cdef uint32_t i, use
        if self.warps.n == 0:
            return
        warp = <WarpRecord*>self.warps.data + (self.warps.n - 1)
        if warp.n_ops == 0:
            return
        ops = <WarpOp*>self.ops.data + warp.first_op
        use = warp.n_ops  # the access before which a load of the current stretch is used
        for i in range(warp.n_ops, 0, -1):
            if ops[i - 1].kind != OP_LOAD:
                use = i - 1
            else:
                ops[i - 1].use_distance = self.distance(ops, i - 1, min_u32(use, i - 1 + self.in_flight))

    cdef inline uint32_t distance(self, const WarpOp* ops, uint32_t load, uint32_t use) noexcept nogil:
        """Return the instructions from a load to the first one after the access before `use`."""
        cdef uint32_t total = 1, i
        for i in range(load + 1, use):
            total += ops[i].gap_instructions + 1
        return total

    def pop_records(self):
        """Return the records of complete work-groups: blocks, warps, ops, lines."""
        cdef size_t blocks = self.blocks.n, warps = self.warps.n, ops = self.ops.n, lines = self.lines.n
        cdef size_t i
        if self.current >= 0 and blocks:  # the last one may continue
            blocks -= 1
            warps = (<BlockRecord*>self.blocks.data)[blocks].first_warp
            ops = (<WarpRecord*>self.warps.data)[warps].first_op
            lines = (<WarpOp*>self.ops.data)[ops].first_line
        taken = (
            self.blocks.cut(blocks, BLOCK_DTYPE),
            self.warps.cut(warps, WARP_DTYPE),
            self.ops.cut(ops, OP_DTYPE),
            self.lines.cut(lines, LINE_DTYPE),
        )
        for i in range(self.blocks.n):
            (<BlockRecord*>self.blocks.data)[i].first_warp -= <uint32_t>warps
        for i in range(self.warps.n):
            (<WarpRecord*>self.warps.data)[i].first_op -= <uint32_t>ops
        for i in range(self.ops.n):
            (<WarpOp*>self.ops.data)[i].first_line -= <uint32_t>lines
        return taken


cdef inline uint32_t min_u32(uint32_t a, uint32_t b) noexcept nogil:
    return a if a < b else b
