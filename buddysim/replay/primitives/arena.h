/* Blocks of memory aligned to the CPU's cache lines, in huge pages where they are large enough to fill one.
 *
 * The engine accesses thousands of addresses one after the other. With small pages it would spend much of its time in page walks,
 * which cost even more on a virtual machine whose hypervisor is busy. */
#ifndef BUDDYSIM_ARENA_H
#define BUDDYSIM_ARENA_H
#include <stdint.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define CPU_LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

/* Size of an allocation of `bytes`, more than `bytes`; in a sanitizer's build by one byte, so that it detects accesses beyond. */
static inline size_t arena_round_up(size_t bytes, size_t unit)
{
#ifdef __SANITIZE_ADDRESS__
    (void)unit;
    return bytes + 1;
#else
    return (bytes / unit + 1) * unit;
#endif
}

/* A block that is not zeroed; arena_block_free() frees it. NULL if memory is exhausted.
 *
 * Aligned here and not by posix_memalign(): glibc searches for a free chunk of that size and alignment, so it never reuses the
 * chunk that the last run freed, and all pages of a run are new to the process. */
static inline void *arena_block(size_t bytes)
{
    const size_t unit = bytes < HUGE_PAGE / 4 ? CPU_LINE : HUGE_PAGE;
    const size_t rounded = arena_round_up(bytes, unit);
    char *chunk, *block;
    if (rounded > SIZE_MAX - unit || !(chunk = (char *)malloc(rounded + unit)))
        return NULL;
    block = chunk + (unit - (uintptr_t)chunk % unit);
    ((void **)block)[-1] = chunk;
#ifdef __linux__
    if (unit == HUGE_PAGE)
        madvise(block, rounded, MADV_HUGEPAGE);
#endif
    return block;
}

static inline void arena_block_free(void *block)
{
    if (block)
        free(((void **)block)[-1]);
}
#endif
