"""Instruction caches: an SM fetches the lines of a kernel's code when a warp reaches them first (cold misses).

A machine has them if `sm.icache_miss_latency` is above 0: then the hook `code_ready` is set. Else all code is always there.

A trace does not record the address of an instruction. So the instructions of a warp are taken as distinct, in the order of the
code, until there are as many as the code has; later ones are repetitions, which hit.
"""
from libc.stdint cimport int32_t, int64_t

from buddysim.replay.primitives.arena cimport Arena
from buddysim.replay.sm.stream cimport StreamOp
from buddysim.replay.sm.warp cimport Warp

cdef enum:
    INSTRUCTION_BYTES = 16
    LINE_INSTRUCTIONS = 8  # per line of 128 B
    MAX_CODE_LINES = 1024  # 128 KiB, the capacity of an SM's instruction cache; later lines always hit

# Instructions of a running kernel, and which of them each SM holds.
cdef struct KernelCode:
    int64_t* arrival_ps       # [sms][lines]
    int32_t* requested_lines  # [sms]: number of lines requested, from the first one on
    int64_t lines             # 0: all lines hit

# How far a warp has fetched.
cdef struct FetchProgress:
    const StreamOp* op    # last operation whose instructions were fetched
    int64_t instructions  # fetched so far

cdef struct InstructionCaches

ctypedef int64_t (*CodeReadyOp)(InstructionCaches* caches, KernelCode* code, const Warp* warp, int sm,
                                int64_t now) noexcept nogil      # returns when a warp ready at `now` has its next operation's code

cdef struct InstructionCaches:
    CodeReadyOp code_ready  # NULL: all code is always there
    int64_t latency_ps      # of a miss
    int64_t prefetch_lines  # lines requested together with a line that misses
    FetchProgress* warps    # [warps]


cdef int icache_init(Arena* arena, InstructionCaches* caches, size_t n_warps, dict n) except -1
cdef int kernel_code_init(const InstructionCaches* caches, KernelCode* code, int n_sms, int64_t code_bytes) except -1
cdef void kernel_code_free(KernelCode* code) noexcept
cdef void icache_start_warp(InstructionCaches* caches, int warp) noexcept nogil
