"""Which frame of a run's address space each 2 MiB page of the trace's addresses has (docs/model-rules.md, Places).

The reference model is `tests/reference/replay/frame_allocator.py`. Here an allocation costs steps in proportion to the logarithm of the frames, and a few
nanoseconds for each of its own frames: runs of free frames are found in a tree, frames of pages in a hash table.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long x) noexcept nogil

cdef enum:
    LEAST = 64                  # frames that there is room for at first
    PLAIN, ALL_FREE, ALL_USED   # what a node's tag says of the frames below it

cdef struct Node:               # of the tree: the free frames among those below it
    int32_t before              # at their beginning
    int32_t behind              # at their end
    int32_t most                # in a row
    uint8_t tag


cdef class FrameAllocator:
    """Frames of the size of a page, each free or used by allocations of one page of the trace.

    Attributes
    ----------
    count : frames that have been used so far
    """

    cdef readonly int64_t count
    cdef int64_t room           # frames that there is memory for: a power of two
    cdef int32_t* users
    cdef int64_t* page          # that a frame was given to last, -1 at first
    cdef Node* nodes            # [2 * room], the root is 1
    cdef int64_t n_slots        # of the table: a power of two, at least twice `room`
    cdef int64_t* keys          # pages, -1 where a slot is empty
    cdef int32_t* values        # the frame that a page was given last, while no other page has been given it

    def __cinit__(self):
        self.make_room(LEAST)

    def __dealloc__(self):
        free(self.users)
        free(self.page)
        free(self.nodes)
        free(self.keys)
        free(self.values)

    def take(self, int64_t page, int64_t pages):
        """Frames that follow each other, for an allocation of that many pages from `page` on; the first one."""
        cdef int64_t lowest, first, offset, frame
        lowest = self.lowest(pages)
        first = self.frame_of(page)
        if not self.fits(first, page, pages, lowest):
            first = self.frame_of(page + pages - 1) - pages + 1
        if not self.fits(first, page, pages, lowest):
            first = lowest
        if first + pages > self.room:
            self.make_room(first + pages)
        self.count = max(self.count, first + pages)
        for offset in range(pages):
            frame = first + offset
            self.give(frame, page + offset)
            self.users[frame] += 1
        self.mark(1, 0, self.room, first, first + pages, ALL_USED)
        return first

    def give_back(self, int64_t first, int64_t pages):
        """An allocation uses its frames no longer."""
        cdef int64_t frame, begin = first
        for frame in range(first, first + pages):
            self.users[frame] -= 1
            if self.users[frame]:
                self.mark(1, 0, self.room, begin, frame, ALL_FREE)
                begin = frame + 1
        self.mark(1, 0, self.room, begin, first + pages, ALL_FREE)

    cdef bint fits(self, int64_t first, int64_t page, int64_t pages, int64_t lowest) noexcept:
        """Whether frames are free or of the same pages, and no more frames than it takes."""
        cdef int64_t frame
        if first < 0 or first + pages > max(self.count, lowest + pages):
            return False
        for frame in range(first, min(first + pages, self.count)):
            if self.users[frame] and self.page[frame] != page + frame - first:
                return False
        return True

    cdef void give(self, int64_t frame, int64_t page) noexcept:
        """A frame is a page's from now on."""
        if self.page[frame] != page:
            if self.page[frame] >= 0 and self.frame_of(self.page[frame]) == frame:
                self.forget(self.page[frame])
            self.page[frame] = page
        self.remember(page, frame)

    cdef int make_room(self, int64_t frames) except -1:
        """Makes memory for at least that many frames."""
        cdef int64_t room = max(self.room, LEAST), frame
        cdef void* users
        cdef void* page
        while room < frames:
            room *= 2
        users = realloc(self.users, room * sizeof(int32_t))
        if users:
            self.users = <int32_t*>users
        page = realloc(self.page, room * sizeof(int64_t))
        if page:
            self.page = <int64_t*>page
        free(self.nodes)
        self.nodes = <Node*>malloc(2 * room * sizeof(Node))
        if not users or not page or not self.nodes:
            raise MemoryError(f"{room} frames do not fit in memory")
        for frame in range(self.room, room):
            self.users[frame], self.page[frame] = 0, -1
        self.room = room
        self.build()
        self.rehash(2 * room)
        return 0

    # The tree of free frames

    cdef void build(self) noexcept:
        """The tree of `users`."""
        cdef int64_t leaf, at
        for leaf in range(self.room):
            self.nodes[self.room + leaf] = node_of(self.users[leaf] == 0, 1)
        for at in range(self.room - 1, 0, -1):
            self.join(at, self.room >> (63 - leading_zeros(<uint64_t>at)))

    cdef inline void join(self, int64_t node, int64_t length) noexcept:
        """A node of its two halves."""
        cdef Node* at = &self.nodes[node]
        cdef Node* left = &self.nodes[2 * node]
        cdef Node* right = &self.nodes[2 * node + 1]
        cdef int32_t half = <int32_t>(length // 2)
        at.before = left.before if left.before < half else half + right.before
        at.behind = right.behind if right.behind < half else half + left.behind
        at.most = max(max(left.most, right.most), left.behind + right.before)
        at.tag = PLAIN

    cdef inline void push(self, int64_t node, int64_t length) noexcept:
        """Hands a node's tag down."""
        if self.nodes[node].tag != PLAIN:
            self.nodes[2 * node] = self.nodes[2 * node + 1] = node_of(self.nodes[node].tag == ALL_FREE, length // 2)
            self.nodes[node].tag = PLAIN

    cdef void mark(self, int64_t node, int64_t start, int64_t length, int64_t first, int64_t end, uint8_t tag) noexcept:
        """Frames from `first` to before `end` are free, or used."""
        if end <= start or start + length <= first:
            return
        if first <= start and start + length <= end:
            self.nodes[node] = node_of(tag == ALL_FREE, length)
            return
        self.push(node, length)
        self.mark(2 * node, start, length // 2, first, end, tag)
        self.mark(2 * node + 1, start + length // 2, length // 2, first, end, tag)
        self.join(node, length)

    cdef int64_t lowest(self, int64_t pages) except -1:
        """The lowest run of free frames that is long enough; all above `count` are free."""
        cdef int64_t node = 1, start = 0, length
        if self.nodes[1].most < pages:
            self.make_room(self.count + pages)
        length = self.room
        while length > 1:
            self.push(node, length)
            length //= 2
            if self.nodes[2 * node].most >= pages:
                node *= 2
            elif self.nodes[2 * node].behind + self.nodes[2 * node + 1].before >= pages:
                return start + length - self.nodes[2 * node].behind
            else:
                node, start = 2 * node + 1, start + length
        return start

    # The table of frames by page

    cdef inline int64_t slot(self, int64_t page) noexcept:
        """Where a page is in the table, or would be."""
        cdef int64_t at = <int64_t>((<uint64_t>page * <uint64_t>0x9E3779B97F4A7C15u) >> 20) & (self.n_slots - 1)
        while self.keys[at] != page and self.keys[at] >= 0:
            at = (at + 1) & (self.n_slots - 1)
        return at

    cdef inline int64_t frame_of(self, int64_t page) noexcept:
        """The frame of a page, or -1."""
        cdef int64_t at = self.slot(page)
        return self.values[at] if self.keys[at] >= 0 else -1

    cdef inline void remember(self, int64_t page, int64_t frame) noexcept:
        cdef int64_t at = self.slot(page)
        self.keys[at], self.values[at] = page, <int32_t>frame

    cdef void forget(self, int64_t page) noexcept:
        """Empties a page's slot; those behind it that it kept from theirs move up."""
        cdef int64_t at = self.slot(page), key, value
        self.keys[at] = -1
        at = (at + 1) & (self.n_slots - 1)
        while self.keys[at] >= 0:
            key, value = self.keys[at], self.values[at]
            self.keys[at] = -1
            self.remember(key, value)
            at = (at + 1) & (self.n_slots - 1)

    cdef int rehash(self, int64_t n_slots) except -1:
        """A table of that many slots."""
        cdef int64_t at, before = self.n_slots
        cdef int64_t* keys = self.keys
        cdef int32_t* values = self.values
        if n_slots <= before:
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
        for at in range(before):
            if keys[at] >= 0:
                self.remember(keys[at], values[at])
        free(keys)
        free(values)
        return 0


cdef inline Node node_of(bint is_free, int64_t length) noexcept:
    """The node of frames that are all free, or all used."""
    cdef int32_t n = <int32_t>length if is_free else 0
    return Node(n, n, n, <uint8_t>(ALL_FREE if is_free else ALL_USED))
