"""Which frame of a run's address space each 2 MiB page of the trace's addresses has
(docs/reference/replay-rules.md)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class RefFrameAllocator:
    """Page-sized frames, each free or used by allocations of one page of the trace.

    Attributes
    ----------
    count : frames that have been used so far
    """

    def __init__(self) -> None:
        self.count = 0
        self._users: list[int] = []
        self._page: list[int] = []  # that a frame was given to last
        self._frame: dict[int, int] = {}  # that a page was given last, while no other page has been given it
        self._starts: list[int] = []  # of the runs of free frames, in order
        self._ends: list[int] = []

    def allocate(self, page: int, pages: int) -> int:
        """Allocate consecutive frames for an allocation of `pages` pages from `page` on; return the first one."""
        lowest = self._lowest(pages)
        first = self._frame.get(page, -1)
        if not self._fits(first, page, pages, lowest):
            first = self._frame.get(page + pages - 1, -1) - pages + 1
        if not self._fits(first, page, pages, lowest):
            first = lowest
        while len(self._users) < first + pages:
            self._users.append(0)
            self._page.append(-1)
        self.count = len(self._users)
        for offset in range(pages):
            frame, now = first + offset, page + offset
            if self._page[frame] != now:
                if self._frame.get(self._page[frame]) == frame:
                    del self._frame[self._page[frame]]
                self._page[frame] = now
            self._frame[now] = frame
            if not self._users[frame]:
                self._unfree(frame)
            self._users[frame] += 1
        return first

    def release(self, first: int, pages: int) -> None:
        """Release the frames of an allocation."""
        for frame in range(first, first + pages):
            self._users[frame] -= 1
            if not self._users[frame]:
                self._free(frame)

    def _fits(self, first: int, page: int, pages: int, lowest: int) -> bool:
        if first < 0 or first + pages > max(self.count, lowest + pages):  # no more frames than it takes
            return False
        known = range(first, min(first + pages, self.count))
        return all(not self._users[frame] or self._page[frame] == page + frame - first for frame in known)

    def _lowest(self, pages: int) -> int:
        """Return the first frame of the lowest run of `pages` free frames; all above `count` are free."""
        for start, end in zip(self._starts, self._ends, strict=True):
            if end - start >= pages or end == self.count:
                return start
        return self.count

    def _free(self, frame: int) -> None:
        at = bisect_left(self._starts, frame)
        joins_before, joins_after = at > 0 and self._ends[at - 1] == frame, self._starts[at : at + 1] == [frame + 1]
        if joins_before and joins_after:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_before:
            self._ends[at - 1] = frame + 1
        elif joins_after:
            self._starts[at] = frame
        else:
            self._starts.insert(at, frame)
            self._ends.insert(at, frame + 1)

    def _unfree(self, frame: int) -> None:
        at = bisect_right(self._starts, frame) - 1
        if at < 0 or self._ends[at] <= frame:
            return  # it has never been used
        start, end = self._starts[at], self._ends[at]
        self._starts[at : at + 1] = [s for s, e in ((start, frame), (frame + 1, end)) if s < e]
        self._ends[at : at + 1] = [e for s, e in ((start, frame), (frame + 1, end)) if s < e]
