/* Static data: the objects of .data and .bss that a module's symbol table names, and the ranges between them. */
#include "capture.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sys/mman.h>

#define MAX_SEGMENTS 8
#define MAX_PATH 1024

struct object {
    uintptr_t base;
    size_t bytes;
    const char *name;
};

struct module {
    uintptr_t load_address;
    struct object segments[MAX_SEGMENTS]; /* writable ones */
    int n_segments;
    char path[MAX_PATH];
};

static unsigned long long modules_seen;
static uintptr_t *seen; /* first addresses of the segments that were scanned */
static size_t n_seen, seen_capacity;

static bool seen_before(uintptr_t base) {
    for (size_t at = 0; at < n_seen; at++)
        if (seen[at] == base) return true;
    if (n_seen == seen_capacity) {
        size_t capacity = seen_capacity ? 2 * seen_capacity : 512;
        uintptr_t *larger = pages(capacity * sizeof *larger);
        if (!larger) return true;
        if (seen) {
            memcpy(larger, seen, n_seen * sizeof *seen);
            release_pages(seen, seen_capacity * sizeof *seen);
        }
        seen = larger;
        seen_capacity = capacity;
    }
    seen[n_seen++] = base;
    return false;
}

static const char *copy_text(const char *text, size_t bytes) {
    static char *block;
    static size_t left;
    if (bytes + 1 > left) {
        left = bytes + 1 > 65536 ? bytes + 1 : 65536;
        block = pages(left);
        if (!block) {
            left = 0;
            return "";
        }
    }
    char *copy = block;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    block += bytes + 1;
    left -= bytes + 1;
    return copy;
}

/* Inserts into a list sorted by address; of two objects at one address the larger one stays. */
static void add_object(struct object *objects, size_t *count, size_t capacity, struct object object) {
    size_t at = *count;
    while (at && objects[at - 1].base > object.base) at--;
    if (at && objects[at - 1].base + objects[at - 1].bytes > object.base) return;
    if (at < *count && object.base + object.bytes > objects[at].base) {
        if (objects[at].bytes < object.bytes) objects[at] = object;
        return;
    }
    if (*count == capacity) return;
    memmove(&objects[at + 1], &objects[at], (*count - at) * sizeof *objects);
    objects[at] = object;
    ++*count;
}

