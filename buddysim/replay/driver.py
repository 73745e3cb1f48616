"""One run: a trace, a machine and a scheme in; a result out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ProfileOptions, SizeSource, Targets
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.machine import Machine
from buddysim.replay.address_space import AddressSpace, AllocationRange
from buddysim.replay.allocation_events import AllocationChanges, is_used
from buddysim.replay.chunk_reader import ChunkReader
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.engine.kinds import Placement
from buddysim.replay.entry_classes import EntryClasses
from buddysim.replay.footprint import check_capacity, footprint_of
from buddysim.replay.host_memory_check import check_host_memory
from buddysim.replay.lazy_allocations import LazyAllocations
from buddysim.replay.lazy_array import lazy_zeros
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.result import ReplayResult, build_result
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import Kernel, KernelLaunch, Memcpy, Memset, Trace

OPERATIONS_PER_CALL = 250_000


class ReplayRun:
    """The state of one run between the engine's calls; `simulation.Simulation` is its only caller."""

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
        self.layout = AddressSpace(trace)
        self.targets = targets if self.scheme.uses_targets else None
        self.footprint = footprint_of(
            trace, self.kernels, self.targets, machine, self.scheme.allocations_in_host_memory
        )
        if self.scheme.checks_capacity:
            check_capacity(self.footprint, machine, trace, self.scheme.uses_targets)
        self.sizes = SizeSource(trace, options.compressor, options.seed, options.size_distribution)
        self.states: EntryClasses | None = None
        check_host_memory(trace, self.layout, self.kernels)
        self.large = LazyAllocations(self.layout)
        if self.scheme.uses_sizes:
            first = self.kernels[0].launch_index if self.kernels else 0
            self.states = EntryClasses(self.layout, self.sizes, first, self.large)
        array = self.states.array if self.states else lazy_zeros(self.layout.n_entries)
        self.numbers = engine_numbers(machine, compute_gap_scale)
        self.scheme.configure(machine, self.footprint.largest()["allocated"] // ENTRY_BYTES, capacity_bytes)
        self.engine = ReplayEngine(self.numbers, self._regions(), array, self.scheme, queueing)
        self.moments = dict(self.layout.moments)
        self.per_kernel: list[dict[str, object]] = []
        self.handles: dict[int, tuple[Kernel, ChunkReader, dict[str, int], int]] = {}
        self.launches: list[tuple[int, int]] = []  # position among the events, time (ps)
        self.skipped_copies = 0
        self.launched = 0  # launches that the program made before the event at hand

    def _regions(self) -> NDArray[np.int64]:
        rows = [[p.first_entry, p.end_entry, *self._placement(p)] for p in self.layout.placed]
        return np.array(rows or [[0, self.layout.n_entries, Placement.DEVICE, 4]], dtype=np.int64)

    def _placement(self, placed: AllocationRange) -> tuple[Placement, int]:
        """Which memory an allocation lives in, and the sectors of each entry that device memory keeps."""
        if self.scheme.allocations_in_host_memory or placed.allocation.space == "host":
            return Placement.HOST, 4
        if self.targets is None:
            return Placement.DEVICE, 4
        target = self.targets.of(placed.allocation.index)
        if target.device_sectors == 4 and self.machine.buddy.bypass_1x:
            return Placement.DEVICE, 4
        return Placement.COMPRESSED, target.device_sectors

    def run(self, progress: Callable[[int, int], None] | None) -> ReplayResult:
        """Plays the trace's events in order and collects the result."""
        total = sum(kernel.memory_instructions for kernel in self.kernels)
        chosen = {kernel.index for kernel in self.kernels}
        events = iter(enumerate(self.trace.events))
        waiting = next(events, None)
        launch_ps = self.machine.ps(self.machine.kernel.launch_latency)
        began = time.perf_counter()
        while True:
            while waiting is not None and self._admit(*waiting, chosen, launch_ps):
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

    def _admit(self, position: int, event: object, chosen: set[int], launch_ps: int) -> bool:
        """Starts the next event if it may start now."""
        kernel = self.trace.kernels[event.kernel] if isinstance(event, KernelLaunch) else None
        if self.handles and not self._may_join(position, kernel):
            return False
        self._allocate(position)
        if kernel is None:
            if isinstance(event, Memcpy | Memset):
                self._copy(event)
            return True
        self.launched = kernel.launch_index + 1
        return kernel.index not in chosen or self._start(position, kernel, launch_ps)

    def _may_join(self, position: int, kernel: Kernel | None) -> bool:
        """Whether an event may start while kernels run: that depends on the trace and the machine, on nothing else."""
        if kernel is None or not self.machine.kernel.concurrent_kernels or kernel.stream == 0:
            return False
        if self.moments.get(position, AllocationChanges()).waits:
            return False
        streams = {running[0].stream for running in self.handles.values()}
        return kernel.stream not in streams and 0 not in streams

    def _allocate(self, position: int) -> None:
        """Ends and begins the allocations that do before an event, once."""
        moment = self.moments.pop(position, AllocationChanges())
        for allocation in moment.ends:
            placed = self.layout.of_allocation[allocation.index]
            for first, end in self.large.touched(placed, *self.large.middle(placed)):
                self.engine.materialize(placed.region, first, end, live=False)
            self.engine.end_allocation(placed.region)
            self.large.end(placed)
            if self.states is not None:
                self.states.end(placed)
        for allocation in filter(is_used, moment.begins):
            placed = self.layout.of_allocation[allocation.index]
            self.large.begin(placed)
            self.engine.begin_allocation(placed.region, placed.first_line, *self.large.middle(placed))
            if self.states is not None:
                self.states.begin(placed)
                self.engine.set_writer_launches(placed.region, *self.states.writers(placed))

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
        for placed, run in self.large.touch_lines(chunk.lines):
            self._touch(placed, *run)
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
                self._sizes(self.layout.placed[number], kernel.launch_index)

    def _touch(self, placed: AllocationRange, first_entry: int, end_entry: int) -> None:
        """Lines may be at these entries of a large allocation from now on."""
        self.engine.materialize(placed.region, first_entry, end_entry)
        if self.states is not None:
            self.states.make(placed, first_entry, end_entry)

    def _sizes(self, placed: AllocationRange, launch_index: int) -> None:
        """The engine gets the sizes that the stores of a kernel to an allocation leave."""
        assert self.states is not None
        self.states.after_store(placed, launch_index)
        self.engine.set_writer_launches(placed.region, *self.states.writers(placed))

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
        """A copy or fill: memory takes new contents, and the L2 holds them or drops its sectors of them."""
        if not event.bytes or (isinstance(event, Memcpy) and event.kind == "dtoh"):
            return
        region = self.engine.allocation_of_line(event.address // ENTRY_BYTES)
        if region < 0:
            self.skipped_copies += 1
            return
        placed = self.layout.placed[region]
        allocation = placed.allocation
        end = min(event.address + event.bytes, allocation.end)
        if event.address >= end:
            self.skipped_copies += 1
            return
        offset = placed.first_entry * ENTRY_BYTES - allocation.base  # of the run's address space from the trace's
        first, last = event.address + offset, end - 1 + offset
        entries = first // ENTRY_BYTES, last // ENTRY_BYTES + 1
        if self.states is not None and self.per_kernel:  # earlier copies are in the sizes at the start
            self.states.copy(placed, *entries, self.launched)
            self.engine.set_writer_launches(region, *self.states.writers(placed))
        whole = end + offset if end < allocation.end else (last // SECTOR_BYTES + 1) * SECTOR_BYTES
        sectors = -(-first // SECTOR_BYTES), whole // SECTOR_BYTES
        holds = self.machine.l2.fill_on_memcpy and self._placement(placed)[0] != Placement.HOST
        if holds:
            held = max(entries[0], entries[1] - self.engine.max_installed_entries)
            for run in self.large.touch(placed, held, entries[1]):
                self._touch(placed, *run)
        self.engine.overwrite(*entries, *sectors, holds)
