"""Reference model of `parser`, `instruction` and `warp`: one grouped, well-formed kernel trace, token by token.

It checks nothing and stores no values; local memory is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from buddysim.importers.accelsim.header import KernelHeader
from buddysim.importers.accelsim.opcodes import InstructionRole, Opcode
from buddysim.trace.records import (
    ATOMIC_CONFLICTS_SHIFT,
    BANK_WORDS_SHIFT,
    FLAG_BYPASS_L1,
    FLAG_NO_RETURN,
    FLAG_TIMED,
    OP_ATOMIC,
    OP_BARRIER,
    OP_LOAD,
    OP_STORE,
)
from tests.reference.trace.ref_coalesce import atomic_conflicts, bank_words, coalesce_op

NOMINAL_STEP = 6
UNIT_QUEUE = 4
WINDOW_BYTES = 1 << 24


@dataclass
class RefParsedInstruction:
    """One line."""

    pc: int
    lanes: list[int]
    destinations: list[str]
    opcode: Opcode
    sources: list[str]
    addresses: list[int]  # of the active lanes
    has_memory: bool
    immediate: int


@dataclass
class RefParsedOp:
    """As `WarpOp`, with its lines and program counter."""

    pc: int
    gap_instructions: int
    unit_busy_slots: int
    chain: tuple[int, int]
    kind: int
    width: int
    flags: int
    lines: list[int]
    use_distance: int = 0
    use: tuple[int, int] = (0, 0)


@dataclass
class RefParsedWarp:
    """A warp's number, its operations, and the instructions after the last one."""

    number: int
    ops: list[RefParsedOp] = field(default_factory=list)
    tail_gap_instructions: int = 0
    tail: tuple[int, int] = (0, 0)
    tail_unit_busy_slots: int = 0


def parse(text: str, header: KernelHeader, classify: Callable[[str], Opcode]) -> list[tuple[int, list[RefParsedWarp]]]:
    """Thread blocks (linear number, warps) of the text after the header."""
    blocks: list[tuple[int, list[RefParsedWarp]]] = []
    lines = iter(text.split("\n"))
    for line in lines:
        tokens = line.split()
        if tokens[:2] == ["thread", "block"]:
            x, y, z = (int(part) for part in tokens[3].split(","))
            blocks.append(((z * header.grid[1] + y) * header.grid[0] + x, []))
        elif tokens[:1] == ["warp"]:
            warp = RefParsedWarp(int(tokens[2]))
            blocks[-1][1].append(warp)
            count = int(next(lines).split()[2])
            time_warp(warp, (parse_instruction(next(lines), header, classify) for _ in range(count)), header)
    return blocks


def parse_instruction(line: str, header: KernelHeader, classify: Callable[[str], Opcode]) -> RefParsedInstruction:
    """Read one line."""
    tokens = iter(line.split())
    for _ in range((4 if header.version < 3 else 0) + header.line_info):
        next(tokens)
    pc, mask = int(next(tokens), 16), int(next(tokens), 16)
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    destinations = [next(tokens) for _ in range(int(next(tokens)))]
    opcode = classify(next(tokens))
    sources = [next(tokens) for _ in range(int(next(tokens)))]
    has_memory = int(next(tokens)) > 0
    addresses: list[int] = []
    if has_memory:
        mode = int(next(tokens))
        if mode == 0:
            addresses = [int(next(tokens), 16) for _ in lanes]
        else:
            base = int(next(tokens), 16)
            if mode == 1:
                stride = int(next(tokens))
                addresses = [base + k * stride for k in range(len(lanes))]
            else:
                for k in range(len(lanes)):
                    base += int(next(tokens)) if k else 0
                    addresses.append(base)
    immediate = int(next(tokens)) if header.version >= 5 else 0
    return RefParsedInstruction(pc, lanes, destinations, opcode, sources, addresses, has_memory, immediate)


