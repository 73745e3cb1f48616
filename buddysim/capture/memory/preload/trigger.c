/* The trigger of snapshots: a number of calls, or a processor time of the program.
 *
 * The length of the run is unknown. At four times the requested number of snapshots the capture command drops every other
 * one (snapshot_recorder.py), and the distance between snapshots doubles. At the end there are two to four times as many
 * snapshots as requested; those nearest to equal distances stay. */
#include "capture.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* After a snapshot the program copies each page that it writes: up to half a second per gigabyte, measured with a program
 * that writes all the time. So snapshots by time are at least a second per gigabyte apart. */
#define NANOSECONDS_PER_BYTE 1
#define MAX_WAIT_SECONDS 2

static pthread_mutex_t trigger_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t interval, n_snapshots;
static atomic_bool stopped;
__attribute__((visibility("hidden"))) atomic_uint_fast64_t buddysim_calls;
__attribute__((visibility("hidden"))) atomic_uint_fast64_t buddysim_next_call = UINT64_MAX;

static uint64_t advance(uint64_t position) {
    n_snapshots++;
    if (settings.snapshots && n_snapshots >= 4 * settings.snapshots) {
        n_snapshots = 2 * settings.snapshots;
        uint64_t distance = position / n_snapshots;
        if (distance > interval) interval = distance;
    }
    return position + interval;
}

/* The count of calls has reached the next position. Never waits for another thread's snapshot: that thread may be waiting
 * for a lock of the loader that this one holds. */
void buddysim_due(uint64_t count);
__attribute__((visibility("hidden"))) void buddysim_due(uint64_t count) {
    if (!atomic_load(&capturing) || atomic_load(&stopped) || pthread_mutex_trylock(&trigger_lock)) return;
    int problem = errno;
    if (count >= atomic_load(&buddysim_next_call)) {
        atomic_store(&buddysim_next_call, UINT64_MAX); /* the snapshot may run into hooks itself */
        take_snapshot(count);
        atomic_store(&buddysim_next_call, advance(count));
    }
    errno = problem;
    pthread_mutex_unlock(&trigger_lock);
}

void count_call(const char *hook) {
    if (settings.trigger != BY_CALLS || (settings.counted[0] && strcmp(settings.counted, hook))) return;
    uint64_t count = atomic_fetch_add(&buddysim_calls, 1) + 1;
    if (count >= atomic_load_explicit(&buddysim_next_call, memory_order_relaxed)) buddysim_due(count);
}

uint64_t current_position(void) {
    return settings.trigger == BY_CALLS ? atomic_load(&buddysim_calls) : clock_now(CLOCK_PROCESS_CPUTIME_ID);
}

static void *watch_the_clock(void *nothing) {
    (void)nothing;
    uint64_t next = interval;
    while (!atomic_load(&stopped)) {
        struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        if (clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
        pthread_mutex_lock(&trigger_lock);
        wait_for_last_image();
        uint64_t now = current_position();
        if (!atomic_load(&stopped) && atomic_load(&capturing) && now >= next) {
            take_snapshot(now);
            next = advance(now);
            uint64_t min_distance = last_image_bytes * NANOSECONDS_PER_BYTE;
            if (settings.snapshots && next < now + min_distance) next = now + min_distance;
        }
        pthread_mutex_unlock(&trigger_lock);
    }
    return NULL;
}

void start_trigger(void) {
    trigger_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* in a child: a thread of the parent may have locked it */
    n_snapshots = 0;
    interval = settings.interval;
    atomic_store(&buddysim_calls, 0); /* without calls of this library */
    if (settings.trigger == BY_CALLS) {
        atomic_store(&buddysim_next_call, interval);
        return;
    }
    /* The program's signals are not for this thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_t thread;
    int problem = pthread_create(&thread, NULL, watch_the_clock, NULL);
    if (!problem) pthread_detach(thread);
    else send_message(FAILED, 0, (uint64_t)problem, "");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* No snapshots while the program tries to replace itself. The new program would get a SIGCHLD for an image of the old one,
 * so the last image has to end first. */
void hold_trigger(void) {
    pthread_mutex_lock(&trigger_lock);
    wait_for_last_image();
}

void release_trigger(void) { pthread_mutex_unlock(&trigger_lock); }

/* A large allocation is about to be freed: a run by time too short for any other snapshot with allocations gets this. The
 * clock's thread may be at a snapshot without them, which takes milliseconds. It may also wait for a lock of the loader
 * that this thread holds: so the wait ends, and there is no second one. */
void before_free(void) {
    static atomic_bool waited_in_vain;
    if (settings.trigger != BY_TIME || has_allocations_in_snapshot() || !atomic_load(&capturing)) return;
    if (atomic_load(&stopped) || atomic_load(&waited_in_vain)) return;
    int problem = errno;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MAX_WAIT_SECONDS;
    if (pthread_mutex_timedlock(&trigger_lock, &until)) atomic_store(&waited_in_vain, true);
    else {
        if (!has_allocations_in_snapshot() && !atomic_load(&stopped)) take_snapshot(current_position());
        pthread_mutex_unlock(&trigger_lock);
    }
    errno = problem;
}

/* The program ends: a run too short for any snapshot gets one now. So does one by time whose memory is still there: of
 * what it wrote since its last snapshot nothing else says. */
void stop_trigger(void) {
    pthread_mutex_lock(&trigger_lock);
    atomic_store(&stopped, true);
    if (!atomic_load(&snapshots_taken) || (settings.trigger == BY_TIME && holds_last_allocations()))
        take_snapshot(current_position());
    pthread_mutex_unlock(&trigger_lock);
}
