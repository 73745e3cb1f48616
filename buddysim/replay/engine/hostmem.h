/* Blocks of host memory that begin at a host cache line, in huge pages where they are large enough to fill one.
 *
 * The engine touches thousands of places in turn. In small pages, scattered over the host's memory, much of its time would go to
 * finding them: on a virtual machine that costs the more the busier its host is. */
#ifndef BUDDYSIM_HOSTMEM_H
#define BUDDYSIM_HOSTMEM_H
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HOST_LINE ((size_t)64)
#define HOST_HUGE ((size_t)2 << 20)

/* What an allocation of `bytes` takes, at least 1: in a sanitizer's build no more, so that it sees what is beyond. */
static inline size_t host_whole(size_t bytes, size_t unit)
{
#ifdef __SANITIZE_ADDRESS__
    (void)unit;
    return bytes + 1;
#else
    return (bytes / unit + 1) * unit;
#endif
}

/* Not zeroed; freed by free(). NULL where memory ends. */
static inline void *host_block(size_t bytes)
{
    const size_t unit = bytes < HOST_HUGE / 4 ? HOST_LINE : HOST_HUGE;
    void *block;
    if (posix_memalign(&block, unit, host_whole(bytes, unit)))
        return NULL;
#ifdef __linux__
    if (unit == HOST_HUGE)
        madvise(block, host_whole(bytes, unit), MADV_HUGEPAGE);
#endif
    return block;
}
#endif
