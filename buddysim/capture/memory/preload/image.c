/* The library's life in a process: it captures the program that the command started and any program that replaces it
 * (exec). The program sees its environment without the library. The library reports the programs of its children; with
 * --follow, it stays in the environment and captures them too. */
#include "capture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "BUDDYSIM_CAPTURE_MEMORY"
#define PUBLIC __attribute__((visibility("default")))
#define OWN_MEMORY 1 /* of a CHILD: its program has memory of its own */

extern char **environ;
struct settings settings = {.min_bytes = SIZE_MAX};
atomic_bool capturing, uncaptured_copy;
static unsigned forks;
static char setting_text[2048], preload_text[4096]; /* initial values, as "NAME=value" */

/* Value of `key` in "key=value;key=value", copied into `value`; false where there is none. */
static bool read_setting(const char *text, const char *key, char *value, size_t capacity) {
    size_t length = strlen(key);
    for (const char *at = text; at; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL) {
        if (strncmp(at, key, length) || at[length] != '=') continue;
        size_t bytes = strcspn(at + length + 1, ";");
        if (bytes >= capacity) return false;
        memcpy(value, at + length + 1, bytes);
        value[bytes] = 0;
        return true;
    }
    return false;
}

static uint64_t read_number(const char *text, const char *key) {
    char value[32];
    return read_setting(text, key, value, sizeof value) ? strtoull(value, NULL, 10) : 0;
}

/* Removes this library from LD_PRELOAD; other entries stay. */
static void clean_environment(void) {
    const char *others = strchr(preload_text, ':');
    if (others) setenv("LD_PRELOAD", others + 1, 1);
    else unsetenv("LD_PRELOAD");
    unsetenv(VARIABLE);
}

static void say_hello(void) {
    char program[1024];
    long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    send_message(HELLO, 0, 0, program);
}

static void before_fork(void) {
    forks++;
    pthread_mutex_lock(&table_lock);
}

static void after_fork(void) { pthread_mutex_unlock(&table_lock); }

/* A child has the parent's allocations, but none of its threads. */
static void in_child(void) {
    pthread_mutex_unlock(&table_lock);
    if (!atomic_exchange(&capturing, false)) return;
    if (!settings.follow) {
        if (forks == 1) send_message(CHILD, 0, 0, "");
        atomic_store(&uncaptured_copy, true);
        return;
    }
    owner = getpid();
    forks = 0;
    prepare_snapshots();
    say_hello();
    atomic_store(&capturing, true);
    start_trigger();
}

void report_copy(void) {
    if (atomic_exchange(&uncaptured_copy, false)) send_message(CHILD, OWN_MEMORY, 0, "");
}

/* Called within the first hook, or by the constructor where nothing was allocated before. */
bool begin_capture(void) {
    static atomic_bool begun;
    if (!environ) return false;
    if (atomic_exchange(&begun, true)) return true;
    const char *text = getenv(VARIABLE), *preload = getenv("LD_PRELOAD");
    if (!text || !preload) return true;
    snprintf(setting_text, sizeof setting_text, VARIABLE "=%s", text);
    snprintf(preload_text, sizeof preload_text, "LD_PRELOAD=%s", preload);
    text = setting_text + sizeof VARIABLE;
    settings.follow = read_number(text, "follow");
    if (!settings.follow) {
        clean_environment();
        if ((pid_t)read_number(text, "parent") != getppid()) return true;
    }
    if (!read_setting(text, "socket", settings.socket, sizeof settings.socket)) return true;
    read_setting(text, "counted", settings.counted, sizeof settings.counted);
    settings.trigger = read_number(text, "by_calls") ? BY_CALLS : BY_TIME;
    settings.interval = read_number(text, "interval");
    settings.snapshots = read_number(text, "snapshots");
    settings.whole_bytes = read_number(text, "whole");
    settings.sample_bytes = read_number(text, "sample");
    settings.page_bytes = read_number(text, "page");
    settings.seed = read_number(text, "seed");
    settings.min_bytes = read_number(text, "min");
    owner = getpid();
    uintptr_t frames[MAX_FRAMES];
    call_stack(frames); /* the unwinder's first use */
    prepare_snapshots();
    find_static_data();
    pthread_atfork(before_fork, after_fork, in_child);
    say_hello();
    atomic_store(&capturing, true);
    start_trigger();
    return true;
}

__attribute__((constructor)) static void begin(void) {
    start_hooks();
}

__attribute__((destructor)) static void end(void) {
    if (!atomic_load(&capturing) || getpid() != owner) return;
    stop_trigger();
    send_message(FAREWELL, current_position(), 0, "");
}

/* Exec: the program that replaces this one is captured too, and one that replaces a child that is followed. */

static bool is_captured_process(void) { return atomic_load(&capturing) && getpid() == owner; }

static bool is_child(void) { return owner && getpid() != owner; }

static size_t length_of(char *const list[]) {
    size_t count = 0;
    while (list && list[count]) count++;
    return count;
}

