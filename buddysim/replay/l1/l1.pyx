"""Set-up of the L1s, and what bypasses them."""
from buddysim.replay.l1.banking.base cimport L1BankingBase
from buddysim.replay.primitives.arena cimport arena_zeroed
from buddysim.replay.primitives.cache cimport cache_init
from buddysim.replay.primitives.mshrs cimport mshrs_init


cdef int l1s_init(Arena* arena, L1s* l1, int n_sms, dict n, object banking) except -1:
    """Sets up the L1s of a machine (`parameters.engine_numbers`)."""
    cdef L1BankingBase banks = banking
    cdef int sm
    banks.prepare(arena)
    l1.enter, l1.leave, l1.banking = banks.enter, banks.leave, banks.state
    l1.enabled = n["l1_enabled"]
    cache_init(arena, &l1.cache, n_sms, n["l1_sets"], n["l1_ways"])
    l1.n_mshrs, l1.max_mshr_merges = n["l1_mshrs"], n["l1_max_mshr_merges"]
    l1.hit_ps, l1.line_ps, l1.queue_ps = n["l1_hit_ps"], n["l1_line_ps"], n["l1_queue_ps"]
    l1.sms = <L1*>arena_zeroed(arena, n_sms, sizeof(L1))
    for sm in range(n_sms):
        l1.sms[sm].sets = sm * l1.cache.sets.by * l1.cache.set_bytes
        mshrs_init(arena, &l1.sms[sm].loads, n["l1_mshrs"])
        mshrs_init(arena, &l1.sms[sm].stores, n["l1_mshrs"])
    return 0


cdef int64_t load_past_l1(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int requested,
                          bint for_atomic, int64_t t) noexcept nogil:
    """Loads sectors of a line for an atomic, or for a load that bypasses the L1; returns the time at which the last can be used."""
    return l2_load(m, sm, at, requested, for_atomic, t)