def role_of(instruction: RefParsedInstruction, header: KernelHeader) -> InstructionRole:
    """Return the instruction's kind, generic accesses resolved by their first address."""
    role, shared, local = instruction.opcode.role, header.shared_base, header.local_base
    if role not in (InstructionRole.GENERIC_LOAD, InstructionRole.GENERIC_STORE):
        return role
    if not shared or not local or not instruction.addresses:
        return InstructionRole.SHARED
    address = instruction.addresses[0]
    if shared <= address < (local if local > shared else shared + WINDOW_BYTES):
        return InstructionRole.SHARED
    is_load = role == InstructionRole.GENERIC_LOAD
    if local <= address < (shared if shared > local else local + WINDOW_BYTES):
        return InstructionRole.LOCAL_LOAD if is_load else InstructionRole.LOCAL_STORE
    return InstructionRole.LOAD if is_load else InstructionRole.STORE


def registers_of(name: str, count: int) -> list[str]:
    """Return the registers of an operand: `count` from the named one, without registers that read as zero."""
    kind, number = name.rstrip("0123456789"), int(name.lstrip("URPB"))
    if kind not in ("R", "UR") or (kind == "UR" and number == 63) or number == 255:
        return []
    return [f"{kind}{number + k}" for k in range(count) if number + k < 255]