/* The program's environment with this library's variables in front; `result` has two more elements. */
static char **environment_with_library(char *const environment[], char **result, char *preload, size_t preload_bytes) {
    size_t count = 0;
    const char *program_preload = "";
    size_t library_bytes = strcspn(preload_text, ":") - (sizeof "LD_PRELOAD=" - 1);
    const char *library = preload_text + sizeof "LD_PRELOAD=" - 1;
    result[count++] = setting_text;
    result[count++] = preload;
    for (char *const *at = environment; at && *at; at++) {
        if (!strncmp(*at, VARIABLE "=", sizeof VARIABLE)) continue;
        if (!strncmp(*at, "LD_PRELOAD=", 11)) program_preload = *at + 11;
        else result[count++] = *at;
    }
    result[count] = NULL;
    if (!strncmp(program_preload, library, library_bytes)) /* the library is already listed */
        program_preload += library_bytes + (program_preload[library_bytes] == ':');
    const char *colon = *program_preload ? ":" : "";
    snprintf(preload, preload_bytes, "LD_PRELOAD=%.*s%s%s", (int)library_bytes, library, colon, program_preload);
    return result;
}

#define WITH_LIBRARY(program, environment)                                                                              \
    char preload[8192];                                                                                                 \
    char *extended[length_of(environment) + 3];                                                                         \
    bool is_captured = is_captured_process();                                                                           \
    if (is_captured) hold_trigger();                                                                                    \
    else if (is_child()) send_message(CHILD, OWN_MEMORY, 0, program);                                                   \
    bool follows = owner && settings.follow;                                                                            \
    char *const *passed = is_captured || follows                                                                        \
                              ? environment_with_library(environment, extended, preload, sizeof preload)                \
                              : (environment)

typedef int exec_function(const char *, char *const[], char *const[]);

static int call_exec(const char *function, const char *path, char *const arguments[], char *const environment[]) {
    WITH_LIBRARY(path, environment);
    exec_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, function);
    int result = next(path, arguments, passed);
    if (is_captured) release_trigger();
    return result;
}

PUBLIC int execve(const char *path, char *const arguments[], char *const environment[]) {
    return call_exec("execve", path, arguments, environment);
}

PUBLIC int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    return call_exec("execvpe", file, arguments, environment);
}

PUBLIC int execv(const char *path, char *const arguments[]) { return call_exec("execve", path, arguments, environ); }

PUBLIC int execvp(const char *file, char *const arguments[]) { return call_exec("execvpe", file, arguments, environ); }

PUBLIC int fexecve(int fd, char *const arguments[], char *const environment[]) {
    WITH_LIBRARY("", environment);
    int (*next)(int, char *const[], char *const[]);
    *(void **)&next = dlsym(RTLD_NEXT, "fexecve");
    int result = next(fd, arguments, passed);
    if (is_captured) release_trigger();
    return result;
}

/* Counts the arguments up to the NULL, then lists them in `list`. */
#define LISTED(first, last)                                                                                             \
    va_list listed;                                                                                                     \
    size_t count = 1;                                                                                                   \
    va_start(listed, last);                                                                                             \
    while (va_arg(listed, char *)) count++;                                                                             \
    va_end(listed);                                                                                                     \
    char *list[count + 1];                                                                                              \
    va_start(listed, last);                                                                                             \
    list[0] = (char *)(first);                                                                                          \
    for (size_t at = 1; at <= count; at++) list[at] = va_arg(listed, char *)

PUBLIC int execl(const char *path, const char *argument, ...) {
    LISTED(argument, argument);
    va_end(listed);
    return execv(path, list);
}

PUBLIC int execlp(const char *file, const char *argument, ...) {
    LISTED(argument, argument);
    va_end(listed);
    return execvp(file, list);
}

PUBLIC int execle(const char *path, const char *argument, ...) {
    LISTED(argument, argument);
    char *const *environment = va_arg(listed, char *const *);
    va_end(listed);
    return execve(path, list, environment);
}

/* Children that are started in one call. libc's own functions don't come through the one above. */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

static int call_spawn(const char *function, pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    char preload[8192];
    char *extended[length_of(environment) + 3];
    if (is_captured_process()) send_message(CHILD, OWN_MEMORY, 0, path);
    bool follow = owner && settings.follow;
    char *const *passed = follow ? environment_with_library(environment, extended, preload, sizeof preload) : environment;
    spawn_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, function);
    return next(child, path, actions, attributes, arguments, passed);
}

PUBLIC int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return call_spawn("posix_spawn", child, path, actions, attributes, arguments, environment);
}

PUBLIC int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return call_spawn("posix_spawnp", child, file, actions, attributes, arguments, environment);
}

PUBLIC int system(const char *command) {
    if (command && is_captured_process()) send_message(CHILD, OWN_MEMORY, 0, command);
    int (*next)(const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "system");
    return next(command);
}

PUBLIC FILE *popen(const char *command, const char *mode) {
    if (is_captured_process()) send_message(CHILD, OWN_MEMORY, 0, command);
    FILE *(*next)(const char *, const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "popen");
    return next(command, mode);
}
