"""A sparse image of memory: the bytes known from stores and copies, with a mask of known bytes."""
import numpy as np

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

PAGE_BYTES = 1 << PAGE_BITS


cdef class _Page:
    def __cinit__(self, uint64_t number):
        self.number = number
        self.data_array = np.zeros(PAGE_BYTES, dtype=np.uint8)
        self.known_array = np.zeros(PAGE_BYTES, dtype=np.uint8)
        self.data = self.data_array
        self.known = self.known_array


cdef class MemoryImage:
    """Bytes by address, in pages of 8 KiB; a known byte takes 2 B."""

    def __cinit__(self):
        self.pages = {}
        self.last = None
        self.changed = False

    cdef _Page page(self, uint64_t number):
        cdef _Page page = self.last
        if page is not None and page.number == number:
            return page
        page = self.pages.get(number)
        if page is None:
            page = _Page(number)
            self.pages[number] = page
        self.last = page
        return page

    cdef int store(self, uint64_t address, const uint8_t* data, int n) except -1:
        cdef _Page page
        cdef int offset, count
        self.changed = True
        while n > 0:
            page = self.page(address >> PAGE_BITS)
            offset = <int>(address & ((1 << PAGE_BITS) - 1))
            count = min(n, (1 << PAGE_BITS) - offset)
            memcpy(&page.data[offset], data, count)
            memset(&page.known[offset], 1, count)
            page.changed = True
            address += count
            data += count
            n -= count
        return 0

    def write(self, uint64_t address, data):
        """Set the bytes at `address` to `data`."""
        cdef const uint8_t[::1] view = np.frombuffer(data, dtype=np.uint8)
        cdef Py_ssize_t first = 0, n = view.shape[0], count
        while first < n:
            count = min(n - first, 1 << 20)
            self.store(address + first, &view[first], <int>count)
            first += count

    def read(self, uint64_t address, Py_ssize_t n):
        """Return the `n` bytes at `address`, zero if unknown, and a mask of known bytes."""
        cdef uint64_t number
        cdef Py_ssize_t at = 0, offset, count
        data = np.zeros(n, dtype=np.uint8)
        known = np.zeros(n, dtype=np.bool_)
        while at < n:
            number = (address + at) >> PAGE_BITS
            offset = (address + at) & ((1 << PAGE_BITS) - 1)
            count = min(n - at, (1 << PAGE_BITS) - offset)
            page = self.pages.get(number)
            if page is not None:
                data[at:at + count] = (<_Page>page).data_array[offset:offset + count]
                known[at:at + count] = (<_Page>page).known_array[offset:offset + count]
            at += count
        return data, known

    def clear_changed(self):
        """Mark all pages as unchanged."""
        cdef _Page page
        self.changed = False
        for page in self.pages.values():
            page.changed = False

    def changed_in(self, uint64_t address, uint64_t n):
        """Whether any of the pages that hold the `n` bytes at `address` was written since `clear_changed`."""
        return any((<_Page>self.pages[number]).changed for number in self.known_pages(address, n))

    def known_pages(self, uint64_t address, uint64_t n):
        """Return the numbers of the 8 KiB pages with any known byte among the `n` bytes at `address`, ascending."""
        cdef uint64_t first = address >> PAGE_BITS, last = (address + n - 1) >> PAGE_BITS
        if last - first < <uint64_t>len(self.pages):
            return [number for number in range(first, last + 1) if number in self.pages]
        return sorted([number for number in self.pages if first <= number <= last])
