"""Reservations far ahead of the current event, of ports and reservation tables.

A port or a table keeps the near future in a ring of its own, so that its usual path reads one array. What lies beyond that ring
lies here, in pages of 2 KiB, found by hash. As time passes, the rings take over what their pages hold. So no reservation moves
the beginning of a ring, and none is forgotten before its time.

A run has at most `max_pages` pages. Beyond them a request is granted at its time and not recorded; `pushed` counts these.
"""
from libc.stdint cimport int64_t, uint64_t

cdef enum:
    PAGE_WORDS = 256     # of 64 bits
    MAX_PAGES = 1048576  # 2 GiB
    MAX_TRIAL_WORDS = 8  # that a trial may change

cdef struct FarPage:
    const void* owner  # the port or table; NULL: unused
    int64_t number
    uint64_t* words    # [PAGE_WORDS]

# A word of a page, and its value before a trial changed it.
cdef struct TrialWord:
    uint64_t* word
    uint64_t value

cdef struct Horizon:
    int64_t now_ps      # time of the current event; no request arrives earlier
    FarPage* pages      # [n_buckets]: a hash table, with linear probing
    int64_t n_buckets    # 0, or a power of two
    int64_t n_pages
    int64_t max_pages
    uint64_t* unused    # list of unused pages, linked by their first word
    uint64_t** chunks   # list of allocated chunks of pages, linked by their first word
    int64_t pushed      # requests that were granted and not recorded
    # A trial reserves and then undoes it (`dram_read_dry_run`).
    bint trial
    int n_trial
    TrialWord[8] trial_words


cdef uint64_t* far_page(const Horizon* horizon, const void* owner, int64_t number) noexcept nogil
cdef uint64_t* far_page_create(Horizon* horizon, const void* owner, int64_t number) noexcept nogil
cdef void far_page_drop(Horizon* horizon, const void* owner, int64_t number) noexcept nogil
cdef void trial_undo(Horizon* horizon) noexcept nogil
cdef void horizon_init(Horizon* horizon, int64_t max_pages) noexcept
cdef void horizon_free(Horizon* horizon) noexcept


cdef inline void trial_record(Horizon* horizon, uint64_t* word) noexcept nogil:
    """Records a word of a page before it changes, during a trial."""
    if horizon.trial and horizon.n_trial < MAX_TRIAL_WORDS:
        horizon.trial_words[horizon.n_trial] = TrialWord(word, word[0])
        horizon.n_trial += 1
