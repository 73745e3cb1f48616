/* A snapshot: a copy-on-write image of the process sends its memory to the capture command, while the program runs on.
 *
 * The image is a bare clone() without an exit signal, so the program gets no SIGCHLD and wait() doesn't return it. It
 * only makes system calls: a lock that another thread held at the clone stays locked in it. */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEND_BYTES ((size_t)1 << 20)
#define WINDOW_PAGES 512

atomic_uint_fast64_t snapshots_taken;
pid_t owner;
static uint64_t loaded_ns;
static pid_t last_image;
uint64_t last_image_bytes;
static _Atomic(uint64_t) last_table_bytes;
size_t system_page;
static const char zeros[4096];
static _Atomic(uint32_t) *connected; /* shared with the image: it has connected to the capture command */

uint64_t clock_now(int clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int connect_to_command(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, settings.socket, sizeof settings.socket);
    int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (syscall(SYS_connect, fd, &address, sizeof address) < 0) {
        syscall(SYS_close, fd);
        return -1;
    }
    return fd;
}

/* Returns the bytes sent before an error. */
static size_t send_some(int fd, const void *data, size_t bytes, int flags) {
    size_t done = 0;
    while (done < bytes) {
        size_t part = bytes - done < SEND_BYTES ? bytes - done : SEND_BYTES;
        long sent = syscall(SYS_sendto, fd, (const char *)data + done, part, flags | MSG_NOSIGNAL, NULL, 0);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) break;
        done += (size_t)sent;
    }
    return done;
}

/* In the image: exits if the connection is closed. */
static void send_all(int fd, const void *data, size_t bytes, int flags) {
    if (send_some(fd, data, bytes, flags) < bytes) syscall(SYS_exit_group, 1);
}

static struct message_head head_of(enum message message, uint64_t position, uint64_t problem) {
    struct message_head head = {.version = WIRE_VERSION,
                                .message = message,
                                .pid = (uint64_t)syscall(SYS_getpid),
                                .position = position,
                                .wall_ns = clock_now(CLOCK_MONOTONIC) - loaded_ns,
                                .recorded = table.recorded,
                                .recorded_bytes = table.recorded_bytes,
                                .problem = problem,
                                .cpu_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID)};
    memcpy(head.magic, WIRE_MAGIC, sizeof head.magic);
    return head;
}

void send_message(enum message message, uint64_t position, uint64_t problem, const char *text) {
    int fd = connect_to_command();
    if (fd < 0) return;
    struct message_head head = head_of(message, position, problem);
    head.text_bytes = strlen(text);
    send_some(fd, &head, sizeof head, MSG_MORE);
    send_some(fd, text, head.text_bytes, 0);
    syscall(SYS_close, fd);
}

/* In the image. */

static void send_maps(int fd) {
    char text[4096];
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
    uint32_t bytes = 0;
    for (long got; file >= 0 && (got = syscall(SYS_read, file, text, sizeof text)) > 0;) {
        bytes = (uint32_t)got;
        send_all(fd, &bytes, sizeof bytes, MSG_MORE);
        send_all(fd, text, bytes, MSG_MORE);
    }
    bytes = 0;
    send_all(fd, &bytes, sizeof bytes, MSG_MORE);
}

static void send_fragment(int fd, enum fragment kind, uint64_t offset, uint64_t bytes) {
    struct fragment_head head = {kind, 0, offset, bytes};
    send_all(fd, &head, sizeof head, MSG_MORE);
}

