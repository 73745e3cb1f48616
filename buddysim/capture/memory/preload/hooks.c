/* The functions that the program calls instead of libc's: each calls libc's function and records the allocation. */
#include "capture.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <unwind.h>

#define ARENA_BYTES 65536
#define PUBLIC __attribute__((visibility("default")))

static struct {
    void *(*malloc)(size_t), *(*calloc)(size_t, size_t), *(*realloc)(void *, size_t), (*free)(void *);
    void *(*reallocarray)(void *, size_t, size_t), *(*memalign)(size_t, size_t), *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t), *(*pvalloc)(size_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t), *(*mremap)(void *, size_t, size_t, int, ...);
    int (*munmap)(void *, size_t);
    void *(*sbrk)(intptr_t);
    int (*brk)(void *);
} next;

THREAD_LOCAL int inside; /* > 0 in the allocator or in this library: allocations here are not the program's */
static atomic_bool resolved, begun;
static _Alignas(16) char arena[ARENA_BYTES];
static atomic_size_t arena_used;

static void *module_of(const void *address) {
    Dl_info where;
    return dladdr(address, &where) ? where.dli_fbase : NULL;
}

/* An executable may have a malloc of its own, which comes before the one here. */
static void resolve(void) {
    inside++;
#define FIND(name) *(void **)&next.name = dlsym(RTLD_NEXT, #name)
    FIND(malloc); FIND(calloc); FIND(realloc); FIND(free); FIND(reallocarray); FIND(memalign); FIND(aligned_alloc);
    FIND(posix_memalign); FIND(valloc); FIND(pvalloc); FIND(mmap); FIND(mremap); FIND(munmap); FIND(sbrk); FIND(brk);
    malloc_is_libcs = module_of(*(void **)&next.malloc) == module_of((void *)gnu_get_libc_version) &&
                      module_of(dlsym(RTLD_DEFAULT, "malloc")) == module_of(&settings);
    inside--;
    atomic_store(&resolved, true);
}

/* dlsym() itself may allocate while the functions are looked up. */
static void *from_arena(size_t bytes) {
    size_t at = atomic_fetch_add(&arena_used, (bytes + 15) & ~(size_t)15);
    return at + bytes <= ARENA_BYTES ? arena + at : NULL;
}

static bool in_arena(const void *address) {
    return (const char *)address >= arena && (const char *)address < arena + ARENA_BYTES;
}

/* The capture begins with the first call: it may be that of a library's constructor, before this one's. */
static bool ready(void) {
    if (atomic_load_explicit(&begun, memory_order_acquire)) return true;
    if (inside) return atomic_load(&resolved);
    if (!atomic_load(&resolved)) resolve();
    inside++;
    if (begin_capture()) atomic_store(&begun, true);
    inside--;
    return true;
}

void start_hooks(void) { ready(); }

struct walk {
    uintptr_t *frames;
    uint32_t count;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *data) {
    struct walk *walk = data;
    uintptr_t address = _Unwind_GetIP(context);
    if (!address || walk->count == MAX_FRAMES) return _URC_END_OF_STACK;
    walk->frames[walk->count++] = address;
    return _URC_NO_REASON;
}

uint32_t call_stack(uintptr_t *frames) {
    struct walk walk = {frames, 0};
    _Unwind_Backtrace(note_frame, &walk);
    return walk.count;
}

static void report_uncaptured_copy(void) {
    int problem = errno;
    inside++;
    report_copy();
    inside--;
    errno = problem;
}

static bool tracked(size_t bytes) {
    if (bytes < settings.min_bytes || inside) return false;
    if (atomic_load_explicit(&uncaptured_copy, memory_order_relaxed)) report_uncaptured_copy();
    return atomic_load_explicit(&capturing, memory_order_acquire);
}

static void note(void *address, size_t bytes, enum kind kind) {
    uintptr_t frames[MAX_FRAMES];
    int problem = errno;
    inside++;
    uint32_t n_frames = call_stack(frames);
    pthread_mutex_lock(&table_lock);
    table_add((uintptr_t)address, bytes, kind, frames, n_frames, NULL);
    pthread_mutex_unlock(&table_lock);
    inside--;
    errno = problem;
}

static void forget(void *address) {
    if (inside || !table_may_hold((uintptr_t)address)) return;
    before_free();
    pthread_mutex_lock(&table_lock);
    table_remove((uintptr_t)address, NULL);
    pthread_mutex_unlock(&table_lock);
}

static void *allocated(const char *hook, void *address, size_t bytes) {
    if (address && tracked(bytes)) note(address, bytes, KIND_HEAP);
    if (!inside) count_call(hook);
    return address;
}

#define CALL(result, expression) inside++; result = (expression); inside--

PUBLIC void *malloc(size_t bytes) {
    void *address;
    if (!ready()) return from_arena(bytes);
    CALL(address, next.malloc(bytes));
    return allocated("malloc", address, bytes);
}

PUBLIC void *calloc(size_t count, size_t bytes) {
    void *address;
    if (!ready()) return from_arena(count * bytes);
    CALL(address, next.calloc(count, bytes));
    return allocated("calloc", address, address ? count * bytes : 0);
}

