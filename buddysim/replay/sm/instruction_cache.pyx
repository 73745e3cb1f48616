"""The code that each SM has fetched, and the lines that its warps wait for."""
from libc.stdlib cimport calloc, free

from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.extremes cimport max_i64, min_i64


cdef int icache_init(Arena* arena, InstructionCaches* caches, size_t n_warps, dict n) except -1:
    """Sets up the instruction caches of a machine (`parameters.engine_numbers`)."""
    caches.latency_ps, caches.prefetch_lines = n["icache_miss_ps"], n["icache_prefetch_lines"]
    caches.code_ready, caches.warps = NULL, NULL
    if caches.latency_ps:
        caches.code_ready = code_ready
        caches.warps = <FetchProgress*>arena_zeroed(arena, n_warps, sizeof(FetchProgress))
    return 0


cdef int kernel_code_init(const InstructionCaches* caches, KernelCode* code, int n_sms, int64_t code_bytes) except -1:
    """Creates the code of a kernel, which no SM holds; 0 bytes: unknown size, all lines hit. Raises MemoryError."""
    cdef int64_t lines = min_i64((code_bytes // INSTRUCTION_BYTES + LINE_INSTRUCTIONS - 1) // LINE_INSTRUCTIONS, MAX_CODE_LINES)
    code.arrival_ps, code.requested_lines, code.lines = NULL, NULL, 0
    if caches.code_ready == NULL or not lines:
        return 0
    code.arrival_ps = <int64_t*>calloc(<size_t>(n_sms * lines), sizeof(int64_t))
    code.requested_lines = <int32_t*>calloc(<size_t>n_sms, sizeof(int32_t))
    if not code.arrival_ps or not code.requested_lines:
        kernel_code_free(code)
        raise MemoryError("a kernel's code does not fit in memory")
    code.lines = lines
    return 0


cdef void kernel_code_free(KernelCode* code) noexcept:
    free(code.arrival_ps)
    free(code.requested_lines)
    code.arrival_ps, code.requested_lines, code.lines = NULL, NULL, 0


cdef void icache_start_warp(InstructionCaches* caches, int warp) noexcept nogil:
    """Starts a warp at the first instruction."""
    caches.warps[warp].op, caches.warps[warp].instructions = NULL, 0


cdef int64_t icache_line_arrival(const InstructionCaches* caches, KernelCode* code, int sm, int64_t line, int64_t t) noexcept nogil:
    """Arrival of a line that a warp of the SM reaches at `t`; a miss also requests the lines to prefetch."""
    cdef int64_t* arrival = code.arrival_ps + sm * code.lines
    cdef int64_t last = min_i64(line + caches.prefetch_lines, code.lines - 1)
    cdef int64_t start = t
    if line < code.requested_lines[sm]:
        start = max_i64(t, arrival[line])
    while code.requested_lines[sm] <= last:
        arrival[code.requested_lines[sm]] = start + caches.latency_ps
        code.requested_lines[sm] += 1
    return arrival[line]


cdef int64_t code_ready(InstructionCaches* caches, KernelCode* code, const Warp* warp, int sm, int64_t now) noexcept nogil:
    """Time at which a warp that is ready at `now` has the instructions of its next operation; an operation waits once.

    The instructions of the compute gap are spread evenly over its latency.
    """
    cdef FetchProgress* progress = &caches.warps[warp.number]
    cdef int64_t first = progress.instructions, end, line, instruction, t, wait_ps = 0
    if progress.op == warp.op:
        return now
    progress.op = warp.op
    end = progress.instructions = min_i64(first + warp.issue_slots, code.lines * LINE_INSTRUCTIONS)
    for line in range((first + LINE_INSTRUCTIONS - 1) // LINE_INSTRUCTIONS, (end + LINE_INSTRUCTIONS - 1) // LINE_INSTRUCTIONS):
        instruction = line * LINE_INSTRUCTIONS - first
        t = now - warp.op.gap_latency_ps + warp.op.gap_latency_ps * instruction // warp.issue_slots + wait_ps
        wait_ps += max_i64(0, icache_line_arrival(caches, code, sm, line, t) - t)
    return now + wait_ps
