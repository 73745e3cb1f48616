"""One run: a trace, a machine and a scheme in; a result out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ProfileOptions, SizeSource, Targets
from buddysim.compress import ENTRY_BYTES
from buddysim.machine import Machine
from buddysim.replay.engine.event_loop import Engine
from buddysim.replay.engine.kinds import Placement
from buddysim.replay.feed import ChunkFeed
from buddysim.replay.footprint import check_capacity, footprint_of
from buddysim.replay.layout import Layout, Placed
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.result import ReplayResult, build_result
from buddysim.replay.schemes import REGISTRY
from buddysim.replay.states import EntryStates
from buddysim.trace import Kernel, KernelLaunch, Memcpy, Memset, Trace

OPERATIONS_PER_CALL = 250_000
L2_FILL_FACTOR = 2  # of a copy larger than the L2 only the last part can stay


class Run:
    """The state of one run between the engine's calls; `simulation.Simulation` is its only caller."""

    def __init__(
        self,
        trace: Trace,
        machine: Machine,
        scheme_name: str,
        targets: Targets | None,
        options: ProfileOptions,
        kernels: Sequence[Kernel],
        gap_scale: Fraction,
        queueing: bool,
    ) -> None:
        self.trace, self.machine, self.scheme_name = trace, machine, scheme_name
        self.options, self.gap_scale = options, gap_scale
        self.scheme = REGISTRY.find(scheme_name)()
        self.kernels = kernels
        self.layout = Layout(trace)
        self.targets = targets if self.scheme.uses_targets else None
        self.footprint = footprint_of(trace, self.kernels, self.targets, machine, self.scheme.on_host)
        if self.scheme.needs_room:
            check_capacity(self.footprint, machine, trace, self.scheme.uses_targets)
        self.sizes = SizeSource(trace, options.algorithm, options.seed, options.distribution)
        self.states: EntryStates | None = None
        array: NDArray[np.uint8] = np.zeros(0 if self.scheme.uses_sizes else self.layout.n_entries, dtype=np.uint8)
        if self.scheme.uses_sizes:
            self.states = EntryStates(self.layout, self.sizes, self.kernels[0].ordinal if self.kernels else 0)
            array = self.states.array
        self.numbers = engine_numbers(machine, gap_scale)
        self.scheme.configure(machine, self.footprint.largest()["allocated"] // ENTRY_BYTES)
        self.engine = Engine(self.numbers, self._regions(), self.layout.region_of_page(), array, self.scheme, queueing)
        self.per_kernel: list[dict[str, object]] = []
        self.handles: dict[int, tuple[Kernel, ChunkFeed, dict[str, Any], int]] = {}
        self.launches: list[tuple[int, int]] = []  # position among the events, time (ps)
        self.skipped_copies = 0

    def _regions(self) -> NDArray[np.int64]:
        rows = [[p.first_entry, p.end_entry, *self._placement(p)] for p in self.layout.placed]
        return np.array(rows or [[0, self.layout.n_entries, Placement.DEVICE, 4]], dtype=np.int64)

    def _placement(self, placed: Placed) -> tuple[Placement, int]:
        """Which memory an allocation lives in, and the sectors of each entry that device memory keeps."""
        if self.scheme.on_host or placed.allocation.space == "host":
            return Placement.HOST, 4
        if self.targets is None:
            return Placement.DEVICE, 4
        target = self.targets.of(placed.allocation.index)
        if target.kept_sectors == 4 and self.machine.buddy.bypass_1x:
            return Placement.DEVICE, 4
        return Placement.COMPRESSED, target.kept_sectors

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
        if isinstance(event, KernelLaunch):
            kernel = self.trace.kernels[event.kernel]
            if kernel.index not in chosen:
                return True
            streams = {running[0].stream for running in self.handles.values()}
            alone = not self.machine.kernel.concurrent or kernel.stream == 0
            if self.handles and (alone or kernel.stream in streams or 0 in streams):
                return False
            if (
                self.handles
                and self.states is not None
                and self.sizes.next_snapshot(kernel.ordinal)
                != self.sizes.next_snapshot(min(running[0].ordinal for running in self.handles.values()))
            ):
                return False
            return self._start(position, kernel, launch_ps)
        if self.handles:
            return False
        if isinstance(event, Memcpy | Memset):
            self._copy(position, event)
        return True

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
        if self.states is not None:
            self.states.before_kernel(kernel.ordinal)
        if not self.engine.start_kernel(
            kernel.index,
            self.engine.now_ps + launch_ps,
            kernel.n_blocks,
            warps,
            threads,
            registers,
            kernel.shared_memory_bytes,
        ):
            return False
        feed = ChunkFeed(self.trace, kernel, self.layout.live_table(position))
        self.launches.append((position, self.engine.now_ps))
        self.handles[kernel.index] = (kernel, feed, self.engine.counters(), self.engine.now_ps)
        return True

    def _feed(self, handle: int) -> None:
        kernel, feed, _, _ = self.handles[handle]
        chunk = feed.next_chunk()
        if chunk is None:
            raise BuddysimError(
                f"{self.trace.path}: kernel {kernel.index} ({kernel.name}): its chunks hold fewer thread blocks than "
                f"the {kernel.n_blocks} that it lists"
            )
        if len(chunk.blocks):
            outside = self.engine.add_chunk(
                handle,
                chunk.blocks.view(np.uint8),
                chunk.warps.view(np.uint8),
                chunk.ops.view(np.uint8),
                chunk.lines,
                feed.table,
            )
            if outside >= 0:
                raise feed.outside(int(chunk.lines[outside]), outside)

    def _finish(self, handle: int) -> None:
        kernel, _, before, launched_ps = self.handles.pop(handle)
        after = self.engine.counters()
        self.per_kernel.append(
            {
                "index": kernel.index,
                "name": kernel.name,
                "ordinal": kernel.ordinal,
                "launched_ps": launched_ps,
                "time_ps": self.engine.now_ps - launched_ps,
                "cycles": (self.engine.now_ps - launched_ps) // int(self.numbers["cycle_ps"]),  # type: ignore[call-overload]
                "warp_instructions": after["warp_instructions"] - before["warp_instructions"],
                "memory_instructions": after["memory_instructions"] - before["memory_instructions"],
                "device_read_sectors": sum(after["device"][:3]) - sum(before["device"][:3]),
                "device_write_sectors": after["device"][3] - before["device"][3],
                "link_read_bytes": after["link_read_total_bytes"] - before["link_read_total_bytes"],
                "link_write_bytes": after["link_write_total_bytes"] - before["link_write_total_bytes"],
            }
        )

    def _copy(self, position: int, event: Memcpy | Memset) -> None:
        """A copy or fill: memory takes new contents, and the L2 holds them or drops its lines of them."""
        if isinstance(event, Memcpy) and event.kind == "dtoh":
            return
        table = self.layout.live_table(position)
        found = self.layout.entries_of(table, event.address, event.bytes)
        if found is None:
            self.skipped_copies += 1
            return
        first, end = found
        if self.states is not None and self.per_kernel:  # earlier copies are in the sizes at the start
            self.states.overwrite(first, end)
        if self.machine.l2.fill_on_memcpy:
            keep = L2_FILL_FACTOR * self.machine.l2.size // ENTRY_BYTES
            self.engine.fill_l2(max(first, end - keep), end)
        else:
            whole = first + (event.address % ENTRY_BYTES != 0), end - ((event.address + event.bytes) % ENTRY_BYTES != 0)
            self.engine.drop_l2(*whole)