PUBLIC void free(void *address) {
    if (!address || in_arena(address) || !ready()) return;
    forget(address);
    inside++;
    next.free(address);
    inside--;
    if (!inside) count_call("free");
}

/* The lock is held while the block moves, so that no snapshot misses it or has it twice. */
static void *move(void *address, size_t bytes) {
    struct allocation before;
    void *moved;
    bool was_tracked = false;
    if (address && !inside && table_may_hold((uintptr_t)address)) {
        pthread_mutex_lock(&table_lock);
        was_tracked = table_remove((uintptr_t)address, &before);
    }
    CALL(moved, next.realloc(address, bytes));
    if (was_tracked) {
        int problem = errno;
        if (!moved && bytes) table_restore(&before);
        pthread_mutex_unlock(&table_lock);
        errno = problem;
    }
    return moved;
}

PUBLIC void *realloc(void *address, size_t bytes) {
    if (!ready()) return from_arena(bytes);
    if (in_arena(address)) {
        void *copy = malloc(bytes);
        size_t arena_left = (size_t)(arena + ARENA_BYTES - (char *)address);
        if (copy) memcpy(copy, address, bytes < arena_left ? bytes : arena_left);
        return copy;
    }
    return allocated("realloc", move(address, bytes), bytes);
}

PUBLIC void *reallocarray(void *address, size_t count, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(address, all);
}

PUBLIC void *memalign(size_t alignment, size_t bytes) {
    void *address;
    ready();
    CALL(address, next.memalign(alignment, bytes));
    return allocated("memalign", address, bytes);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t bytes) {
    void *address;
    ready();
    CALL(address, next.aligned_alloc(alignment, bytes));
    return allocated("aligned_alloc", address, bytes);
}

PUBLIC int posix_memalign(void **address, size_t alignment, size_t bytes) {
    int problem;
    ready();
    CALL(problem, next.posix_memalign(address, alignment, bytes));
    allocated("posix_memalign", problem ? NULL : *address, bytes);
    return problem;
}

PUBLIC void *valloc(size_t bytes) {
    void *address;
    ready();
    CALL(address, next.valloc(bytes));
    return allocated("valloc", address, bytes);
}

PUBLIC void *pvalloc(size_t bytes) {
    void *address;
    ready();
    CALL(address, next.pvalloc(bytes));
    return allocated("pvalloc", address, bytes);
}

static void forget_range(void *address, size_t bytes) {
    if (inside || !atomic_load(&capturing)) return;
    int problem = errno;
    pthread_mutex_lock(&table_lock);
    table_remove_range((uintptr_t)address, (uintptr_t)address + bytes);
    pthread_mutex_unlock(&table_lock);
    errno = problem;
}

/* Reserved address space (PROT_NONE) is not memory. */
static void note_map(void *address, size_t bytes, int protection, int flags) {
    if (address == MAP_FAILED || inside) return;
    if (flags & MAP_FIXED) forget_range(address, bytes);
    if ((flags & MAP_ANONYMOUS) && (protection & PROT_READ) && !(flags & MAP_STACK) && tracked(bytes))
        note(address, bytes, (flags & MAP_SHARED) ? KIND_SHARED_MAP : KIND_MAP);
    count_call("mmap");
}

PUBLIC void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    void *mapped;
    ready();
    CALL(mapped, next.mmap(address, bytes, protection, flags, fd, offset));
    note_map(mapped, bytes, protection, flags);
    return mapped;
}

PUBLIC void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    return mmap(address, bytes, protection, flags, fd, (off_t)offset);
}

PUBLIC int munmap(void *address, size_t bytes) {
    int result;
    ready();
    if (!inside && table_may_hold((uintptr_t)address)) before_free();
    forget_range(address, bytes);
    CALL(result, next.munmap(address, bytes));
    return result;
}

PUBLIC void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    void *new_address = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    ready();
    struct allocation before;
    bool was_tracked = false;
    if (!inside && table_may_hold((uintptr_t)address)) {
        pthread_mutex_lock(&table_lock);
        was_tracked = table_remove((uintptr_t)address, &before);
    }
    void *moved;
    CALL(moved, next.mremap(address, bytes, new_bytes, flags, new_address));
    if (was_tracked) {
        int problem = errno;
        if (moved == MAP_FAILED) table_restore(&before);
        else table_add((uintptr_t)moved, new_bytes, before.kind, before.frames, before.n_frames, NULL);
        pthread_mutex_unlock(&table_lock);
        errno = problem;
    }
    return moved;
}

/* Memory that the program adds to its heap by itself is no allocation, and does not belong to malloc. */
PUBLIC void *sbrk(intptr_t change) {
    ready();
    void *before = next.sbrk(change);
    if (change && before != (void *)-1) note_break((uintptr_t)before, (uintptr_t)before + (uintptr_t)change);
    return before;
}

PUBLIC int brk(void *end) {
    ready();
    void *before = next.sbrk(0);
    int result = next.brk(end);
    if (!result && before != (void *)-1) note_break((uintptr_t)before, (uintptr_t)end);
    return result;
}
