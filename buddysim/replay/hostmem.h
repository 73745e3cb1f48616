/* Zeroed host memory. Large blocks ask for huge pages: the engine touches thousands of places in turn,
 * and with small pages most of its time would go to address translation on the host. */
#ifndef BUDDYSIM_HOSTMEM_H
#define BUDDYSIM_HOSTMEM_H
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HOST_HUGE ((size_t)2 << 20)

static inline void *host_zeroed(size_t bytes)
{
    if (bytes < HOST_HUGE / 4)
        return calloc(bytes ? bytes : 1, 1);
    bytes = (bytes + HOST_HUGE - 1) / HOST_HUGE * HOST_HUGE;
    void *block = aligned_alloc(HOST_HUGE, bytes);
    if (block) {
#ifdef __linux__
        madvise(block, bytes, MADV_HUGEPAGE);
#endif
        memset(block, 0, bytes);
    }
    return block;
}
#endif