/* Memory that can't be read is sent as zeros; a second fragment marks it. */
static void send_memory(int fd, const struct allocation *from, size_t offset, size_t bytes) {
    const char *data = (const char *)from->base + offset;
    size_t done = 0, bad_from = 0, bad = 0;
    send_fragment(fd, FRAGMENT_DATA, offset, bytes);
    while (done < bytes) {
        done += send_some(fd, data + done, bytes - done, 0);
        if (done == bytes) break;
        if (errno != EFAULT) syscall(SYS_exit_group, 1);
        size_t part = system_page - ((uintptr_t)(data + done) & (system_page - 1));
        if (part > sizeof zeros) part = sizeof zeros;
        if (part > bytes - done) part = bytes - done;
        size_t sent = send_some(fd, data + done, part, 0);
        if (sent < part) {
            send_all(fd, zeros, part - sent, 0);
            if (!bad) bad_from = done + sent;
            bad = done + part - bad_from;
        }
        done += part;
    }
    if (bad) send_fragment(fd, FRAGMENT_UNREADABLE, offset + bad_from, bad);
}

/* Pages that were never written, by the kernel's page table, are sent without their bytes. */
static void send_range(int fd, long page_map, const struct allocation *from, size_t offset, size_t bytes) {
    uint64_t entries[WINDOW_PAGES];
    size_t end = offset + bytes, run = offset;
    bool run_is_zero = false;
    if (page_map < 0 || from->kind == KIND_SHARED_MAP || from->kind == KIND_STATIC) {
        send_memory(fd, from, offset, bytes);
        return;
    }
    for (size_t at = offset; at < end;) {
        uintptr_t first = (from->base + at) / system_page;
        long got = syscall(SYS_pread64, page_map, entries, sizeof entries, (long)(first * sizeof *entries));
        size_t count = got > 0 ? (size_t)got / sizeof *entries : 0;
        if (!count) {
            entries[0] = PAGE_PRESENT;
            count = 1;
        }
        for (size_t page = 0; page < count && at < end; page++) {
            bool zero = !(entries[page] & PAGE_PRESENT);
            if (zero != run_is_zero) {
                if (at > run && run_is_zero) send_fragment(fd, FRAGMENT_ZERO, run, at - run);
                else if (at > run) send_memory(fd, from, run, at - run);
                run = at;
                run_is_zero = zero;
            }
            at = (first + page + 1) * system_page - from->base;
            if (at > end) at = end;
        }
    }
    if (run_is_zero) send_fragment(fd, FRAGMENT_ZERO, run, end - run);
    else send_memory(fd, from, run, end - run);
}

static uint64_t mix(uint64_t value) { /* splitmix64, Steele et al. 2014 */
    value += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

/* One page of each stratum of pages, chosen by the seed: the same ones in every snapshot, as in page_sampling.py. */
static void send_contents(int fd, long page_map, const struct allocation *from) {
    if (from->bytes <= settings.whole_bytes) {
        send_range(fd, page_map, from, 0, from->bytes);
        return;
    }
    uint64_t page = settings.page_bytes, n_pages = (from->bytes + page - 1) / page;
    uint64_t n_samples = settings.sample_bytes / page ? settings.sample_bytes / page : 1;
    uint64_t stratum = (n_pages + n_samples - 1) / n_samples;
    for (uint64_t first = 0; first < n_pages; first += stratum) {
        uint64_t here = n_pages - first < stratum ? n_pages - first : stratum;
        uint64_t offset = (first + mix(settings.seed + first) % here) * page;
        send_range(fd, page_map, from, offset, from->bytes - offset < page ? from->bytes - offset : page);
    }
}

static void send_image(int fd, uint64_t position) {
    long page_map = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY);
    struct message_head head = head_of(SNAPSHOT, position, 0);
    head.pid = (uint64_t)owner;
    head.cpu_ns = 0; /* the image's own */
    head.residence = find_untracked(page_map);
    send_all(fd, &head, sizeof head, MSG_MORE);
    send_maps(fd);
    for (size_t item = 0; item < table.count; item++) {
        const struct allocation *from = &table.items[item];
        size_t name_bytes = from->name ? strlen(from->name) : 0;
        struct entry_head entry = {from->kind, from->n_frames, from->id, from->base, from->bytes, (uint32_t)name_bytes, 0};
        send_all(fd, &entry, sizeof entry, MSG_MORE);
        send_all(fd, from->frames, from->n_frames * sizeof *from->frames, MSG_MORE);
        send_all(fd, from->name, name_bytes, MSG_MORE);
    }
    struct entry_head end = {.kind = KIND_END};
    send_all(fd, &end, sizeof end, MSG_MORE);
    for (size_t item = 0; item < table.count; item++) {
        send_contents(fd, page_map, &table.items[item]);
        send_fragment(fd, FRAGMENT_END, table.items[item].bytes, 0);
    }
    send_all(fd, &end, sizeof end, 0);
}