def bank_conflicts(addresses: list[int]) -> int:
    """Most distinct words in one of 32 banks."""
    words = {address // 4 for address in addresses}
    return max(sum(word % 32 == bank for word in words) for bank in range(32))


def later(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether clock a is later than clock b; a clock is (cycles, steps)."""
    return a[0] + NOMINAL_STEP * a[1] > b[0] + NOMINAL_STEP * b[1]


def advance(now: tuple[int, int], then: tuple[int, int]) -> tuple[int, int]:
    """now - then, part by part, not below 0: a later path can have fewer cycles and more steps."""
    return max(now[0] - then[0], 0), max(now[1] - then[1], 0)


def time_warp(warp: RefParsedWarp, instructions: Iterable[RefParsedInstruction], header: KernelHeader) -> None:
    """Issues a warp's instructions and fills in its operations."""
    stream = RefWarpStream(warp)
    for instruction in instructions:
        stream.issue(instruction, role_of(instruction, header))
    warp.tail_gap_instructions, warp.tail = stream.number - stream.last_number, advance(stream.end(), stream.last_op)
    warp.tail_unit_busy_slots = stream.unit_busy_slots()


class RefWarpStream:
    """A warp's scoreboard; a clock is (cycles, steps)."""

    def __init__(self, warp: RefParsedWarp) -> None:
        self.warp = warp
        self.now = self.last_op = (0, 0)
        self.written = (0, 0)  # when all has executed but for loads
        self.number = self.last_number = 0
        self.ready: dict[str, tuple[int, int]] = {}
        self.unit_free: dict[int, tuple[int, int]] = {}
        self.unit_busy = Counter[int]()  # by the instructions since the last operation
        self.loaders: dict[str, int] = {}  # register -> operation that writes it
        self.pending: list[tuple[tuple[int, int], int, int]] = []  # issue clock, number, group of each operation
        self.unused: set[int] = set()
        self.group = 1

    def issue(self, instruction: RefParsedInstruction, role: InstructionRole) -> None:
        """Issues the next instruction when its registers and its unit allow."""
        self.number += 1
        opcode = instruction.opcode
        read = [register for name in instruction.sources for register in registers_of(name, 1)]
        written = [register for name in instruction.destinations for register in registers_of(name, opcode.registers)]
        start = self.start(read + written, opcode)
        for register in read + written:
            if register in self.loaders:
                self.use(self.loaders[register])
        for register in written:
            self.loaders.pop(register, None)
        self.synchronise(instruction, role)

        kind, latency, passes = None, opcode.latency, 1
        if instruction.lanes and role == InstructionRole.BARRIER:
            kind = OP_BARRIER
        elif instruction.lanes and instruction.has_memory:
            if role in (InstructionRole.LOAD, InstructionRole.ASYNC_COPY):
                kind = OP_LOAD
            elif role in (InstructionRole.STORE, InstructionRole.ATOMIC):
                kind = OP_STORE if role == InstructionRole.STORE else OP_ATOMIC
            elif role == InstructionRole.SHARED:
                passes = bank_conflicts(instruction.addresses)
                latency += passes - 1
        self.unit_busy[opcode.unit] += opcode.interval * passes * opcode.shared_by
        if kind is not None:
            self.add_op(instruction, role, kind)
        done = (start[0] + latency, start[1] + 1)
        for register in written:
            if kind in (OP_LOAD, OP_STORE, OP_ATOMIC):
                self.loaders[register] = len(self.pending) - 1
                self.ready[register] = self.now
            else:
                self.ready[register] = done
        if kind not in (OP_LOAD, OP_STORE, OP_ATOMIC) and later(done, self.written):
            self.written = done

    def end(self) -> tuple[int, int]:
        """When an instruction of one cycle would have to issue to be the last that has executed, now or later."""
        last = (max(self.written[0] - 1, 0), max(self.written[1] - 1, 0))
        return last if all(self.written) and later(last, self.now) else self.now

    def start(self, registers: list[str], opcode: Opcode) -> tuple[int, int]:
        """When the unit starts the instruction; it issues (`now`) when registers and the unit's queue allow."""
        clock = (self.now[0] + 1, self.now[1])
        for register in registers:
            if later(self.ready.get(register, (0, 0)), clock):
                clock = self.ready[register]
        free = self.unit_free.get(opcode.unit, (0, 0))
        if free[0] > UNIT_QUEUE * opcode.interval:
            queued = (free[0] - UNIT_QUEUE * opcode.interval, free[1])
            if later(queued, clock):
                clock = queued
        start = free if later(free, clock) else clock
        self.unit_free[opcode.unit] = (start[0] + opcode.interval, start[1])
        self.now = clock
        return start

    def use(self, index: int) -> None:
        """The result of an operation has its first use now."""
        if index in self.unused:
            self.unused.remove(index)
            issued, its_number, _ = self.pending[index]
            self.warp.ops[index].use_distance = self.number - its_number
            self.warp.ops[index].use = advance(self.now, issued)

    def synchronise(self, instruction: RefParsedInstruction, role: InstructionRole) -> None:
        """Fences and waits use what they wait for."""
        if role == InstructionRole.MEMORY_FENCE:
            for index in range(len(self.pending)):
                self.use(index)
        elif role == InstructionRole.ASYNC_COMMIT:
            self.group += 1
        elif role == InstructionRole.ASYNC_WAIT:
            for index, (_, _, group) in enumerate(self.pending):
                if 0 < group < self.group and self.group - 1 - group >= max(instruction.immediate, 0):
                    self.use(index)

    def unit_busy_slots(self) -> int:
        """Cycles of the busiest unit beyond one for each instruction since the last operation."""
        since = self.number - self.last_number
        return max([since, *self.unit_busy.values()]) - since

    def add_op(self, instruction: RefParsedInstruction, role: InstructionRole, kind: int) -> None:
        """An access to global memory, or a barrier."""
        opcode, barrier = instruction.opcode, kind == OP_BARRIER
        flags = FLAG_TIMED
        returns = any(registers_of(name, 1) for name in instruction.destinations)
        if kind == OP_ATOMIC and (opcode.no_return or not returns):
            flags |= FLAG_NO_RETURN
        if kind == OP_ATOMIC:
            flags |= atomic_conflicts(instruction.addresses, opcode.width) << ATOMIC_CONFLICTS_SHIFT
        flags |= FLAG_BYPASS_L1 if opcode.bypass_l1 else 0
        words = [] if barrier else coalesce_op(instruction.addresses, opcode.width, kind == OP_STORE)
        if kind in (OP_LOAD, OP_STORE):
            flags |= bank_words(instruction.addresses, opcode.width, words) << BANK_WORDS_SHIFT
        chain = advance(self.now, self.last_op)
        since = self.number - self.last_number
        unit_busy_slots = min(self.unit_busy_slots(), 65535)
        width = 0 if barrier else opcode.width
        self.warp.ops.append(RefParsedOp(instruction.pc, since - 1, unit_busy_slots, chain, kind, width, flags, words))
        self.unit_busy.clear()
        if kind in (OP_LOAD, OP_ATOMIC):
            self.unused.add(len(self.pending))
        self.last_op, self.last_number = (self.last_op[0] + chain[0], self.last_op[1] + chain[1]), self.number
        self.pending.append((self.last_op, self.number, self.group if role == InstructionRole.ASYNC_COPY else 0))
