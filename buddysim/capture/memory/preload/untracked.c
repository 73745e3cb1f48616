/* Untracked memory: memory of an allocator that calls neither malloc nor mmap, so that no allocation of the table has it.
 *
 * The image searches for it in the list of memory mappings and the page table. Untracked memory is private, anonymous, writable and
 * resident. It is neither an allocation, nor malloc's own (smaller allocations, freed memory), nor a stack, nor memory of
 * this library. */
#include "capture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_SEGMENTS 2048
#define MAX_EXCLUDED 512
#define BREAKS 256
#define FIRST_TEXT ((size_t)1 << 20)
#define MAX_HOLE ((size_t)2 << 20)              /* a shorter hole without memory does not split a segment */
#define MAX_ARENA_BYTES ((size_t)64 << 20)         /* HEAP_MAX_SIZE: size and alignment of glibc's heaps of threads */
#define CHUNK_MAPPED 2                        /* of a chunk's size: it has a mapping of its own (malloc/malloc.c) */
#define STACK_TOP 8192                        /* bytes at the stack's end that contain the thread's control block */
#define FIRST_ID (UINT64_C(1) << 48)

struct range {
    uintptr_t base, end;
    bool excluded;
};

/* Segments of the last image, for the next one: a segment keeps its bounds while its memory stays mapped. */
struct untracked_segments {
    uint64_t next_id, bytes;
    size_t count;
    struct {
        uintptr_t base, end;
        uint64_t id;
    } items[MAX_SEGMENTS];
};

bool malloc_is_libcs = true;
static struct untracked_segments *segments;
static struct {
    atomic_uintptr_t base;
    atomic_size_t bytes;
} excluded[MAX_EXCLUDED];
static struct range breaks[BREAKS];
static size_t n_breaks;

/* In the program. */

void prepare_untracked(void) {
    long shared = syscall(SYS_mmap, NULL, sizeof *segments, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    segments = shared == -1 ? NULL : (struct untracked_segments *)shared;
    if (segments) segments->next_id = FIRST_ID;
}

uint64_t untracked_bytes(void) { return segments ? segments->bytes : 0; }

void exclude_range(uintptr_t base, size_t bytes) {
    for (size_t at = 0; at < MAX_EXCLUDED; at++) {
        uintptr_t empty = 0;
        if (!atomic_compare_exchange_strong(&excluded[at].base, &empty, base)) continue;
        atomic_store(&excluded[at].bytes, bytes);
        return;
    }
}

void include_range(uintptr_t base) {
    for (size_t at = 0; at < MAX_EXCLUDED; at++) {
        uintptr_t expected = base;
        if (atomic_compare_exchange_strong(&excluded[at].base, &expected, 0)) return;
    }
}

/* The program itself moved its break: that part of [heap] does not belong to malloc. */
void note_break(uintptr_t from, uintptr_t to) {
    pthread_mutex_lock(&table_lock);
    for (size_t at = n_breaks; at-- > 0 && to < from;) { /* the break moved down */
        if (breaks[at].end > to) breaks[at].end = to < breaks[at].base ? breaks[at].base : to;
        if (breaks[at].end == breaks[at].base) breaks[at] = breaks[--n_breaks];
    }
    if (to > from) {
        size_t at = 0;
        while (at < n_breaks && breaks[at].end != from) at++;
        if (at < n_breaks) breaks[at].end = to;
        else if (n_breaks < BREAKS) breaks[n_breaks++] = (struct range){from, to, false};
    }
    pthread_mutex_unlock(&table_lock);
}

/* In the image. */

static bool is_present(uint64_t entry) { return entry & PAGE_PRESENT; }

struct walk {
    long page_map;
    uintptr_t at, end; /* of the entries read */
    uint64_t entries[512];
};

/* Whether the page at an address has memory; without a page table, every page counts as resident. */
static bool resident(struct walk *walk, uintptr_t address) {
    if (walk->page_map < 0) return true;
    if (address < walk->at || address >= walk->end) {
        long got = syscall(SYS_pread64, walk->page_map, walk->entries, sizeof walk->entries,
                           (long)(address / system_page * sizeof *walk->entries));
        if (got < (long)sizeof *walk->entries) return true;
        walk->at = address;
        walk->end = address + (size_t)got / sizeof *walk->entries * system_page;
    }
    return is_present(walk->entries[(address - walk->at) / system_page]);
}

static size_t resident_bytes(struct walk *walk, uintptr_t from, uintptr_t to) {
    size_t total = 0;
    for (uintptr_t at = from - from % system_page; at < to; at += system_page)
        if (resident(walk, at)) total += system_page;
    return total;
}

static void sift(struct range *ranges, size_t at, size_t count) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && ranges[child + 1].base > ranges[child].base) child++;
        if (ranges[at].base >= ranges[child].base) return;
        struct range swapped = ranges[at];
        ranges[at] = ranges[child];
        ranges[child] = swapped;
    }
}

