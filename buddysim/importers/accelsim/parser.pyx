"""Parses the text of a kernel trace: thread blocks, warps and their instruction lines, grouped or raw."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

import numpy as np

from buddysim.importers.accelsim.instruction cimport Instruction
from buddysim.importers.accelsim.text cimport Cursor, next_token, parse_decimal, token_is
from buddysim.importers.accelsim.warp cimport WarpStream
from buddysim.importers.rows cimport Rows
from buddysim.trace.records cimport BlockRecord, WarpOp, WarpRecord
from buddysim.trace.records import BLOCK_DTYPE, LINE_DTYPE, OP_DTYPE, WARP_DTYPE

COUNTS = (
    "warp_instructions", "lane_instructions", "memory_lines", "predicated_off", "shared_lines", "local_lines",
    "other_lines", "barriers", "lines", "sectors",
)


cdef class KernelParser(WarpStream):
    """Parses the text of one kernel, part by part, into records.

    Parameters
    ----------
    path : of the file, for messages
    header : the kernel's header
    classify : opcode text -> Opcode
    first_line : lines of the file before the text, for messages
    include_local : include operations on local memory, interleaved over threads as in hardware
    image : memory contents that receive stored values; None: not recorded
    """
    cdef bytes rest                     # of a line that continues in the next piece
    cdef uint64_t grid[3]
    cdef uint64_t block_warps
    cdef Rows blocks
    cdef bint in_block, in_warp, have_block, have_count
    cdef int64_t last_block, left
    cdef size_t block_start_warps

    def __cinit__(self, path, header, classify, *, first_line=0, include_local=False, image=None):
        self.rest = b""
        self.grid[0], self.grid[1], self.grid[2] = header.grid
        self.block_warps = header.block_warps
        self.blocks = Rows(sizeof(BlockRecord))
        self.last_block = -1

    @property
    def counts(self):
        """Return the counts so far, by the names in COUNTS."""
        values = (self.n_instructions, self.n_lane_instructions, self.n_memory, self.n_off, self.n_shared, self.n_local,
                  self.n_other, self.n_barriers, self.n_lines, self.n_sectors)
        return dict(zip(COUNTS, values, strict=True))

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
        """End the text; check that it is complete."""
        cdef bytes last = self.rest
        cdef Cursor line
        self.rest = b""
        if last:
            line.at = last
            line.end = line.at + len(last)
            self.read_line(line)
        if self.in_block:
            self.fail("the file ends inside a thread block: expected #END_TB")

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
            self.add_instruction(line, True)

    def end_lines(self):
        """End the kernel: `feed_lines` got its last lines."""
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
                    self.fail("#BEGIN_TB inside a thread block: expected #END_TB")
                self.in_block, self.have_block, self.in_warp = True, False, False
            elif token_is(token, b"#END_TB"):
                if not self.in_block or not self.have_block:
                    self.fail("#END_TB without a thread block")
                self.end_block()
            return 0
        if not self.in_block:
            self.fail(f"found {self.shown(token)} outside a thread block: expected #BEGIN_TB")
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
            self.fail(f"found {self.shown(token)}: expected 'warp =' and 'insts ='")
        if self.left == 0:
            self.fail("more instructions than 'insts =' says")
        self.left -= 1
        return self.add_instruction(line, False)

    cdef int64_t read_value(self, Cursor rest, str what) except -1:
        """Return the number after an equals sign."""
        cdef Cursor token
        cdef int64_t value = 0
        if not next_token(&rest, &token) or not token_is(token, b"=") or not next_token(&rest, &token) \
                or not parse_decimal(token, &value) or value < 0 or next_token(&rest, &token):
            self.fail(f"expected '{what} = number'")
        return value

    cdef int read_block_line(self, Cursor rest) except -1:
        cdef Cursor token, part
        cdef int64_t[3] position
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
            if not parse_decimal(part, &position[i]) or not 0 <= position[i] < <int64_t>self.grid[i] \
                    or (token.at < token.end) != (i < 2):
                self.fail("expected 'thread block = x,y,z' inside the grid")
            token.at += 1
        self.begin_block((position[2] * <int64_t>self.grid[1] + position[1]) * <int64_t>self.grid[0] + position[0])
        return 0

    cdef int add_instruction(self, Cursor line, bint raw) except -1:
        cdef Instruction instruction
        if self.read_instruction(line, raw, &instruction):
            self.issue(&instruction)
        return 0

    # -- blocks and warps ---------------------------------------------------------------------------------------------

    cdef int begin_block(self, int64_t number) except -1:
        cdef BlockRecord* block
        if number <= self.last_block:
            self.fail(f"thread block {number} after {self.last_block}: expected them in order")
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
        if self.in_warp:
            self.end_warp()
        if not self.warp < number < <int64_t>self.block_warps:
            self.fail(f"warp {number} after {self.warp}: expected them in order, below {self.block_warps}")
        self.start_warp(number)
        self.in_warp, self.have_count, self.left = True, False, 0
        return 0

    cdef int end_warp(self) except -1:
        if self.left:
            self.fail(f"{self.left} instructions of warp {self.warp} are missing")
        self.close_warp()
        self.in_warp = False
        return 0

    # -- results ------------------------------------------------------------------------------------------------------

    def pop_records(self):
        """Return and remove the records of complete blocks: blocks, warps, ops, lines, and the program counters."""
        if self.in_block:
            return self.take_complete()
        return self.cut_records(self.blocks.n, self.warps.n, self.ops.n, self.lines.n)

    cdef object take_complete(self):
        """Return the same as `take` while a block is open; its records stay."""
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
        taken = self.cut_records(blocks - keep_blocks, first_warp, first_op, first_line)
        for i in range(self.blocks.n):
            (<BlockRecord*>self.blocks.data)[i].first_warp -= <uint32_t>first_warp
        for i in range(self.warps.n):
            (<WarpRecord*>self.warps.data)[i].first_op -= <uint32_t>first_op
        for i in range(self.ops.n):
            (<WarpOp*>self.ops.data)[i].first_line -= <uint32_t>first_line
        self.block_start_warps = 0
        return taken

    cdef object cut_records(self, size_t blocks, size_t warps, size_t ops, size_t lines):
        """Return the first records of each kind as arrays; the others move to the front."""
        return (
            self.blocks.cut(blocks, BLOCK_DTYPE), self.warps.cut(warps, WARP_DTYPE), self.ops.cut(ops, OP_DTYPE),
            self.lines.cut(lines, LINE_DTYPE), self.pcs.cut(ops, np.uint64),
        )
