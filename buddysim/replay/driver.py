"""Simulation of one run: plays a trace's events on the engine and collects the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ALL_TARGETS, ProfileOptions, SizeSource, Targets
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.machine import Machine
from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.allocation_events import AllocationChanges, is_used
from buddysim.replay.chunk_reader import ChunkReader
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.entry_classes import EntryClasses
from buddysim.replay.footprint import check_capacity, footprint_of
from buddysim.replay.host_memory_check import check_host_memory
from buddysim.replay.lazy_allocations import LazyAllocations
from buddysim.replay.lazy_array import lazy_zeros
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.primitives.kinds import Placement
from buddysim.replay.result import ReplayResult, build_result
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import Kernel, KernelLaunch, Memcpy, Memset, Trace

OPERATIONS_PER_CALL = 250_000


class ReplayRun:
    """The state of one run between calls of the engine; `simulation.Simulation` is its only caller."""

    def __init__(
        self,
        trace: Trace,
        machine: Machine,
        scheme_name: str,
        targets: Targets | None,
        options: ProfileOptions,
        kernels: Sequence[Kernel],
        compute_gap_scale: Fraction,
        queueing: bool,
        capacity_bytes: int | None = None,
    ) -> None:
        self.trace, self.machine, self.scheme_name = trace, machine, scheme_name
        self.options, self.compute_gap_scale = options, compute_gap_scale
        self.scheme = REGISTRY.find(scheme_name)()
        self.kernels = kernels
        self.address_space = AddressSpace(trace)
        self.targets = targets if self.scheme.uses_targets else None
        self.footprint = footprint_of(trace, self.kernels, self.targets, machine, type(self.scheme))
        if self.scheme.checks_capacity:
            check_capacity(self.footprint, machine, trace, type(self.scheme))
        self.placements = {target: self.scheme.placement(machine, target) for target in ALL_TARGETS if self.targets}
        self.sizes = SizeSource(trace, options.compressor, options.seed, options.size_distribution)
        self.entry_classes: EntryClasses | None = None
        check_host_memory(trace, self.address_space, self.kernels)
        self.lazy_allocations = LazyAllocations(self.address_space)
        if self.scheme.uses_sizes:
            first = self.kernels[0].launch_index if self.kernels else 0
            self.entry_classes = EntryClasses(self.address_space, self.sizes, first, self.lazy_allocations)
        array = self.entry_classes.array if self.entry_classes else lazy_zeros(self.address_space.n_entries)
        self.numbers = engine_numbers(machine, compute_gap_scale)
        self.scheme.configure(machine, self.footprint.largest()["allocated"] // ENTRY_BYTES, capacity_bytes)
        self.engine = ReplayEngine(self.numbers, self._regions(), array, self.scheme, machine.policies(), queueing)
        self.changes = dict(self.address_space.changes)
        self.per_kernel: list[dict[str, object]] = []
        self.handles: dict[int, tuple[Kernel, ChunkReader, dict[str, int], int]] = {}
        self.launches: list[tuple[int, int]] = []  # event index, time (ps)
        self.skipped_copies = 0
        self.launched = 0  # launches of the program before the current event

    def _regions(self) -> NDArray[np.int64]:
        rows = [[p.first_entry, p.end_entry, *self._placement(p)] for p in self.address_space.ranges]
        return np.array(rows or [[0, self.address_space.n_entries, Placement.DEVICE, 4]], dtype=np.int64)

    def _placement(self, allocation_range: AllocationRange) -> tuple[Placement, int]:
        """Return the memory of an allocation, and the device sectors of each of its entries."""
        if self.scheme.allocations_in_host_memory or allocation_range.allocation.space == "host":
            return Placement.HOST, 4
        if self.targets is None:
            return Placement.DEVICE, 4
        return self.placements[self.targets.of(allocation_range.allocation.index)]

    def run(self, progress: Callable[[int, int], None] | None) -> ReplayResult:
        """Play the trace's events in order and return the result."""
        total = sum(kernel.memory_instructions for kernel in self.kernels)
        selected = {kernel.index for kernel in self.kernels}
        events = iter(enumerate(self.trace.events))
        waiting = next(events, None)
        launch_ps = self.machine.ps(self.machine.kernel.launch_latency)
        began = time.perf_counter()
        while True:
            while waiting is not None and self._admit(*waiting, selected, launch_ps):
                waiting = next(events, None)
            if waiting is None and not self.handles:
                self._allocate(len(self.trace.events))
                break
            word, handle = self.engine.run(OPERATIONS_PER_CALL)
            if word == "chunk":
                self._feed(handle)
            elif word == "done":
                self._finish(handle)
            elif word == "idle":
                end_ps = self.engine.end_of_time_ps()
                if end_ps is not None:
                    raise BuddysimError(
                        f"{self.trace.path}: kernel {min(self.handles)} ends later than a run on {self.machine.name} "
                        f"can go: {end_ps / 3600e12:.1f} hours of simulated time"
                    )
                raise BuddysimError(
                    f"{self.trace.path}: warps wait at a barrier that the others of their thread block "
                    f"never reach (kernel {min(self.handles)})"
                )
            if progress is not None:
                progress(self.engine.memory_instructions, total)
        return build_result(self, time.perf_counter() - began)

    def _admit(self, position: int, event: object, selected: set[int], launch_ps: int) -> bool:
        """Start the next event if it may start now."""
        kernel = self.trace.kernels[event.kernel] if isinstance(event, KernelLaunch) else None
        if self.handles and not self._may_join(position, kernel):
            return False
        self._allocate(position)
        if kernel is None:
            if isinstance(event, Memcpy | Memset):
                self._copy(event)
            return True
        self.launched = kernel.launch_index + 1
        return kernel.index not in selected or self._start(position, kernel, launch_ps)

    def _may_join(self, position: int, kernel: Kernel | None) -> bool:
        """Return whether an event may start while kernels run; it depends on the trace and the machine alone."""
        if kernel is None or not self.machine.kernel.concurrent_kernels or kernel.stream == 0:
            return False
        if self.changes.get(position, AllocationChanges()).waits:
            return False
        streams = {running[0].stream for running in self.handles.values()}
        return kernel.stream not in streams and 0 not in streams

    def _allocate(self, position: int) -> None:
        """End and begin the allocations that change before an event, once."""
        changes = self.changes.pop(position, AllocationChanges())
        for allocation in changes.ends:
            allocation_range = self.address_space.range_of[allocation.index]
            for first, end in self.lazy_allocations.materialized(
                allocation_range, *self.lazy_allocations.segment_range(allocation_range)
            ):
                self.engine.materialize(allocation_range.region, first, end, live=False)
            self.engine.end_allocation(allocation_range.region)
            self.lazy_allocations.end(allocation_range)
            if self.entry_classes is not None:
                self.entry_classes.end(allocation_range)
        for allocation in filter(is_used, changes.begins):
            allocation_range = self.address_space.range_of[allocation.index]
            self.lazy_allocations.begin(allocation_range)
            self.engine.begin_allocation(
                allocation_range.region,
                allocation.first_line,
                *self.lazy_allocations.segment_range(allocation_range),
            )
            if self.entry_classes is not None:
                self.entry_classes.begin(allocation_range)
                self.engine.set_writer_launches(allocation_range.region, *self.entry_classes.writers(allocation_range))

    def _start(self, position: int, kernel: Kernel, launch_ps: int) -> bool:
        sm, threads = self.machine.sm, kernel.block[0] * kernel.block[1] * kernel.block[2]
        warps = -(-threads // 32)
        registers = warps * -(-kernel.registers * 32 // 256) * 256
        for what, needed, available in (
            ("threads", threads, sm.threads),
            ("warps", warps, sm.warps),
            ("registers", registers, sm.registers),
            ("bytes of shared memory", kernel.shared_memory_bytes, sm.shared_memory),
        ):
            if needed > available:
                raise BuddysimError(
                    f"{self.trace.path}: kernel {kernel.index} ({kernel.name}): a thread block needs {needed} {what}: "
                    f"an SM of {self.machine.name} has {available}"
                )
        if not self.engine.start_kernel(
            kernel.index,
            self.engine.now_ps + launch_ps,
            kernel.n_blocks,
            warps,
            threads,
            registers,
            kernel.shared_memory_bytes,
            kernel.code_bytes,
        ):
            return False
        self.launches.append((position, self.engine.now_ps))
        before = self.engine.kernel_counters()
        self.handles[kernel.index] = (kernel, ChunkReader(self.trace, kernel), before, self.engine.now_ps)
        return True

    def _feed(self, handle: int) -> None:
        kernel, feed, _, _ = self.handles[handle]
        chunk = feed.next_chunk()
        if chunk is None:
            raise BuddysimError(
                f"{self.trace.path}: kernel {kernel.index} ({kernel.name}): its chunks hold fewer thread blocks than "
                f"the {kernel.n_blocks} that it lists"
            )
        if not len(chunk.blocks):
            return
        for allocation_range, run in self.lazy_allocations.materialize_lines(chunk.lines):
            self._materialize(allocation_range, *run)
        word, number = "", -1
        while word != "taken":
            word, number = self.engine.add_chunk(
                handle,
                chunk.blocks.view(np.uint8),
                chunk.warps.view(np.uint8),
                chunk.ops.view(np.uint8),
                chunk.lines,
                kernel.launch_index,
            )
            if word == "outside":
                raise feed.outside(int(chunk.lines[number]), number)
            if word == "sizes":
                self._sizes(self.address_space.ranges[number], kernel.launch_index)

    def _materialize(self, allocation_range: AllocationRange, first_entry: int, end_entry: int) -> None:
        """Make the state of a range of entries of a large allocation, which lines may access from now on."""
        self.engine.materialize(allocation_range.region, first_entry, end_entry)
        if self.entry_classes is not None:
            self.entry_classes.materialize(allocation_range, first_entry, end_entry)

    def _sizes(self, allocation_range: AllocationRange, launch_index: int) -> None:
        """Give the engine the size classes that the stores of a kernel give an allocation's entries."""
        assert self.entry_classes is not None
        self.entry_classes.after_store(allocation_range, launch_index)
        self.engine.set_writer_launches(allocation_range.region, *self.entry_classes.writers(allocation_range))

    def _finish(self, handle: int) -> None:
        kernel, _, before, launch_ps = self.handles.pop(handle)
        after = self.engine.kernel_counters()
        self.per_kernel.append(
            {
                "index": kernel.index,
                "name": kernel.name,
                "launch_index": kernel.launch_index,
                "launch_ps": launch_ps,
                "time_ps": self.engine.now_ps - launch_ps,
                "cycles": (self.engine.now_ps - launch_ps) // int(self.numbers["cycle_ps"]),  # type: ignore[call-overload]
                **{name: after[name] - before[name] for name in after},
            }
        )

    def _copy(self, event: Memcpy | Memset) -> None:
        """Apply a memcpy or memset: the L2 caches the new contents or drops its sectors of them."""
        if not event.bytes or (isinstance(event, Memcpy) and event.kind == "dtoh"):
            return
        region = self.engine.allocation_of_line(event.address // ENTRY_BYTES)
        if region < 0:
            self.skipped_copies += 1
            return
        allocation_range = self.address_space.ranges[region]
        allocation = allocation_range.allocation
        end = min(event.address + event.bytes, allocation.end)
        if event.address >= end:
            self.skipped_copies += 1
            return
        offset = (
            allocation_range.first_entry * ENTRY_BYTES - allocation.base
        )  # of the run's address space from the trace's
        first, last = event.address + offset, end - 1 + offset
        entries = first // ENTRY_BYTES, last // ENTRY_BYTES + 1
        if self.entry_classes is not None and self.per_kernel:  # the sizes at the start include earlier copies
            self.entry_classes.copy(allocation_range, *entries, self.launched)
            self.engine.set_writer_launches(region, *self.entry_classes.writers(allocation_range))
        end_byte = end + offset if end < allocation.end else (last // SECTOR_BYTES + 1) * SECTOR_BYTES
        sectors = -(-first // SECTOR_BYTES), end_byte // SECTOR_BYTES
        fills_l2 = self.machine.l2.fill_on_memcpy and self._placement(allocation_range)[0] != Placement.HOST
        if fills_l2:
            first_cached = max(entries[0], entries[1] - self.engine.max_installed_entries)
            for run in self.lazy_allocations.materialize(allocation_range, first_cached, entries[1]):
                self._materialize(allocation_range, *run)
        self.engine.overwrite(*entries, *sectors, fills_l2)