/* By base; libc's qsort would allocate. */
static void sort_ranges(struct range *ranges, size_t count) {
    for (size_t at = count / 2; at-- > 0;) sift(ranges, at, count);
    for (size_t last = count; last-- > 1;) {
        struct range swapped = ranges[0];
        ranges[0] = ranges[last];
        ranges[last] = swapped;
        sift(ranges, 0, last);
    }
}

/* What is known of the address space: allocations, and what is left out. */
static struct range *known_ranges(size_t *count) {
    struct range *ranges = pages((table.count + MAX_EXCLUDED + 1) * sizeof *ranges);
    if (!ranges) return NULL;
    size_t n = 0;
    for (size_t item = 0; item < table.count; item++)
        ranges[n++] = (struct range){table.items[item].base, table.items[item].base + table.items[item].bytes, false};
    for (size_t at = 0; at < MAX_EXCLUDED; at++) {
        uintptr_t base = atomic_load(&excluded[at].base);
        if (base) ranges[n++] = (struct range){base, base + atomic_load(&excluded[at].bytes), true};
    }
    sort_ranges(ranges, n);
    *count = n;
    return ranges;
}

static char *read_maps(void) {
    for (size_t capacity = FIRST_TEXT;; capacity *= 2) {
        char *text = pages(capacity);
        long file = text ? syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY) : -1;
        if (file < 0) return NULL;
        size_t bytes = 0;
        for (long got; bytes < capacity - 1 && (got = syscall(SYS_read, file, text + bytes, capacity - 1 - bytes)) > 0;)
            bytes += (size_t)got;
        syscall(SYS_close, file);
        if (bytes < capacity - 1) return text;
        release_pages(text, capacity);
    }
}

/* Parses a line of the list of memory mappings; false if it is not private anonymous memory, readable and writable. */
static bool read_line(const char *line, struct range *region, bool *is_heap) {
    char *at;
    region->base = strtoull(line, &at, 16);
    region->end = strtoull(at + 1, &at, 16);
    const char *rights = at + 1;
    strtoull(rights + 5, &at, 16); /* the offset */
    at = strchr(at + 1, ' ');      /* after the device */
    uint64_t inode = at ? strtoull(at, &at, 10) : 1;
    if (inode || rights[0] != 'r' || rights[1] != 'w' || rights[3] != 'p') return false;
    while (*at == ' ') at++;
    *is_heap = !strncmp(at, "[heap]", 6);
    return *is_heap || *at == '\n' || !*at || !strncmp(at, "[anon:", 6);
}

/* glibc's struct pthread at the end of a thread's stack points to itself twice (nptl/descr.h, struct tcbhead). */
static bool is_stack(struct walk *walk, const struct range *region) {
    if (region->end - region->base < STACK_TOP || !resident(walk, region->end - system_page)) return false;
    for (uintptr_t at = region->end - STACK_TOP; at < region->end - 64; at += 16) {
        const uintptr_t *block = (const uintptr_t *)at;
        if (block[0] == at && block[2] == at) return true;
    }
    return false;
}

/* glibc's struct heap_info at the beginning of a thread's heap: arena, previous one, bytes used, bytes of the mapping. */
static bool is_arena(struct walk *walk, const struct range *region) {
    if (region->base % MAX_ARENA_BYTES || !resident(walk, region->base)) return false;
    const size_t *info = (const size_t *)region->base;
    return info[0] && info[2] <= info[3] && info[3] <= MAX_ARENA_BYTES && info[3] == region->end - region->base;
}

/* The end of glibc's chunks with mappings of their own that begin at an address: smaller allocations. */
static uintptr_t after_chunks(struct walk *walk, uintptr_t from, uintptr_t to) {
    while (from < to && resident(walk, from)) {
        size_t size = ((const size_t *)from)[1];
        if ((size & 7) != CHUNK_MAPPED || !(size & ~(size_t)7) || (size & ~(size_t)7) % system_page) break;
        if ((size & ~(size_t)7) > to - from) break;
        from += size & ~(size_t)7;
    }
    return from;
}

static void add_to_table(uintptr_t from, uintptr_t to, uint64_t id, bool is_heap) {
    struct allocation segment = {
        .base = from, .bytes = to - from, .id = id, .kind = KIND_UNTRACKED, .name = is_heap ? "[heap]" : "anonymous memory"};
    table_restore(&segment);
    segments->bytes += to - from;
}

struct search {
    struct walk walk;
    struct untracked_segments before; /* of the last image */
    size_t n_segments;                /* of this image */
    struct residence residence;
};

