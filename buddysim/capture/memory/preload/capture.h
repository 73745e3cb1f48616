/* Declarations of the preload library. It is loaded into the captured program. Therefore it allocates nothing from the
 * program's heap, restores errno, and opens no file descriptor in the running program, except to read the symbols of a
 * library that was loaded since the last snapshot. */
#ifndef BUDDYSIM_MEMORY_CAPTURE_H
#define BUDDYSIM_MEMORY_CAPTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define MAX_FRAMES 24
#define THREAD_LOCAL static _Thread_local __attribute__((tls_model("initial-exec")))

/* Messages to the capture command: one connection each; wire.py is the other end. */

#define WIRE_MAGIC "BUDDYMEM"
#define WIRE_VERSION 2

enum message { HELLO = 1, SNAPSHOT = 2, FAREWELL = 3, FAILED = 4, CHILD = 5 };

/* Bytes of private anonymous memory of the process: in total, and not in the snapshot. */
struct residence {
    uint64_t resident;
    uint64_t malloc_rest; /* in glibc's heaps: smaller allocations and freed memory */
    uint64_t unseen;      /* elsewhere, in ranges that are too small */
};

struct message_head {
    char magic[8];
    uint32_t version, message;
    uint64_t pid;
    uint64_t position; /* of the trigger's axis: calls, or nanoseconds of processor time; CHILD: 1 if it has own memory */
    uint64_t wall_ns;  /* since the library was loaded */
    uint64_t recorded; /* allocations of at least min_bytes so far */
    uint64_t recorded_bytes;
    uint64_t problem; /* FAILED: errno */
    uint64_t cpu_ns;  /* processor time of the process so far */
    struct residence residence; /* SNAPSHOT */
    uint64_t text_bytes; /* of the text that follows: HELLO: the program; CHILD: what a child of it runs */
};

/* After the head of a SNAPSHOT: the process's memory mappings (procfs) in parts (u32 bytes, bytes; ends with 0), then the allocations (each with
 * its frames, u64, and its name; ends with a head of kind 0), then in the same order the contents of each, as fragments
 * in order of offset; at last a head of kind 0 again. */
struct entry_head {
    uint32_t kind; /* enum kind; 0 ends the list */
    uint32_t frames;
    uint64_t id, base, bytes;
    uint32_t name_bytes, zero;
};

enum fragment { FRAGMENT_END = 0, FRAGMENT_DATA = 1, FRAGMENT_ZERO = 2, FRAGMENT_UNREADABLE = 3 };

struct fragment_head {
    uint32_t kind, zero;
    uint64_t offset, bytes; /* bytes follow a FRAGMENT_DATA only; an UNREADABLE one repeats a range sent as zeros */
};

/* Settings, from the environment. */

enum trigger { BY_TIME, BY_CALLS };

struct settings {
    char socket[104];
    uint64_t min_bytes;    /* smaller allocations are not captured */
    enum trigger trigger;
    uint64_t interval;     /* first one: calls, or nanoseconds of processor time */
    uint64_t snapshots;    /* to keep; 0: all */
    uint64_t whole_bytes;  /* larger allocations are sampled */
    uint64_t sample_bytes; /* about this much of them */
    uint64_t page_bytes;   /* of a sampled page */
    uint64_t seed;
    bool follow;           /* children are captured too */
    char counted[64];      /* hook whose calls are counted; empty: every allocating one */
};

extern struct settings settings;
extern atomic_bool capturing;

/* The table of live allocations (table.c). */

enum kind { KIND_END, KIND_HEAP, KIND_MAP, KIND_SHARED_MAP, KIND_STATIC, KIND_UNTRACKED };

struct allocation {
    uintptr_t base;
    size_t bytes;
    uint64_t id;
    enum kind kind;
    uint32_t n_frames;
    const char *name; /* of static data and of untracked memory */
    uintptr_t frames[MAX_FRAMES];
};

struct table {
    struct allocation *items;
    size_t count, capacity;
    uint64_t recorded, recorded_bytes;
};

extern struct table table;
extern pthread_mutex_t table_lock;

bool table_may_hold(uintptr_t base); /* without the lock; right for allocations that the caller owns */
void table_add(uintptr_t base, size_t bytes, enum kind kind, const uintptr_t *frames, uint32_t n_frames, const char *name);
bool table_remove(uintptr_t base, struct allocation *removed); /* under the lock, like all below */
void table_restore(const struct allocation *removed);
void table_remove_range(uintptr_t base, uintptr_t end);

/* Static data (statics.c). */

void find_static_data(void);

/* Untracked memory (untracked.c). */

void prepare_untracked(void);
void exclude_range(uintptr_t base, size_t bytes); /* memory that is not the program's */
void include_range(uintptr_t base);
void note_break(uintptr_t from, uintptr_t to);
struct residence find_untracked(long page_map); /* in the image */
uint64_t untracked_bytes(void);                 /* in the last image */
extern bool malloc_is_libcs;

/* The library's life in a process (image.c). */

bool begin_capture(void); /* false while libc is not ready for it */
void report_copy(void);  /* a copy of the program that is not captured allocates memory of its own */
extern atomic_bool uncaptured_copy;
void start_hooks(void);

/* Snapshots (snapshot.c) and when to take them (trigger.c). */

void send_message(enum message message, uint64_t position, uint64_t problem, const char *text);
void prepare_snapshots(void);
bool take_snapshot(uint64_t position);
bool holds_last_allocations(void);
bool has_allocations_in_snapshot(void);
void wait_for_last_image(void);
void start_trigger(void);
void stop_trigger(void);
void before_free(void);
void hold_trigger(void);
void release_trigger(void);
void count_call(const char *hook);
uint64_t current_position(void);
extern atomic_uint_fast64_t snapshots_taken;
extern uint64_t last_image_bytes; /* of the allocations in it */
extern pid_t owner;
extern size_t system_page;
#define PAGE_PRESENT (UINT64_C(7) << 61) /* of an entry of /proc/self/pagemap: present, swapped out, or a file's page */

/* Memory, clocks, call stacks. */

void *pages(size_t bytes); /* zeroed memory from the kernel, or NULL; never returned */
void release_pages(void *address, size_t bytes);
uint64_t clock_now(int clock);
uint32_t call_stack(uintptr_t *frames);

#pragma GCC visibility pop
#endif
