"""Thread blocks: what they need of an SM, and their dispatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from buddysim.machine import Machine
from buddysim.trace import Kernel
from tests.reference.replay.numbers import RefNumbers
from tests.reference.replay.operations import RefBlockProgram
from tests.reference.replay.sm.instruction_cache import RefInstructionCache
from tests.reference.replay.sm.schedulers import RefScheduler
from tests.reference.replay.sm.warps import RefWarp


@dataclass(eq=False)
class RefRunningKernel:
    """A kernel from its launch to its end.

    `waiting` are the thread blocks that are not dispatched, `stale_l1s` the SMs whose L1 may have lines from before its
    start.
    """

    kernel: Kernel
    launched: int
    starts: int
    waiting: list[RefBlockProgram]
    started: bool = False
    running_blocks: int = 0
    stored: int = 0
    before: dict[str, int] = field(default_factory=dict)
    code: dict[int, RefInstructionCache] = field(default_factory=dict)
    stale_l1s: set[int] = field(default_factory=set)

    @property
    def ended(self) -> bool:
        return self.started and not self.waiting and not self.running_blocks

    def code_on(self, sm: RefSm) -> RefInstructionCache:
        """Return the kernel's instruction cache on an SM."""
        return self.code.setdefault(sm.number, RefInstructionCache(sm.numbers, self.kernel.code_bytes))

    def needs(self) -> dict[str, int]:
        """Return the resources of an SM that each thread block of the kernel takes."""
        warps = self.kernel.warps_per_block
        block = self.kernel.block
        return {
            "blocks": 1,
            "threads": block[0] * block[1] * block[2],
            "registers": warps * -(-self.kernel.registers * 32 // 256) * 256,
            "shared_memory": self.kernel.shared_memory_bytes,
        }


@dataclass(eq=False)
class RefThreadBlock:
    """A thread block on an SM."""

    owner: RefRunningKernel
    left: int
    warps: list[RefWarp] = field(default_factory=list)
    stored: int = 0
    arrived: int = 0

    def end_of_stores(self) -> int:
        """Return when the kernel's last warp may end after all stores (ps); 0 for any other warp."""
        if self.left > 1:
            return 0
        self.owner.stored = max(self.owner.stored, self.stored)
        return 0 if self.owner.waiting or self.owner.running_blocks > 1 else self.owner.stored


class RefSm:
    """The free resources of an SM.

    Parameters
    ----------
    numbers : of the machine
    number : its own
    schedulers : its own
    """

    def __init__(self, numbers: RefNumbers, number: int, schedulers: list[RefScheduler]) -> None:
        machine: Machine = numbers.machine
        self.numbers, self.number, self.schedulers = numbers, number, schedulers
        self.make_warp: Callable[..., RefWarp] = RefWarp
        self.free_slots = set(range(machine.sm.warps))
        self.free = {
            "blocks": machine.sm.blocks,
            "threads": machine.sm.threads,
            "registers": machine.sm.registers,
            "shared_memory": machine.sm.shared_memory,
        }
        self.next_block = self.next_barrier = 0

    def has_capacity(self, kernel: RefRunningKernel) -> bool:
        """Return whether the SM can hold a thread block of a kernel."""
        fits = all(need <= self.free[what] for what, need in kernel.needs().items())
        return fits and kernel.kernel.warps_per_block <= len(self.free_slots)

    def dispatch(self, kernel: RefRunningKernel, now: int) -> None:
        """Start the kernel's next thread block."""
        program = kernel.waiting.pop(0)
        if not program.warps:
            return
        start = max(now, self.next_block)
        per_warp = self.numbers.warp_launch_interval
        self.next_block = start + self.numbers.block_launch_interval + len(program.warps) * per_warp
        for what, need in kernel.needs().items():
            self.free[what] -= need
        kernel.running_blocks += 1
        block = RefThreadBlock(kernel, len(program.warps))
        for i, warp_program in enumerate(program.warps):
            slot = min(self.free_slots)
            self.free_slots.remove(slot)
            begin = start + self.numbers.block_latency + i * per_warp
            warp = self.make_warp(self.numbers, warp_program, block, slot, begin, kernel.code_on(self))
            block.warps.append(warp)
            self.schedulers[slot % len(self.schedulers)].warps.append(warp)

    def at_barrier(self, warp: RefWarp, now: int) -> None:
        """Let a warp arrive at its block's barrier; warps of an SM arrive one after the other."""
        warp.wait_at_barrier()
        self.next_barrier = max(now, self.next_barrier) + self.numbers.barrier_interval
        warp.block.arrived = self.next_barrier
        release_barrier(warp.block, now)

    def warp_ended(self, warp: RefWarp, now: int) -> bool:
        """Free the warp's slot; return whether its block has ended."""
        block = warp.block
        self.free_slots.add(warp.slot)
        block.warps = [other for other in block.warps if other is not warp]
        block.left -= 1
        if block.left:
            release_barrier(block, now)
            return False
        for what, need in block.owner.needs().items():
            self.free[what] += need
        block.owner.running_blocks -= 1
        return True


def release_barrier(block: RefThreadBlock, now: int) -> None:
    """Release the block's warps if all that have not ended are at the barrier."""
    if all(warp.at_barrier for warp in block.warps):
        for warp in block.warps:
            warp.leave_barrier(max(now, block.arrived))
