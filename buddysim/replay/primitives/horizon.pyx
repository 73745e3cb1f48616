"""Pages of reservations far ahead of the current event."""
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

cdef enum:
    FIRST_BUCKETS = 256
    CHUNK_PAGES = 32


cdef inline int64_t first_bucket(const Horizon* horizon, const void* owner, int64_t number) noexcept nogil:
    """Index at which the search for a page begins."""
    cdef uint64_t key = <uint64_t>owner >> 3 ^ <uint64_t>number * <uint64_t>0x9E3779B97F4A7C15
    key *= <uint64_t>0xD6E8FEB86659FD93
    return <int64_t>(key >> 32) & (horizon.n_buckets - 1)


cdef inline int64_t find_bucket(const Horizon* horizon, const void* owner, int64_t number) noexcept nogil:
    """Index of a page, or of the unused bucket at which its search ends."""
    cdef int64_t bucket = first_bucket(horizon, owner, number)
    while horizon.pages[bucket].owner and (horizon.pages[bucket].owner != owner or horizon.pages[bucket].number != number):
        bucket = (bucket + 1) & (horizon.n_buckets - 1)
    return bucket


cdef uint64_t* far_page(const Horizon* horizon, const void* owner, int64_t number) noexcept nogil:
    """The words of a page, or NULL if it has none."""
    if not horizon.n_pages:
        return NULL
    return horizon.pages[find_bucket(horizon, owner, number)].words


cdef bint grow(Horizon* horizon) noexcept nogil:
    """Doubles the hash table; False if memory is exhausted."""
    cdef FarPage* old = horizon.pages
    cdef int64_t i, n_old = horizon.n_buckets, n = 2 * n_old if n_old else FIRST_BUCKETS
    cdef FarPage* pages = <FarPage*>calloc(n, sizeof(FarPage))
    if not pages:
        return False
    horizon.pages, horizon.n_buckets = pages, n
    for i in range(n_old):
        if old[i].owner:
            pages[find_bucket(horizon, old[i].owner, old[i].number)] = old[i]
    free(old)
    return True


cdef uint64_t* new_page(Horizon* horizon) noexcept nogil:
    """A page of zeros; NULL if memory is exhausted."""
    cdef uint64_t* page = horizon.unused
    cdef uint64_t* chunk
    cdef int i
    if not page:
        chunk = <uint64_t*>malloc((CHUNK_PAGES + 1) * PAGE_WORDS * sizeof(uint64_t))     # its first page links the chunks
        if not chunk:
            return NULL
        chunk[0] = <uint64_t>horizon.chunks
        horizon.chunks = <uint64_t**>chunk
        for i in range(CHUNK_PAGES):
            page = chunk + (i + 1) * PAGE_WORDS
            page[0] = <uint64_t>horizon.unused
            horizon.unused = page
    horizon.unused = <uint64_t*>page[0]
    memset(page, 0, PAGE_WORDS * sizeof(uint64_t))
    return page


cdef uint64_t* far_page_create(Horizon* horizon, const void* owner, int64_t number) noexcept nogil:
    """The words of a page that does not exist yet, all zero; NULL, and counted as pushed, if the run has too many pages."""
    cdef uint64_t* page = NULL
    cdef FarPage* bucket
    if horizon.n_pages < horizon.max_pages and (2 * horizon.n_pages < horizon.n_buckets or grow(horizon)):
        page = new_page(horizon)
    if not page:
        horizon.pushed += 1
        return NULL
    bucket = &horizon.pages[find_bucket(horizon, owner, number)]
    bucket.owner, bucket.number, bucket.words = owner, number, page
    horizon.n_pages += 1
    return page


cdef void far_page_drop(Horizon* horizon, const void* owner, int64_t number) noexcept nogil:
    """Drops a page that exists."""
    cdef int64_t hole = find_bucket(horizon, owner, number), bucket = hole, begin
    horizon.pages[hole].words[0] = <uint64_t>horizon.unused
    horizon.unused = horizon.pages[hole].words
    horizon.n_pages -= 1
    while True:             # pages whose search passes the hole move into it
        bucket = (bucket + 1) & (horizon.n_buckets - 1)
        if not horizon.pages[bucket].owner:
            break
        begin = first_bucket(horizon, horizon.pages[bucket].owner, horizon.pages[bucket].number)
        if ((bucket - begin) & (horizon.n_buckets - 1)) >= ((bucket - hole) & (horizon.n_buckets - 1)):
            horizon.pages[hole] = horizon.pages[bucket]
            hole = bucket
    horizon.pages[hole] = FarPage(NULL, 0, NULL)


cdef void trial_undo(Horizon* horizon) noexcept nogil:
    """Restores the words that a trial has changed, and ends it."""
    while horizon.n_trial:
        horizon.n_trial -= 1
        horizon.trial_words[horizon.n_trial].word[0] = horizon.trial_words[horizon.n_trial].value
    horizon.trial = False


cdef void horizon_init(Horizon* horizon, int64_t max_pages) noexcept:
    """Initializes a zeroed `Horizon`."""
    horizon.max_pages = max_pages


cdef void horizon_free(Horizon* horizon) noexcept:
    """Frees all pages."""
    cdef uint64_t* chunk = <uint64_t*>horizon.chunks
    cdef uint64_t* before
    while chunk:
        before = <uint64_t*>chunk[0]
        free(chunk)
        chunk = before
    free(horizon.pages)
    horizon.chunks, horizon.pages = NULL, NULL
