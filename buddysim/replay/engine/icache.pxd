"""Instruction fetch: a kernel's code comes to an SM line by line, when a warp first gets there.

A trace doesn't tell where in the code an operation is. So a warp's instructions are taken for distinct ones, in the order of the
code, until there are as many as the code has; what follows are repetitions of those.
"""
from libc.stdint cimport int32_t, int64_t

from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.engine.sm cimport Warp
from buddysim.replay.engine.stream cimport StreamOp

cdef enum:
    INSTRUCTION_BYTES = 16
    LINE_INSTRUCTIONS = 8       # of 128 B
    MAX_CODE_LINES = 1024       # 128 KiB: what an SM's cache holds; code beyond that counts as there

cdef struct Code:               # of a running kernel
    int64_t* arrival_ps         # [sms][lines]
    int32_t* asked              # [sms]: lines that have been asked for, all in order
    int64_t lines

cdef struct Fetched:            # how far a warp has got
    const StreamOp* op          # the last operation that was looked at
    int64_t instructions

cdef struct CodeCaches:
    int64_t latency_ps          # of a line; 0: code is always there
    int64_t ahead               # lines behind the one that a warp is at that are asked for with it
    Fetched* warps


cdef int code_init(Arena* arena, CodeCaches* caches, size_t n_warps, dict n) except -1
cdef int code_make(const CodeCaches* caches, Code* code, int n_sms, int64_t code_bytes) except -1
cdef void code_free(Code* code) noexcept
cdef void code_begin(CodeCaches* caches, int warp) noexcept nogil
cdef int64_t code_wait(CodeCaches* caches, Code* code, const Warp* warp, int sm, int64_t now) noexcept nogil
