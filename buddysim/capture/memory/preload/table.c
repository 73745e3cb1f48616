/* The live allocations: a dense list with a hash index by base, which can be read without the lock. */
#include "capture.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct bucket {
    atomic_uintptr_t base; /* 0: empty; GONE: removed */
    size_t item;
};

struct index {
    size_t mask, used;
    struct bucket buckets[];
};

#define GONE ((uintptr_t)1)
#define INITIAL_CAPACITY 1024

struct table table;
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct index *) current;
static uint64_t next_id;
static size_t maps_live;

void *pages(size_t bytes) {
    long address = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == -1) return NULL;
    exclude_range((uintptr_t)address, bytes);
    return (void *)address;
}

void release_pages(void *address, size_t bytes) {
    include_range((uintptr_t)address);
    syscall(SYS_munmap, address, bytes);
}

static size_t hash(uintptr_t base) { return (size_t)((base >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20); }

/* The bucket that has `base`, or NULL. */
static struct bucket *find(struct index *index, uintptr_t base) {
    if (!index) return NULL;
    for (size_t at = hash(base) & index->mask;; at = (at + 1) & index->mask) {
        uintptr_t bucket_base = atomic_load_explicit(&index->buckets[at].base, memory_order_acquire);
        if (bucket_base == base) return &index->buckets[at];
        if (!bucket_base) return NULL;
    }
}

static void insert(struct index *index, uintptr_t base, size_t item) {
    size_t at = hash(base) & index->mask;
    while (atomic_load_explicit(&index->buckets[at].base, memory_order_relaxed)) at = (at + 1) & index->mask;
    index->buckets[at].item = item;
    atomic_store_explicit(&index->buckets[at].base, base, memory_order_release);
    index->used++;
}

/* Old indices stay mapped, as another thread may be reading one. Together they are smaller than the current one. */
static bool grow_table(void) {
    struct index *index = atomic_load(&current);
    if (!index || 2 * (index->used + 1) > index->mask) {
        size_t size = INITIAL_CAPACITY;
        while (size < 4 * (table.count + 1)) size *= 2;
        if (index && size < index->mask + 1) size = index->mask + 1;
        struct index *larger = pages(sizeof *larger + size * sizeof(struct bucket));
        if (!larger) return false;
        larger->mask = size - 1;
        for (size_t item = 0; item < table.count; item++) insert(larger, table.items[item].base, item);
        atomic_store_explicit(&current, larger, memory_order_release);
    }
    if (table.count == table.capacity) {
        size_t capacity = table.capacity ? 2 * table.capacity : INITIAL_CAPACITY;
        struct allocation *items = pages(capacity * sizeof *items);
        if (!items) return false;
        if (table.items) {
            memcpy(items, table.items, table.count * sizeof *items);
            release_pages(table.items, table.capacity * sizeof *items);
        }
        table.items = items;
        table.capacity = capacity;
    }
    return true;
}

bool table_may_hold(uintptr_t base) {
    return base > GONE && find(atomic_load_explicit(&current, memory_order_acquire), base) != NULL;
}

static bool is_map(enum kind kind) { return kind == KIND_MAP || kind == KIND_SHARED_MAP; }

bool table_remove(uintptr_t base, struct allocation *removed) {
    struct index *index = atomic_load(&current);
    struct bucket *bucket = find(index, base);
    if (!bucket) return false;
    struct allocation *entry = &table.items[bucket->item], *last = &table.items[table.count - 1];
    if (removed) *removed = *entry;
    if (is_map(entry->kind)) maps_live--;
    atomic_store_explicit(&bucket->base, GONE, memory_order_release);
    if (entry != last) {
        find(index, last->base)->item = bucket->item;
        *entry = *last;
    }
    table.count--;
    return true;
}

void table_remove_range(uintptr_t base, uintptr_t end) {
    for (size_t item = 0; item < table.count;) {
        struct allocation *other = &table.items[item];
        if (other->base < end && base < other->base + other->bytes) table_remove(other->base, NULL);
        else item++;
    }
}

void table_restore(const struct allocation *removed) {
    if (!grow_table()) return;
    table.items[table.count] = *removed;
    insert(atomic_load(&current), removed->base, table.count);
    table.count++;
    if (is_map(removed->kind)) maps_live++;
}

/* Removes allocations that it overlaps: their free was not seen, or an allocator subdivides a mapping. */
void table_add(uintptr_t base, size_t bytes, enum kind kind, const uintptr_t *frames, uint32_t n_frames,
               const char *name) {
    if (table_may_hold(base)) table_remove(base, NULL);
    if (maps_live || is_map(kind)) table_remove_range(base, base + bytes);
    struct allocation added = {base, bytes, next_id++, kind, n_frames, name, {0}};
    if (n_frames) memcpy(added.frames, frames, n_frames * sizeof *frames);
    table_restore(&added);
    if (kind != KIND_STATIC) {
        table.recorded++;
        table.recorded_bytes += bytes;
    }
}
