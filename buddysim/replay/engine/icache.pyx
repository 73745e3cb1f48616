from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from buddysim.replay.engine.arena cimport arena_zeroed
from buddysim.replay.engine.dram cimport larger
from buddysim.replay.engine.events cimport smaller


cdef int code_init(Arena* arena, CodeCaches* caches, size_t n_warps, dict n) except -1:
    """Instruction caches, from the machine's numbers (`parameters.engine_numbers`)."""
    caches.latency_ps, caches.ahead = n["code_ps"], n["code_ahead"]
    caches.warps = NULL
    if caches.latency_ps:
        caches.warps = <Fetched*>arena_zeroed(arena, n_warps, sizeof(Fetched))
    return 0


cdef int code_make(const CodeCaches* caches, Code* code, int n_sms, int64_t code_bytes) except -1:
    """A kernel's code, of which no SM has anything; 0 bytes: not known, and always there. Raises MemoryError."""
    cdef int64_t lines = smaller((code_bytes // INSTRUCTION_BYTES + LINE_INSTRUCTIONS - 1) // LINE_INSTRUCTIONS, MAX_CODE_LINES)
    code.arrival_ps, code.asked, code.lines = NULL, NULL, 0
    if not caches.latency_ps or not lines:
        return 0
    code.arrival_ps = <int64_t*>calloc(<size_t>(n_sms * lines), sizeof(int64_t))
    code.asked = <int32_t*>calloc(<size_t>n_sms, sizeof(int32_t))
    if not code.arrival_ps or not code.asked:
        code_free(code)
        raise MemoryError("a kernel's code does not fit in memory")
    code.lines = lines
    return 0


cdef void code_free(Code* code) noexcept:
    free(code.arrival_ps)
    free(code.asked)
    code.arrival_ps, code.asked, code.lines = NULL, NULL, 0


cdef void code_begin(CodeCaches* caches, int warp) noexcept nogil:
    """A new warp stands at the code's beginning."""
    caches.warps[warp].op, caches.warps[warp].instructions = NULL, 0


cdef int64_t line_arrival(const CodeCaches* caches, Code* code, int sm, int64_t line, int64_t t) noexcept nogil:
    """When an SM has a line of code that one of its warps gets to at `t`; the lines behind it are asked for, too."""
    cdef int64_t* arrival = code.arrival_ps + sm * code.lines
    cdef int64_t last = smaller(line + caches.ahead, code.lines - 1)
    cdef int64_t start = t
    if line < code.asked[sm]:
        start = larger(t, arrival[line])
    while code.asked[sm] <= last:
        arrival[code.asked[sm]] = start + caches.latency_ps
        code.asked[sm] += 1
    return arrival[line]


cdef int64_t code_wait(CodeCaches* caches, Code* code, const Warp* warp, int sm, int64_t now) noexcept nogil:
    """When a warp that is ready at `now` has all the code up to its next operation; each operation waits once.

    The instructions before it are spread evenly over its chain.
    """
    cdef Fetched* at = &caches.warps[warp.number]
    cdef int64_t first = at.instructions, end, line, instruction, t, waited = 0
    if at.op == warp.op:
        return now
    at.op = warp.op
    end = at.instructions = smaller(first + warp.slots, code.lines * LINE_INSTRUCTIONS)
    for line in range((first + LINE_INSTRUCTIONS - 1) // LINE_INSTRUCTIONS, (end + LINE_INSTRUCTIONS - 1) // LINE_INSTRUCTIONS):
        instruction = line * LINE_INSTRUCTIONS - first
        t = now - warp.op.chain_ps + warp.op.chain_ps * instruction // warp.slots + waited
        waited += larger(0, line_arrival(caches, code, sm, line, t) - t)
    return now + waited