static void add_segment(struct search *search, uintptr_t from, uintptr_t to, uint64_t id, bool is_heap) {
    if (search->n_segments == MAX_SEGMENTS) return;
    segments->items[search->n_segments].base = from;
    segments->items[search->n_segments].end = to;
    segments->items[search->n_segments++].id = id ? id : segments->next_id++;
    add_to_table(from, to, segments->items[search->n_segments - 1].id, is_heap);
    search->residence.unseen -= resident_bytes(&search->walk, from, to);
}

/* Adds segments where enough memory is resident. */
static void add_new_segments(struct search *search, uintptr_t from, uintptr_t to, bool is_heap) {
    uintptr_t first = 0, last = 0;
    size_t present_bytes = 0;
    for (uintptr_t at = from; at <= to; at += system_page) {
        bool is_present_page = at < to && resident(&search->walk, at);
        if (is_present_page) {
            if (!present_bytes) first = at;
            last = at + system_page;
            present_bytes += system_page;
        }
        if (present_bytes && (at == to || (!is_present_page && at - last >= MAX_HOLE))) {
            if (present_bytes >= settings.min_bytes) add_segment(search, first, last, 0, is_heap);
            present_bytes = 0;
        }
    }
}

/* An untracked range: the segments of the last image, and new ones between them. */
static void add_untracked(struct search *search, uintptr_t from, uintptr_t to, bool is_heap) {
    from = (from + system_page - 1) / system_page * system_page;
    to = to / system_page * system_page;
    if (!is_heap && malloc_is_libcs) {
        uintptr_t rest = after_chunks(&search->walk, from, to);
        if (rest > from) search->residence.malloc_rest += resident_bytes(&search->walk, from, rest);
        from = rest;
    }
    if (from >= to) return;
    search->residence.unseen += resident_bytes(&search->walk, from, to);
    for (size_t at = 0; at < search->before.count; at++) {
        uintptr_t base = search->before.items[at].base, end = search->before.items[at].end;
        if (base < from || end > to) continue;
        add_new_segments(search, from, base, is_heap);
        add_segment(search, base, end, search->before.items[at].id, is_heap);
        from = end;
    }
    add_new_segments(search, from, to, is_heap);
}

/* Of a range of [heap], only the parts that the program's own breaks added; the rest belongs to glibc's malloc. */
static void add_from_heap(struct search *search, uintptr_t from, uintptr_t to) {
    size_t all = resident_bytes(&search->walk, from, to);
    struct range parts[BREAKS];
    memcpy(parts, breaks, n_breaks * sizeof *parts);
    sort_ranges(parts, n_breaks);
    for (size_t at = 0; at < n_breaks; at++) {
        uintptr_t base = parts[at].base > from ? parts[at].base : from, end = parts[at].end < to ? parts[at].end : to;
        if (base >= end) continue;
        all -= resident_bytes(&search->walk, base, end);
        add_untracked(search, base, end, true);
    }
    search->residence.malloc_rest += all;
}

static void scan_region(struct search *search, const struct range *region, bool is_heap, const struct range *known,
                           size_t n_known, size_t *first) {
    if (is_stack(&search->walk, region)) return;
    search->residence.resident += resident_bytes(&search->walk, region->base, region->end);
    bool arena = malloc_is_libcs && !is_heap && is_arena(&search->walk, region);
    uintptr_t from = region->base;
    while (*first < n_known && known[*first].end <= region->base) ++*first;
    for (size_t at = *first; from < region->end; at++) {
        bool last = at >= n_known || known[at].base >= region->end;
        uintptr_t to = last ? region->end : known[at].base;
        if (to > from) {
            if (arena) search->residence.malloc_rest += resident_bytes(&search->walk, from, to);
            else if (is_heap && malloc_is_libcs) add_from_heap(search, from, to);
            else add_untracked(search, from, to, is_heap);
        }
        if (last) break;
        uintptr_t end = known[at].end < region->end ? known[at].end : region->end;
        uintptr_t base = known[at].base > region->base ? known[at].base : region->base;
        if (known[at].excluded) search->residence.resident -= resident_bytes(&search->walk, base, end);
        if (end > from) from = end;
    }
}

/* Adds untracked segments to the image's table; returns how much memory the program has. */
struct residence find_untracked(long page_map) {
    static struct search search; /* every image has its own copy */
    search.walk = (struct walk){.page_map = page_map};
    if (!segments) return search.residence;
    search.before = *segments;
    size_t n_known = 0, first = 0;
    struct range *known = known_ranges(&n_known);
    char *text = read_maps();
    if (!known || !text) return search.residence;
    segments->count = 0; /* until all are found */
    segments->bytes = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        struct range region;
        bool is_heap;
        if (read_line(line, &region, &is_heap)) scan_region(&search, &region, is_heap, known, n_known, &first);
    }
    segments->count = search.n_segments;
    return search.residence;
}
