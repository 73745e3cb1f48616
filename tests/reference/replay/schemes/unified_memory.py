"""Unified Memory: pages that migrate on faults."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.reference.replay.link.link import RefLink
from tests.reference.replay.numbers import LINE_BYTES, RefNumbers
from tests.reference.replay.space import RefAllocationRange

if TYPE_CHECKING:
    from tests.reference.replay.sm.warps import RefWarp

MAX_AWAITED = 64
FAULT_ENTRIES = 32  # of 4 KiB


def page_capacity(numbers: RefNumbers, allocated: int) -> int:
    """Return the frames that fit device memory; at most `allocated` entries are live at once."""
    machine: Any = numbers.machine
    entries = int(allocated * (1 - Fraction(str(machine.um.oversubscription))))
    if machine.um.capacity:
        entries = machine.um.capacity // LINE_BYTES
    return max(1, entries // int((machine.um.eviction_granularity or machine.um.page_size) // LINE_BYTES))


class RefUmState:
    """The managed pages of a run.

    Parameters
    ----------
    numbers : of the machine
    link : what pages cross
    counts : what is counted
    allocations : those not in host memory
    capacity : frames that device memory holds
    leave_caches : called with the entries of a page that is evicted

    Attributes
    ----------
    resident : when each resident page can be used (ps)
    frames : those with resident pages, the least recently used one first
    """

    def __init__(
        self,
        numbers: RefNumbers,
        link: RefLink,
        counts: Counter[str],
        allocations: list[RefAllocationRange],
        capacity: int,
        leave_caches: Callable[[range], None],
    ) -> None:
        machine: Any = numbers.machine  # with the scheme's section
        self.keys, self.link, self.counts, self.capacity, self.leave_caches = (
            machine.um,
            link,
            counts,
            capacity,
            leave_caches,
        )
        self.fault_latency: int = machine.ps(machine.um.fault_batch_latency)
        self.replay: int = machine.ps(machine.dram.load_to_use) - machine.ps(machine.l2.load_to_use) // 2
        self.page_entries = machine.um.page_size // LINE_BYTES
        self.managed = {
            page
            for allocation_range in allocations
            for page in range(
                allocation_range.first // self.page_entries, (allocation_range.end - 1) // self.page_entries + 1
            )
        }
        self.frame_pages = max(1, machine.um.eviction_granularity // machine.um.page_size)
        self.frames = OrderedDict.fromkeys(sorted({page // self.frame_pages for page in self.managed})[:capacity])
        if machine.um.initial_location == "host":
            self.frames.clear()
        self.resident = {page: 0 for page in self.managed if page // self.frame_pages in self.frames}
        self.batch_start, self.batch_end, self.batch_faults = -1, 0, 0
        self.by_block = machine.um.fault_service == "batched"
        self.batch: list[int] = []
        self.exists = set(self.resident)
        self.replayed: dict[int, int] = {}
        self.asking: RefWarp | None = None
        self.asking_sm, self.tried_again = 0, 0
        self.by_sm = machine.um.fault_replay_scope == "sm"
        self.most: int = machine.um.max_pending_faults_per_sm
        self.in_flight: Counter[int] = Counter()
        self.warps: dict[tuple[int, int], RefWarp] = {}
        self.stalled: dict[int, int] = {}
        self.emptied: dict[int, int] = {}
        counts["um.resident_bytes"] = capacity * self.frame_pages * machine.um.page_size

    def is_resident(self, entry: int) -> bool:
        """Return whether an entry's page is resident or pending."""
        return entry // self.page_entries in self.resident

    def access(self, entry: int, t: int) -> int:
        """Return when an access to an entry of a managed page can continue (ps)."""
        page = entry // self.page_entries
        if self.by_block:
            self.serve_what_is_due(t)
            if self.most and self.resident.get(page, t + 1) > t:
                return self._await_in_flight(page, entry // FAULT_ENTRIES, t)
            if page not in self.resident:
                assert self.asking is not None
                own, fault_block = self.asking.awaited, entry // FAULT_ENTRIES
                known = fault_block in own
                until = self.batch_start + self.fault_latency if known and page in self.batch else self._join(page, t)
                if known or len(own) < MAX_AWAITED:
                    if not known:
                        self._stall(self.asking, t)
                    own[fault_block] = self.asking.expected[fault_block] = until
                return until
        if page not in self.resident:
            self._fault(page, t)
        elif self.keys.eviction_order == "lru_access":
            self.frames.move_to_end(page // self.frame_pages)
        return max(t, self.resident[page])

    def wake(self, sm: int, warp: RefWarp, at_end: bool, t: int) -> int:
        """Return when a warp of an SM that is scheduled at `t` can continue (ps)."""
        own, go_on = warp.awaited, t
        self.asking, self.asking_sm = warp, sm
        if self.by_sm:
            return max(t, self._wake_by_sm(sm, warp, at_end, t))
        for fault_block, until in list(own.items()):
            if until <= t and self._delivered(fault_block) >= until:
                del own[fault_block]
                go_on = max(go_on, self._delivered(fault_block) + self.replay)
            elif at_end or warp.expected[fault_block] <= t:
                go_on = max(go_on, until)
        return go_on

    def _delivered(self, fault_block: int) -> int:
        """Return the end of the last batch that brought a fault block's page and left it resident (ps)."""
        return self.replayed.get(fault_block * FAULT_ENTRIES // self.page_entries, -1)

    def _await_in_flight(self, page: int, fault_block: int, t: int) -> int:
        """Let the current warp wait for a fault block; its access is in flight if the SM's limit allows."""
        assert self.asking is not None
        warp, sm = self.asking, self.asking_sm
        sent = min(1, self.most - self.in_flight[sm])
        until = self.resident[page] if page in self.resident else self._join_with(page, sent, t)
        if fault_block in warp.awaited or len(warp.awaited) < MAX_AWAITED:
            if fault_block not in warp.awaited:
                self._stall(warp, t)
            warp.awaited[fault_block] = until
            warp.accesses[fault_block] += 1
            warp.in_flight[fault_block] += sent
            self.in_flight[sm] += sent
        return until

    def _join_with(self, page: int, accesses: int, t: int) -> int:
        """Add faults of `accesses` accesses to the open batch; return when the warp replays them."""
        until = self.batch_start + self.fault_latency if self.batch else max(t, self.tried_again)
        for _ in range(accesses):
            until = self._join(page, t)
        return until

    def _stall(self, warp: RefWarp, t: int) -> None:
        """Note that a warp awaits a fault block; the SM stalls from `t` on."""
        sm = self.asking_sm
        self.stalled[sm] = min(t, self.stalled[sm]) if self._waiting(sm) else t
        self.warps[sm, warp.slot] = warp

    def _waiting(self, sm: int) -> list[RefWarp]:
        """Return the warps of an SM that await fault blocks, by slot."""
        return [warp for (where, _), warp in sorted(self.warps.items()) if where == sm and warp.awaited]

    def _wake_by_sm(self, sm: int, warp: RefWarp, at_end: bool, t: int) -> int:
        waiting = self._waiting(sm)
        full = bool(self.most) and self.in_flight[sm] == self.most
        if waiting and (warp.awaited or not (at_end or (t < self.stalled[sm] and not full))):
            return min(until for other in waiting for until in other.awaited.values())
        return warp.goes_on if at_end else max(warp.goes_on, self.emptied.get(sm, 0))

    def _try_again(self, sm: int, warp: RefWarp, t: int) -> None:
        """Replay a warp's faults that are due at `t`."""
        for fault_block in [fault_block for fault_block, until in warp.awaited.items() if until <= t]:
            page = fault_block * FAULT_ENTRIES // self.page_entries
            present = bool(self.most) and self.resident.get(page, t + 1) <= t
            replayed = self._delivered(fault_block) >= warp.awaited[fault_block]
            if replayed and not self.by_sm:
                continue
            if present or replayed:
                came = self.replayed[page] if replayed else t
                del warp.awaited[fault_block]
                self.in_flight[sm] -= warp.in_flight.pop(fault_block, 0)
                warp.accesses.pop(fault_block, 0)
                warp.goes_on = max(warp.goes_on, came + self.replay if replayed else t)
                self.emptied[sm] = max(self.emptied.get(sm, 0), came)
            elif t < self.tried_again:
                warp.awaited[fault_block] = self.tried_again
            elif self.most:
                sent = min(warp.accesses[fault_block] - warp.in_flight[fault_block], self.most - self.in_flight[sm])
                warp.in_flight[fault_block] += sent
                self.in_flight[sm] += sent
                warp.awaited[fault_block] = self._join_with(page, warp.in_flight[fault_block], t)
            else:
                warp.awaited[fault_block] = self._join(page, t)

    def written(self, entries: range) -> None:
        """Note that a copy or fill writes entries."""
        self.exists.update(range(entries[0] // self.page_entries, entries[-1] // self.page_entries + 1))

    def serve_what_is_due(self, t: int) -> None:
        """Before an issue event or an access at `t`: batches that have started, and replays, in the order of time."""
        while True:
            replay = min((until for warp in self.warps.values() for until in self._pending(warp)), default=t + 1)
            started = self.batch_start + (self.fault_latency > 0)
            if self.batch and started <= min(t, replay):
                self._serve()
            elif replay <= t:
                for (sm, _), warp in sorted(self.warps.items()):
                    self._try_again(sm, warp, replay)
            else:
                return

    def _pending(self, warp: RefWarp) -> list[int]:
        """Return when a warp's faults are replayed (ps), but those whose warp alone finds their pages."""
        return [
            until for fault_block, until in warp.awaited.items() if self.by_sm or self._delivered(fault_block) < until
        ]

    def _join(self, page: int, t: int) -> int:
        """Add a fault in a page to the open batch; return when the warp replays it."""
        if self.batch_faults == self.keys.max_batch_faults:
            return self.batch_start + self.fault_latency
        if not self.batch:
            self.batch_start = max(t, self.batch_end)
            self.counts["um.fault_handling_busy_ps"] += self.fault_latency
        if page not in self.batch:
            self.batch.append(page)
        self.batch_faults += 1
        self.counts["um.page_faults"] += 1
        return self.batch_start + self.fault_latency

    def _serve(self) -> None:
        """Serves the open batch, block by block."""
        self.batch_end = end = self.batch_start + self.fault_latency
        self.batch_faults = 0
        size = self.keys.va_block_size // self.keys.page_size
        faulted, self.batch, came = sorted(self.batch), [], set()
        for block in sorted({page // size for page in faulted}):
            own = [page for page in faulted if page // size == block]
            present = {*own, *self.resident}
            tree = {other for page in own for other in self._subtree(page, present)}
            added = sorted(page for page in tree - present if page in self.managed)
            self.counts["um.pages_prefetched"] += len(added)
            for page in [*own, *added]:
                self._bring(page)
                end = max(end, self.resident[page])
                came.add(page)
        self.tried_again = end
        for page in came & self.resident.keys():
            self.resident[page] = self.replayed[page] = end

    def _subtree(self, page: int, present: set[int]) -> range:
        best, size = range(page, page + 1), 2
        while size <= self.keys.va_block_size // self.keys.page_size:
            group = range(page // size * size, page // size * size + size)
            if 2 * sum(other in present for other in group) > size:
                best = group
            size *= 2
        return best

    def _fault(self, page: int, t: int) -> None:
        if t > self.batch_start or self.batch_faults == self.keys.max_batch_faults:
            self.batch_start = max(t, self.batch_end)
            self.batch_end = self.batch_start + self.fault_latency
            self.batch_faults = 0
            self.counts["um.fault_handling_busy_ps"] += self.fault_latency
        self.batch_faults += 1
        self.counts["um.page_faults"] += 1
        brought = self._brought_with(page)
        self.counts["um.pages_prefetched"] += len(brought) - 1
        for one in brought:
            self._bring(one)

    def _brought_with(self, page: int) -> list[int]:
        """Return the faulting page and the pages that the tree prefetches with it."""
        brought, size = [page], 2
        while size <= self.keys.va_block_size // self.keys.page_size:
            group = range(page // size * size, page // size * size + size)
            if 2 * (1 + sum(other in self.resident for other in group)) > size:
                absent = [other for other in group if other in self.managed and other not in self.resident]
                brought = [page, *(other for other in absent if other != page)]
            size *= 2
        return brought

    def _bring(self, page: int) -> None:
        came, frame = self.batch_end, page // self.frame_pages
        if frame not in self.frames:
            if len(self.frames) == self.capacity:
                gone = self._evict()
                came = gone if self.keys.serialize_transfers else came
            self.frames[frame] = None
        self.frames.move_to_end(frame)
        if self.keys.zero_fill_untouched and page not in self.exists:
            self.resident[page] = came
        else:
            self.counts["link.migration_in_bytes"] += self.keys.page_size
            self.resident[page] = self.link.read(self.keys.page_size, came)
        self.exists.add(page)
        if self.keys.serialize_transfers:
            self.batch_end = self.resident[page]

    def _evict(self) -> int:
        """Evict the pages of the least recently used frame; return when they have left (ps)."""
        frame, _ = self.frames.popitem(last=False)
        gone = self.batch_end
        for page in range(frame * self.frame_pages, (frame + 1) * self.frame_pages):
            if page in self.resident:
                del self.resident[page]
                self.counts["um.pages_evicted"] += 1
                self.counts["link.migration_out_bytes"] += self.keys.page_size
                gone = self.link.write(self.keys.page_size, self.batch_end)
                self.leave_caches(range(page * self.page_entries, (page + 1) * self.page_entries))
        return gone
