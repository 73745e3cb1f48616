"""Loops over an allocation's size classes: fill unsampled entries, sample unknown ones.

`ref_entry_sizes` is the reference model.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from buddysim import compress

cdef enum:
    UNKNOWN = 15                # class number of an entry of unknown size
    CLASSES = 8
    ENTRIES_PER_PAGE = 64       # of 8 KB, in which synthetic sizes cluster

if (UNKNOWN, CLASSES) != (compress.UNKNOWN_CLASS, len(compress.STUDY_CLASSES)):
    raise ImportError("the class numbers that are compiled here are not those of buddysim.compress")

cdef uint64_t STEP = 0x9E3779B97F4A7C15u    # 2^64 / golden ratio, odd


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """The finaliser of SplitMix64 (Steele et al., OOPSLA 2014): every bit of x reaches every bit of the result."""
    x = (x ^ x >> 30) * <uint64_t>0xBF58476D1CE4E5B9u
    x = (x ^ x >> 27) * <uint64_t>0x94D049BB133111EBu
    return x ^ x >> 31


cdef inline uint8_t pick(const uint64_t* ends, uint64_t draw) noexcept nogil:
    """Return the class whose range within 0 .. 2^32 - 1 contains a random number."""
    cdef uint8_t number = 0
    while draw >= ends[number]:
        number += 1
    return number


cdef inline uint64_t key_of(uint64_t seed, uint64_t allocation) noexcept nogil:
    """Return the random number that all samples of an allocation depend on."""
    return mix(mix(seed + STEP) ^ (allocation + 1) * STEP)


def allocation_class(const uint64_t[::1] ends not None, uint64_t seed, uint64_t allocation):
    """Return the class of an allocation, from which outlier pages and entries deviate (`draw_classes`)."""
    if ends.shape[0] != CLASSES or ends[CLASSES - 1] != <uint64_t>1 << 32:
        raise ValueError("expected eight ends, the last one 2^32")
    return pick(&ends[0], mix(key_of(seed, allocation)) >> 32)


def draw_classes(
    uint8_t[::1] out not None,
    const uint64_t[::1] ends not None,
    uint64_t seed,
    uint64_t allocation,
    int64_t first_entry,
    uint32_t outlier_pages,
    uint32_t outlier_entries,
):
    """Sample the classes of a window of an allocation; every window gives the same classes.

    The allocation has a class. A fraction ``outlier_pages / 65536`` of its pages of 64 entries has a class of its own; so
    has a fraction ``outlier_entries / 65536`` of a page's entries. Each entry alone follows the distribution of `ends`.

    Parameters
    ----------
    out : classes of the entries from `first_entry`
    ends : 8 upper ends of the classes' ranges within 0 .. 2^32; the last is 2^32
    seed, allocation : determine the sample
    """
    if ends.shape[0] != CLASSES or ends[CLASSES - 1] != <uint64_t>1 << 32:
        raise ValueError("expected eight ends, the last one 2^32")
    cdef uint64_t key = key_of(seed, allocation)
    cdef uint8_t dominant = pick(&ends[0], mix(key) >> 32)
    cdef int64_t n = out.shape[0], i = 0, page, first, end
    cdef uint64_t page_draw, draw
    cdef uint8_t page_class
    with nogil:
        while i < n:
            page = (first_entry + i) // ENTRIES_PER_PAGE
            first = page * ENTRIES_PER_PAGE - first_entry       # of the page, in `out`
            end = min(first + ENTRIES_PER_PAGE, n)
            page_draw = mix(key + <uint64_t>(page + 1) * STEP)
            page_class = pick(&ends[0], page_draw >> 32) if (page_draw & 0xFFFF) < outlier_pages else dominant
            while i < end:
                draw = mix(page_draw + <uint64_t>(i - first + 1) * STEP)
                out[i] = page_class
                if (draw & 0xFFFF) < outlier_entries:
                    out[i] = pick(&ends[0], draw >> 32)
                i += 1


def fill_unsampled(uint8_t[::1] classes not None, int64_t page_entries, int shift=0):
    """Give every entry of class 15 the class of a neighbour, in place.

    In a page with known entries, an entry takes the class of the nearest known entry. A page without known entries takes
    the classes of the nearest page with some, entry for entry. Of two equally near ones, the lower is taken.

    Parameters
    ----------
    classes : uint8, of all entries of an allocation
    page_entries : entries of a page
    shift : bit of the byte at which the class begins; lower bits stay

    Returns
    -------
    entries filled; in an allocation without known entries they stay 15, and count
    """
    cdef int64_t n = classes.shape[0]
    cdef int64_t n_pages = (n + page_entries - 1) // page_entries
    cdef int64_t page, first, end, known, filled = 0, i, before = -1, after = -1, source, source_entries
    sampled_pages = np.zeros(max(n_pages, 1), dtype=np.uint8)
    cdef uint8_t[::1] sampled = sampled_pages
    with nogil:
        for page in range(n_pages):
            first, end = page * page_entries, min((page + 1) * page_entries, n)
            known = 0
            for i in range(first, end):
                known += classes[i] >> shift != UNKNOWN
            filled += end - first - known
            if known:
                sampled[page] = 1
                if known < end - first:
                    fill_page(&classes[first], end - first, shift)
        for page in range(n_pages):
            if sampled[page]:
                before = page
                continue
            if after <= page:
                after = page + 1
                while after < n_pages and not sampled[after]:
                    after += 1
            if before < 0 and after >= n_pages:
                break
            source = after if before < 0 or (after < n_pages and after - page < page - before) else before
            source_entries = min(page_entries, n - source * page_entries)
            first, end = page * page_entries, min((page + 1) * page_entries, n)
            for i in range(first, end):
                take_class(&classes[i], classes[source * page_entries + (i - first) % source_entries], shift)
    return filled


cdef inline void take_class(uint8_t* byte, uint8_t source, int shift) noexcept nogil:
    """Copy the class of one byte to another."""
    byte[0] = <uint8_t>(source >> shift << shift | byte[0] & ((1 << shift) - 1))


cdef void fill_page(uint8_t* classes, int64_t n, int shift) noexcept nogil:
    """Fill a page that has known entries."""
    cdef int64_t i = 0, k, before, after
    while i < n:
        if classes[i] >> shift != UNKNOWN:
            i += 1
            continue
        before, after = i - 1, i + 1        # known entries before and after a run of unknown ones; -1 and n: there is none
        while after < n and classes[after] >> shift == UNKNOWN:
            after += 1
        for k in range(i, after):
            take_class(&classes[k], classes[after if before < 0 or (after < n and after - k < k - before) else before], shift)
        i = after
