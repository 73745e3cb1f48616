"""Simulation of one run: plays a trace's events on the engine and collects the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ALL_TARGETS, ProfileOptions, SizeSource, Targets
from buddysim.compress import ENTRY_BYTES
from buddysim.machine import Machine
from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.allocation_events import AllocationChanges, is_used
from buddysim.replay.chunk_reader import ChunkReader
from buddysim.replay.copies.copy_engines import CopyEngines, timed_positions
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
from buddysim.trace import Event, Kernel, KernelLaunch, Memcpy, Memset, Trace

OPERATIONS_PER_CALL = 250_000
#: Events that can wait while later ones of other streams start; CUDA's launch queue has about as many.
MAX_WAITING = 1024


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
        *,
        exact_order: bool = False,
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
        if exact_order and self.scheme.has_faults:
            raise BuddysimError(
                f"exact_order: {scheme_name} has page faults, which warps replay: expected a scheme without them"
            )
        self.exact_order = exact_order
        self.engine = ReplayEngine(
            self.numbers, self._regions(), array, self.scheme, machine.policies(), queueing, exact_order
        )
        self.changes = dict(self.address_space.changes)
        self.per_kernel: list[dict[str, object]] = []
        self.handles: dict[int, tuple[Kernel, ChunkReader, dict[str, int], int]] = {}
        self.launches: list[tuple[int, int]] = []  # event index, time (ps)
        self.copies = CopyEngines(trace, machine, timed_positions(trace, machine, kernels))
        self.selected = {kernel.index for kernel in kernels}
        self.launch_latency_ps = machine.ps(machine.kernel.launch_latency)
        self.events = iter(enumerate(trace.events))
        self.waiting: list[tuple[int, Event]] = []  # events with their positions, the earliest of those not started

    def _regions(self) -> NDArray[np.int64]:
        rows = [[p.first_entry, p.end_entry, *self.placement_of(p)] for p in self.address_space.ranges]
        return np.array(rows or [[0, self.address_space.n_entries, Placement.DEVICE, 4]], dtype=np.int64)

    def placement_of(self, allocation_range: AllocationRange) -> tuple[Placement, int]:
        """Return the memory of an allocation, and the device sectors of each of its entries."""
        if self.scheme.allocations_in_host_memory or allocation_range.allocation.space == "host":
            return Placement.HOST, 4
        if self.targets is None:
            return Placement.DEVICE, 4
        return self.placements[self.targets.of(allocation_range.allocation.index)]

    def run(self, progress: Callable[[int, int], None] | None) -> ReplayResult:
        """Play the trace's events in order and return the result."""
        total = sum(kernel.memory_instructions for kernel in self.kernels)
        began = time.perf_counter()
        self._start_events()
        while self.waiting or self._streams():
            word, handle = self.engine.run(OPERATIONS_PER_CALL)
            if word == "chunk":
                self._feed(handle)
            elif word == "done":
                if not self.copies.has(handle):
                    self._finish(handle)
                elif not self.copies.proceed(self, handle):
                    continue
                self._start_events()
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
        self._allocate(len(self.trace.events))
        return build_result(self, time.perf_counter() - began)

    def _streams(self) -> set[int]:
        """Return the streams in which a kernel or a copy runs."""
        return {running[0].stream for running in self.handles.values()} | self.copies.streams

    def _start_events(self) -> None:
        """Start the events that may; they pass earlier ones of other streams, unless allocations change."""
        at, held = 0, set[int]()  # streams of the events that wait
        while at < MAX_WAITING and 0 not in held:
            if at == len(self.waiting):
                following = next(self.events, None)
                if following is None:
                    return
                self.waiting.append(following)
            position, event = self.waiting[at]
            stream = self.trace.stream_of(event)
            if held and (position in self.changes or stream == 0):
                return
            if stream not in held and self._admit(position, event):
                del self.waiting[at]
            elif position in self.changes:
                return
            else:
                held.add(stream)
                at += 1

    def _admit(self, position: int, event: Event) -> bool:
        """Start an event if what runs lets it."""
        streams = self._streams()
        if streams and not self._may_join(position, event, streams):
            return False
        self._allocate(position)
        if isinstance(event, Memcpy | Memset):
            return self.copies.apply(self, position, event)
        kernel = self.trace.kernels[event.kernel]
        return kernel.index not in self.selected or self._start(position, kernel)

    def _may_join(self, position: int, event: Event, streams: set[int]) -> bool:
        """Return whether an event may start while others run; it depends on the trace and the machine alone."""
        stream = self.trace.stream_of(event)
        if stream == 0 or stream in streams or 0 in streams:
            return False
        if not self.machine.kernel.concurrent_kernels and self.handles and isinstance(event, KernelLaunch):
            return False
        return not self.changes.get(position, AllocationChanges()).waits

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

    def _start(self, position: int, kernel: Kernel) -> bool:
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
            self.engine.now_ps + self.launch_latency_ps,
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
            self.materialize(allocation_range, *run)
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

    def materialize(self, allocation_range: AllocationRange, first_entry: int, end_entry: int) -> None:
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
