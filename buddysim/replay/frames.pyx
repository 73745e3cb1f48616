"""Allocator of address frames: assigns frames of the run's address space to 2 MiB pages of the trace's addresses.

docs/reference/replay-rules.md has the rules; the reference model is `tests/reference/replay/frame_allocator.py`. An
allocation takes time in proportion to the logarithm of the number of frames, and a few nanoseconds per frame of its
own: a tree finds runs of free frames, a hash table finds the frames of pages.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long x) noexcept nogil

cdef enum:
    MIN_CAPACITY = 64                  # frames of a new allocator
    PLAIN, ALL_FREE, ALL_USED   # tag of a node: the state of all frames below it, or PLAIN

cdef struct Node:               # of the tree; counts of free frames below it
    int32_t free_before              # consecutive, from the first frame on
    int32_t free_behind              # consecutive, up to the last frame
    int32_t longest                # longest run
    uint8_t tag


cdef class FrameAllocator:
    """Frames of one page each, free or used by allocations of one page of the trace.

    Attributes
    ----------
    count : frames that have been used so far
    """

    cdef readonly int64_t count
    cdef int64_t capacity           # frames in the arrays: a power of two
    cdef int32_t* users         # [capacity]: live allocations that use the frame
    cdef int64_t* page          # [capacity]: page to which the frame was assigned last; -1: none
    cdef Node* nodes            # [2 * capacity], the root is 1
    cdef int64_t n_slots        # of the hash table: a power of two, at least twice `capacity`
    cdef int64_t* keys          # [n_slots]: page; -1: empty slot
    cdef int32_t* values        # [n_slots]: frame assigned to the page last, unless another page has got it

    def __cinit__(self):
        self.grow(MIN_CAPACITY)

    def __dealloc__(self):
        free(self.users)
        free(self.page)
        free(self.nodes)
        free(self.keys)
        free(self.values)

    def allocate(self, int64_t page, int64_t pages):
        """Allocates consecutive frames for an allocation of `pages` pages from `page` on; returns the first one."""
        cdef int64_t first_free_run, first, offset, frame
        first_free_run = self.first_free_run(pages)
        first = self.frame_of(page)
        if not self.can_reuse(first, page, pages, first_free_run):
            first = self.frame_of(page + pages - 1) - pages + 1
        if not self.can_reuse(first, page, pages, first_free_run):
            first = first_free_run
        if first + pages > self.capacity:
            self.grow(first + pages)
        self.count = max(self.count, first + pages)
        for offset in range(pages):
            frame = first + offset
            self.assign(frame, page + offset)
            self.users[frame] += 1
        self.set_range(1, 0, self.capacity, first, first + pages, ALL_USED)
        return first

    def release(self, int64_t first, int64_t pages):
        """Releases the frames of an allocation."""
        cdef int64_t frame, begin = first
        for frame in range(first, first + pages):
            self.users[frame] -= 1
            if self.users[frame]:
                self.set_range(1, 0, self.capacity, begin, frame, ALL_FREE)
                begin = frame + 1
        self.set_range(1, 0, self.capacity, begin, first + pages, ALL_FREE)

    cdef bint can_reuse(self, int64_t first, int64_t page, int64_t pages, int64_t first_free_run) noexcept:
        """Whether the frames from `first` on are free or have the same pages, and lie within the frames in use so far."""
        cdef int64_t frame
        if first < 0 or first + pages > max(self.count, first_free_run + pages):
            return False
        for frame in range(first, min(first + pages, self.count)):
            if self.users[frame] and self.page[frame] != page + frame - first:
                return False
        return True

    cdef void assign(self, int64_t frame, int64_t page) noexcept:
        """Assigns a frame to a page."""
        if self.page[frame] != page:
            if self.page[frame] >= 0 and self.frame_of(self.page[frame]) == frame:
                self.forget(self.page[frame])
            self.page[frame] = page
        self.remember(page, frame)

    cdef int grow(self, int64_t frames) except -1:
        """Enlarges the arrays to at least `frames` frames."""
        cdef int64_t capacity = max(self.capacity, MIN_CAPACITY), frame
        cdef void* users
        cdef void* page
        while capacity < frames:
            capacity *= 2
        users = realloc(self.users, capacity * sizeof(int32_t))
        if users:
            self.users = <int32_t*>users
        page = realloc(self.page, capacity * sizeof(int64_t))
        if page:
            self.page = <int64_t*>page
        free(self.nodes)
        self.nodes = <Node*>malloc(2 * capacity * sizeof(Node))
        if not users or not page or not self.nodes:
            raise MemoryError(f"{capacity} frames do not fit in memory")
        for frame in range(self.capacity, capacity):
            self.users[frame], self.page[frame] = 0, -1
        self.capacity = capacity
        self.build()
        self.rehash(2 * capacity)
        return 0

    # The tree of free frames

    cdef void build(self) noexcept:
        """Builds the tree from `users`."""
        cdef int64_t leaf, at
        for leaf in range(self.capacity):
            self.nodes[self.capacity + leaf] = node_of(self.users[leaf] == 0, 1)
        for at in range(self.capacity - 1, 0, -1):
            self.join(at, self.capacity >> (63 - leading_zeros(<uint64_t>at)))

    cdef inline void join(self, int64_t node, int64_t length) noexcept:
        """Combines the two halves of a node."""
        cdef Node* at = &self.nodes[node]
        cdef Node* left = &self.nodes[2 * node]
        cdef Node* right = &self.nodes[2 * node + 1]
        cdef int32_t half = <int32_t>(length // 2)
        at.free_before = left.free_before if left.free_before < half else half + right.free_before
        at.free_behind = right.free_behind if right.free_behind < half else half + left.free_behind
        at.longest = max(max(left.longest, right.longest), left.free_behind + right.free_before)
        at.tag = PLAIN

    cdef inline void push(self, int64_t node, int64_t length) noexcept:
        """Passes the tag of a node to its halves."""
        if self.nodes[node].tag != PLAIN:
            self.nodes[2 * node] = self.nodes[2 * node + 1] = node_of(self.nodes[node].tag == ALL_FREE, length // 2)
            self.nodes[node].tag = PLAIN

    cdef void set_range(self, int64_t node, int64_t start, int64_t length, int64_t first, int64_t end, uint8_t tag) noexcept:
        """Marks frames from `first` to before `end` as free or used."""
        if end <= start or start + length <= first:
            return
        if first <= start and start + length <= end:
            self.nodes[node] = node_of(tag == ALL_FREE, length)
            return
        self.push(node, length)
        self.set_range(2 * node, start, length // 2, first, end, tag)
        self.set_range(2 * node + 1, start + length // 2, length // 2, first, end, tag)
        self.join(node, length)

    cdef int64_t first_free_run(self, int64_t pages) except -1:
        """First frame of the lowest run of `pages` free frames; all frames above `count` are free."""
        cdef int64_t node = 1, start = 0, length
        if self.nodes[1].longest < pages:
            self.grow(self.count + pages)
        length = self.capacity
        while length > 1:
            self.push(node, length)
            length //= 2
            if self.nodes[2 * node].longest >= pages:
                node *= 2
            elif self.nodes[2 * node].free_behind + self.nodes[2 * node + 1].free_before >= pages:
                return start + length - self.nodes[2 * node].free_behind
            else:
                node, start = 2 * node + 1, start + length
        return start

    # The table of frames by page

    cdef inline int64_t slot(self, int64_t page) noexcept:
        """Slot of a page in the table, or the empty slot for it."""
        cdef int64_t at = <int64_t>((<uint64_t>page * <uint64_t>0x9E3779B97F4A7C15u) >> 20) & (self.n_slots - 1)
        while self.keys[at] != page and self.keys[at] >= 0:
            at = (at + 1) & (self.n_slots - 1)
        return at

    cdef inline int64_t frame_of(self, int64_t page) noexcept:
        """Frame of a page; -1: none."""
        cdef int64_t at = self.slot(page)
        return self.values[at] if self.keys[at] >= 0 else -1

    cdef inline void remember(self, int64_t page, int64_t frame) noexcept:
        cdef int64_t at = self.slot(page)
        self.keys[at], self.values[at] = page, <int32_t>frame

    cdef void forget(self, int64_t page) noexcept:
        """Removes a page from the table, and inserts the entries after it again."""
        cdef int64_t at = self.slot(page), key, value
        self.keys[at] = -1
        at = (at + 1) & (self.n_slots - 1)
        while self.keys[at] >= 0:
            key, value = self.keys[at], self.values[at]
            self.keys[at] = -1
            self.remember(key, value)
            at = (at + 1) & (self.n_slots - 1)

    cdef int rehash(self, int64_t n_slots) except -1:
        """Enlarges the table to `n_slots` slots."""
        cdef int64_t at, old_slots = self.n_slots
        cdef int64_t* keys = self.keys
        cdef int32_t* values = self.values
        if n_slots <= old_slots:
            return 0
        self.n_slots = n_slots
        self.keys, self.values = <int64_t*>malloc(n_slots * sizeof(int64_t)), <int32_t*>calloc(n_slots, sizeof(int32_t))
        if not self.keys or not self.values:
            self.n_slots = 0
            free(keys)
            free(values)
            raise MemoryError(f"a table of {n_slots} pages does not fit in memory")
        for at in range(n_slots):
            self.keys[at] = -1
        for at in range(old_slots):
            if keys[at] >= 0:
                self.remember(keys[at], values[at])
        free(keys)
        free(values)
        return 0


cdef inline Node node_of(bint is_free, int64_t length) noexcept:
    """Node of frames that are all free, or all used."""
    cdef int32_t n = <int32_t>length if is_free else 0
    return Node(n, n, n, <uint8_t>(ALL_FREE if is_free else ALL_USED))
