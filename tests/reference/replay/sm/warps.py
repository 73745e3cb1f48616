"""A warp: its clock, its stall time and its pending loads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from buddysim.trace import OP_ATOMIC, OP_BARRIER, OP_LOAD, OP_STORE
from tests.reference.replay.numbers import RefNumbers
from tests.reference.replay.operations import RefOperation, RefWarpProgram
from tests.reference.replay.sm.instruction_cache import RefInstructionCache

if TYPE_CHECKING:
    from tests.reference.replay.sm.thread_blocks import RefThreadBlock

MAX_PENDING = 34
MAX_UNIT_BUSY_SLOTS = 65535


@dataclass
class RefPendingLoad:
    """A load whose result is used at `use` on the warp's clock and arrives at `arrival`."""

    use: int
    arrival: int


@dataclass
class RefWarp:
    """A warp on an SM; times are ps.

    Parameters
    ----------
    numbers : of the machine
    program : its instructions
    block : its thread block
    slot : its warp slot on the SM
    begin : when its first instruction may issue, but for its chain
    code : what its SM has of its kernel's code
        awaited : fault blocks (4 KiB) that it waits for, each with the time of the next fault replay (ps)
        expected : of each, when the warp counts on its data (ps)
        accesses : its accesses to each awaited fault block
        in_flight : number of these accesses that the SM's limit allows
        goes_on : arrival of the last page that it waited for while its whole SM stalled (ps)
    """

    numbers: RefNumbers
    program: RefWarpProgram
    block: RefThreadBlock
    slot: int
    begin: int
    code: RefInstructionCache
    position: int = -1
    instructions: int = 0
    clock: int = 0
    shift: int = field(init=False)
    last: int = field(init=False)
    ready: int | None = field(init=False)
    chain: int = field(init=False)
    slots: int = field(init=False)
    unit_busy_slots: int = field(init=False)
    slots_taken: bool = field(init=False)
    has_code: bool = field(init=False)
    pending: list[RefPendingLoad] = field(default_factory=list)
    awaited: dict[int, int] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)
    accesses: Counter[int] = field(default_factory=Counter)
    in_flight: Counter[int] = field(default_factory=Counter)
    goes_on: int = 0

    def __post_init__(self) -> None:
        """Start with the first instruction."""
        self.shift = self.last = self.begin
        self.next()

    @property
    def op(self) -> RefOperation | None:
        """Return the next memory instruction; None at the end."""
        ops = self.program.ops
        return ops[self.position] if self.position < len(ops) else None

    def next(self) -> None:
        """Advance to the next memory instruction, or to the end."""
        self.position += 1
        self.slots_taken = self.has_code = False
        op, program, numbers = self.op, self.program, self.numbers
        if op is None:
            timed = program.tail_critical_path_cycles != 0
            self.chain = numbers.span(
                program.tail_gap_instructions, program.tail_critical_path_cycles, program.tail_critical_path_hops, timed
            )
            self.slots = numbers.scaled(program.tail_gap_instructions)
            self.unit_busy_slots = numbers.scaled(program.tail_unit_busy_slots)
        else:
            self.chain = numbers.span(op.gap_instructions + 1, op.critical_path_cycles, op.critical_path_hops, op.timed)
            self.slots = numbers.scaled(op.gap_instructions) + 1
            self.unit_busy_slots = min(MAX_UNIT_BUSY_SLOTS, numbers.scaled(op.unit_busy_slots))
        self.clock += self.chain
        at = 0
        while at < len(self.pending):
            if op is None or self.pending[at].use <= self.clock:
                self._wait_for(at)
            else:
                at += 1
        if len(self.pending) == MAX_PENDING and op is not None and self._use(op) is not None:
            self._free_an_entry()
        self.ready = self.clock + self.shift
        if op is None:
            self.ready = max(self.ready, self.last)

    def _wait_for(self, at: int) -> None:
        """Wait for a pending load and remove it; the last one of the list takes its index."""
        load = self.pending[at]
        self.shift = max(self.shift, load.arrival - load.use)
        self.pending[at] = self.pending[-1]
        self.pending.pop()

    def _free_an_entry(self) -> None:
        """Waits for the load that arrives first, and takes it out of the list."""
        first = min(range(MAX_PENDING), key=lambda i: self.pending[i].arrival)
        self.shift = max(self.shift, self.pending[first].arrival - self.clock)
        self.pending[first] = self.pending[-1]
        self.pending.pop()

    def wait_for_code(self, now: int) -> int:
        """Return when a warp ready at `now` has the code up to its next memory instruction."""
        if self.has_code:
            return now
        self.has_code = True
        first, self.instructions = self.instructions, self.code.passed(self.instructions, self.slots)
        return now + self.code.wait(first, self.slots, now - self.chain, self.chain)

    def issued(self, op: RefOperation, at: int, arrival: int) -> None:
        """Note that an instruction issued at `at`; all of its lines have arrived at `arrival`."""
        self.shift = at - self.clock
        if op.kind == OP_STORE and not self.numbers.machine.sm.exit_waits_for_stores:
            self.block.stored = max(self.block.stored, arrival)
        else:
            self.last = max(self.last, arrival)
        self.expect(op, arrival)

    def expect(self, op: RefOperation, arrival: int) -> RefPendingLoad | None:
        """Note when the result of an instruction arrives; return the pending load, if its result is used."""
        use = self._use(op)
        if use is None:
            return None
        self.pending.append(RefPendingLoad(self.clock + use, arrival))
        return self.pending[-1]

    def _use(self, op: RefOperation) -> int | None:
        """Return the time from the instruction to the first use of its result; None without a use."""
        if op.kind == OP_ATOMIC and self.numbers.machine.sm.blocking_atomics:
            return self.numbers.scaled(self.numbers.issue_interval)
        if op.kind not in (OP_LOAD, OP_ATOMIC) or not op.use_distance or op.returns_nothing:
            return None
        return self.numbers.span(op.use_distance, op.use_cycles, op.use_hops, op.timed)

    @property
    def at_barrier(self) -> bool:
        """Return whether the warp waits for the other warps of its block."""
        return self.ready is None

    def wait_at_barrier(self) -> None:
        """Let the warp wait, without a ready time, until `leave_barrier`."""
        assert self.op is not None
        assert self.op.kind == OP_BARRIER
        self.ready = None

    def leave_barrier(self, now: int) -> None:
        """Continue after a barrier that is released at `now`."""
        self.shift = max(self.shift, now + self.numbers.barrier - self.clock)
        self.next()
