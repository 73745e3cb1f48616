/* Zeroed host memory, at the start of a host cache line: a set's ways must not straddle two.
 * Large blocks ask for huge pages: the engine touches thousands of places in turn, and with small pages
 * much of its time would go to address translation on the host. Freed by free(). */
#ifndef BUDDYSIM_HOSTMEM_H
#define BUDDYSIM_HOSTMEM_H
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HOST_LINE ((size_t)64)
#define HOST_HUGE ((size_t)2 << 20)

static inline void *host_zeroed(size_t bytes)
{
    const size_t unit = bytes < HOST_HUGE / 4 ? HOST_LINE : HOST_HUGE;
    bytes = (bytes / unit + 1) * unit;
    void *block = aligned_alloc(unit, bytes);
    if (block) {
#ifdef __linux__
        if (unit == HOST_HUGE)
            madvise(block, bytes, MADV_HUGEPAGE);
#endif
        memset(block, 0, bytes);
    }
    return block;
}
#endif