/* The image closes the program's descriptors, and is the first process to be killed if memory runs out. */
static void detach_from_program(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 0, ~0U, 0) < 0)
#endif
        for (int fd = 0; fd < 4096; fd++) syscall(SYS_close, fd);
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY);
    if (file >= 0) {
        syscall(SYS_write, file, "1000", 4);
        syscall(SYS_close, file);
    }
}

/* The image's work. The program waits until the image has connected; after that the capture command waits for the image,
 * whatever happens to the program. */
static void run_image(uint64_t position) {
    detach_from_program();
    int fd = connect_to_command();
    atomic_store(connected, 1);
    syscall(SYS_futex, connected, FUTEX_WAKE, 1, NULL, NULL, 0);
    if (fd >= 0) send_image(fd, position);
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

/* In the program. */

void prepare_snapshots(void) {
    loaded_ns = clock_now(CLOCK_MONOTONIC);
    system_page = (size_t)sysconf(_SC_PAGESIZE);
    long page = syscall(SYS_mmap, NULL, system_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    connected = page == -1 ? NULL : (void *)page;
    last_image = 0;
    atomic_store(&snapshots_taken, 0);
    prepare_untracked();
}

/* At most one image at a time. */
void wait_for_last_image(void) {
    while (last_image > 0 && syscall(SYS_wait4, last_image, NULL, __WCLONE, NULL) < 0 && errno == EINTR) {}
    last_image = 0;
}

static uint64_t table_bytes(void) {
    uint64_t bytes = 0;
    for (size_t item = 0; item < table.count; item++) bytes += table.items[item].bytes;
    return bytes;
}

/* Whether the allocations are at least as large as those of the last snapshot. */
bool holds_last_allocations(void) {
    pthread_mutex_lock(&table_lock);
    bool holds = table_bytes() >= last_table_bytes;
    pthread_mutex_unlock(&table_lock);
    return holds;
}

/* Whether the last snapshot has any allocation: one by time may come before the first of them. */
bool has_allocations_in_snapshot(void) { return atomic_load(&last_table_bytes) > 0; }

/* The caller holds the trigger's lock and no other lock of this library. */
bool take_snapshot(uint64_t position) {
    if (getpid() != owner) { /* a child made without the fork handlers */
        atomic_store(&capturing, false);
        return false;
    }
    wait_for_last_image();
    find_static_data();
    if (!connected) return false;
    atomic_store(connected, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_mutex_lock(&table_lock);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    last_table_bytes = table_bytes();
    last_image_bytes = untracked_bytes() + last_table_bytes;
    long image = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (image == 0) run_image(position);
    int problem = errno;
    pthread_mutex_unlock(&table_lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (image < 0) {
        send_message(FAILED, position, (uint64_t)problem, "");
        return false;
    }
    last_image = (pid_t)image;
    atomic_fetch_add(&snapshots_taken, 1);
    const struct timespec a_while = {0, 50000000};
    while (!atomic_load(connected)) {
        syscall(SYS_futex, connected, FUTEX_WAIT, 0, &a_while, NULL, 0);
        if (syscall(SYS_wait4, image, NULL, __WCLONE | WNOHANG, NULL)) { /* it has ended already */
            last_image = 0;
            break;
        }
    }
    return true;
}