/* The languages' own libraries: their static data does not belong to the program. */
static bool is_runtime(const char *name) {
    static const char *const names[] = {"libc.so", "ld-linux", "libm.so", "libstdc++.so", "libgcc_s.so", "libgfortran.so",
                                        "libquadmath.so", "libpthread.so", "linux-vdso.so"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (!strncmp(name, names[at], strlen(names[at]))) return true;
    return false;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Objects of at least `settings.min_bytes` in the module's writable segments, by the symbol table in its file. */
static size_t read_symbols(const struct module *module, struct object *objects, size_t capacity) {
    size_t count = 0;
    long fd = syscall(SYS_openat, AT_FDCWD, module->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    struct stat status;
    const uint8_t *file = MAP_FAILED;
    if (fstat((int)fd, &status) == 0 && status.st_size > (long)sizeof(ElfW(Ehdr)))
        file = (const uint8_t *)syscall(SYS_mmap, NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    syscall(SYS_close, fd);
    if (file == MAP_FAILED) return 0;
    size_t size = (size_t)status.st_size;
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file;
    const ElfW(Shdr) *sections = NULL, *symbols = NULL;
    if (!memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_shentsize == sizeof *sections &&
        head->e_shoff < size && head->e_shnum <= (size - head->e_shoff) / sizeof *sections) {
        sections = (const ElfW(Shdr) *)(file + head->e_shoff);
        for (int at = 0; at < head->e_shnum; at++)
            if (sections[at].sh_type == SHT_SYMTAB || (sections[at].sh_type == SHT_DYNSYM && !symbols))
                symbols = &sections[at];
    }
    if (symbols && symbols->sh_link < head->e_shnum) {
        const ElfW(Shdr) *texts = &sections[symbols->sh_link];
        bool whole = symbols->sh_offset <= size && symbols->sh_size <= size - symbols->sh_offset &&
                     texts->sh_offset <= size && texts->sh_size <= size - texts->sh_offset;
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)(file + symbols->sh_offset);
        for (size_t left = whole ? symbols->sh_size / sizeof *symbol : 0; left; left--, symbol++) {
            if ((symbol->st_info & 15) != STT_OBJECT || symbol->st_size < settings.min_bytes ||
                symbol->st_name >= texts->sh_size || symbol->st_shndx == SHN_UNDEF)
                continue;
            struct object object = {module->load_address + symbol->st_value, symbol->st_size, NULL};
            for (int at = 0; at < module->n_segments; at++) {
                const struct object *segment = &module->segments[at];
                if (object.base < segment->base || object.base + object.bytes > segment->base + segment->bytes) continue;
                const char *name = (const char *)file + texts->sh_offset + symbol->st_name;
                object.name = copy_text(name, strnlen(name, texts->sh_size - symbol->st_name));
                add_object(objects, &count, capacity, object);
            }
        }
    }
    release_pages((void *)file, size);
    return count;
}

static void add_static(uintptr_t base, uintptr_t end, const char *name) {
    if (end > base && end - base >= settings.min_bytes)
        table_add(base, end - base, KIND_STATIC, NULL, 0, name);
}

static void add_module(const struct module *module) {
    const size_t capacity = 4096;
    struct object *objects = pages(capacity * sizeof *objects);
    if (!objects) return;
    size_t count = read_symbols(module, objects, capacity);
    char rest[MAX_PATH];
    size_t length = strnlen(base_name(module->path), MAX_PATH - 32);
    memcpy(rest, base_name(module->path), length);
    memcpy(rest + length, ": other static data", 20);
    const char *others = copy_text(rest, length + 19);
    pthread_mutex_lock(&table_lock);
    for (int at = 0; at < module->n_segments; at++) {
        const struct object *segment = &module->segments[at];
        uintptr_t from = segment->base, end = segment->base + segment->bytes;
        for (size_t object = 0; object < count; object++) {
            if (objects[object].base < from || objects[object].base >= end) continue;
            add_static(from, objects[object].base, others);
            add_static(objects[object].base, objects[object].base + objects[object].bytes, objects[object].name);
            from = objects[object].base + objects[object].bytes;
        }
        add_static(from, end, others);
    }
    pthread_mutex_unlock(&table_lock);
    release_pages(objects, capacity * sizeof *objects);
}

static int scan_module(struct dl_phdr_info *info, size_t size, void *data) {
    struct module *module = data;
    (void)size;
    if (modules_seen == info->dlpi_adds && n_seen) return 1; /* nothing was loaded since */
    module->load_address = info->dlpi_addr;
    module->n_segments = 0;
    bool is_own_library = false;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[at];
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t base = info->dlpi_addr + segment->p_vaddr;
        is_own_library |= (uintptr_t)&settings >= base && (uintptr_t)&settings < base + segment->p_memsz;
        if ((segment->p_flags & PF_W) && segment->p_memsz >= settings.min_bytes && module->n_segments < MAX_SEGMENTS)
            module->segments[module->n_segments++] = (struct object){base, segment->p_memsz, NULL};
    }
    if (!module->n_segments || seen_before(module->segments[0].base)) return 0;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    long length = -1;
    if (!strcmp(path, "/proc/self/exe"))
        length = syscall(SYS_readlinkat, AT_FDCWD, path, module->path, MAX_PATH - 1);
    if (length < 0) {
        length = (long)strnlen(path, MAX_PATH - 1);
        memcpy(module->path, path, (size_t)length);
    }
    module->path[length] = 0;
    if (!is_own_library && !is_runtime(base_name(module->path))) {
        add_module(module);
        return 0;
    }
    for (int at = 0; at < module->n_segments; at++) exclude_range(module->segments[at].base, module->segments[at].bytes);
    return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    *(unsigned long long *)data = info->dlpi_adds;
    return 1;
}

/* Scans the modules that were loaded since the last call. */
void find_static_data(void) {
    static struct module module; /* one caller at a time */
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    dl_iterate_phdr(scan_module, &module);
    modules_seen = loads;
}
