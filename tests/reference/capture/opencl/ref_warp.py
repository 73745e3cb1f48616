"""Reference model of `runtime/warp.cpp`: a warp from its lanes' logs, and the table that describes the logs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from buddysim.capture.opencl.generated_headers import UNITS
from buddysim.trace.records import ATOMIC_CONFLICTS_SHIFT, BANK_WORDS_SHIFT, FLAG_TIMED, OP_ATOMIC, OP_BARRIER
from tests.reference.trace.ref_coalesce import atomic_conflicts, bank_words, coalesce_op

N_UNITS = len(UNITS)
NOWHERE = USED_ELSEWHERE = 0xFFFFFFFF


@dataclass
class RefComputeGap:
    """Instructions between two operations, their longest dependent chain, and the cycles that they keep units."""

    instructions: int = 0
    cycles: int = 0
    hops: int = 0
    busy: list[int] = field(default_factory=lambda: [0] * N_UNITS)

    @property
    def unit_busy_slots(self) -> int:
        """Cycles that the busiest unit takes beyond one for each instruction and for the operation that follows."""
        return min(max(0, max(self.busy) - self.instructions - 1), 0xFFFF)

    @property
    def tail_unit_busy_slots(self) -> int:
        """Cycles that the busiest unit takes beyond one for each instruction, where no operation follows."""
        return max(0, max(self.busy) - self.instructions)


@dataclass
class RefAccessSite:
    """An instruction that accesses memory, or a barrier; `use` is (distance, cycles, hops) of the first use."""

    kind: int
    bytes: int
    flags: int = 0
    before: RefComputeGap = field(default_factory=RefComputeGap)
    use: tuple[int, int, int] = (0, 0, 0)


@dataclass
class RefUse:
    """A first use of what a site of another block (or of an earlier round) loaded, from the block's start."""

    site: int
    distance: int
    cycles: int
    hops: int


@dataclass
class RefBasicBlock:
    """A basic block."""

    targets: list[int]
    sites: list[int] = field(default_factory=list)
    after: RefComputeGap = field(default_factory=RefComputeGap)
    uses: list[RefUse] = field(default_factory=list)
    logged: bool = False
    join: int | None = None


@dataclass
class RefControlFlow:
    """A kernel's control flow, with block 0 as its entry."""

    sites: list[RefAccessSite]
    blocks: list[RefBasicBlock]
    name: str = "kernel"


@dataclass
class RefLane:
    """One lane's log: logged blocks that it entered, addresses that it accessed."""

    blocks: list[int]
    accesses: list[int]


@dataclass
class RefWarpOp:
    """One warp operation."""

    kind: int
    bytes: int
    flags: int
    before: RefComputeGap
    addresses: list[int]
    use: tuple[int, int, int] = (0, 0, 0)


def joins(targets: Sequence[Sequence[int]]) -> list[int | None]:
    """Immediate post-dominator of each block; None where it is only the kernel's end."""
    end = len(targets)
    following = [list(block) or [end] for block in targets] + [[]]
    after = [set(range(end + 1)) for _ in range(end)] + [{end}]
    changed = True
    while changed:
        changed = False
        for block in range(end):
            common = set.intersection(*(after[target] for target in following[block])) | {block}
            changed |= common != after[block]
            after[block] = common
    result: list[int | None] = []
    for block in range(end):
        strict = after[block] - {block}
        nearest = max(strict, key=lambda other: len(after[other]))
        result.append(None if nearest == end else nearest)
    return result


def regroup(kernel: RefControlFlow, lanes: Sequence[RefLane], memory: range) -> tuple[list[RefWarpOp], RefComputeGap]:
    """The warp's operations and what follows the last one. Barriers are met by all lanes that have not ended."""
    return _RefWarpBuilder(kernel, lanes, memory).run()


class _RefWarpBuilder:
    def __init__(self, kernel: RefControlFlow, lanes: Sequence[RefLane], memory: range) -> None:
        self.kernel, self.memory = kernel, memory
        self.blocks = [iter(lane.blocks) for lane in lanes]
        self.accesses = [iter(lane.accesses) for lane in lanes]
        self.n_lanes = len(lanes)
        self.ops: list[RefWarpOp] = []
        self.issued: list[tuple[int, RefComputeGap]] = []  # of each op: its site; all that came before it
        self.now = RefComputeGap()  # since the warp began; operations count as instructions
        self.since = RefComputeGap()
        self.unused: dict[int, int] = {}  # site -> its last op whose result is unused

    def run(self) -> tuple[list[RefWarpOp], RefComputeGap]:
        self.region(list(range(self.n_lanes)), 0, None)
        return self.ops, self.since

    def region(self, lanes: list[int], block: int, stop: int | None) -> None:
        """Runs the lanes that are together from a block to another one, or to the end."""
        while block != stop:
            self.execute(lanes, self.kernel.blocks[block])
            description = self.kernel.blocks[block]
            if not description.targets:
                return
            next_blocks = {lane: self.next_block(lane, description) for lane in lanes}
            targets = [target for target in dict.fromkeys(description.targets) if target in next_blocks.values()]
            if len(targets) == 1:
                block = targets[0]
                continue
            join = stop if description.join is None else description.join
            for target in targets:
                if target != join:
                    self.region([lane for lane in lanes if next_blocks[lane] == target], target, join)
            if join == stop:
                return
            assert join is not None
            block = join

    def next_block(self, lane: int, block: RefBasicBlock) -> int:
        if len(block.targets) > 1 or self.kernel.blocks[block.targets[0]].logged:
            return next(self.blocks[lane])
        return block.targets[0]

    def execute(self, lanes: list[int], block: RefBasicBlock) -> None:
        for use in block.uses:
            if use.site in self.unused:
                op = self.unused.pop(use.site)
                issue = self.issued[op][1]
                self.ops[op].use = (
                    self.now.instructions + use.distance - issue.instructions,
                    self.now.cycles + use.cycles - issue.cycles,
                    min(self.now.hops + use.hops - issue.hops, 0xFFFF),
                )
        for number in block.sites:
            site = self.kernel.sites[number]
            self.advance(site.before)
            addresses: list[int] = []
            if site.kind != OP_BARRIER:
                touched = (next(self.accesses[lane]) for lane in lanes)
                addresses = [a for a in touched if a in self.memory and a + site.bytes <= self.memory.stop]
                if not addresses:
                    self.advance(RefComputeGap(1))
                    continue
            self.unused.pop(number, None)
            if site.use[0] == USED_ELSEWHERE:
                self.unused[number] = len(self.ops)
            first_use = (0, 0, 0) if site.use[0] == USED_ELSEWHERE else site.use
            self.issued.append((number, RefComputeGap(self.now.instructions, self.now.cycles, self.now.hops)))
            flags = site.flags | FLAG_TIMED
            if site.kind == OP_ATOMIC:
                flags |= atomic_conflicts(addresses, site.bytes) << ATOMIC_CONFLICTS_SHIFT
            elif site.kind != OP_BARRIER:
                lines = coalesce_op(addresses, site.bytes, is_store=False)
                flags |= bank_words(addresses, site.bytes, lines) << BANK_WORDS_SHIFT
            self.ops.append(RefWarpOp(site.kind, site.bytes, flags, self.since, addresses, first_use))
            self.since = RefComputeGap()
            self.now.instructions += 1
        self.advance(block.after)

    def advance(self, gap: RefComputeGap) -> None:
        for clock in (self.now, self.since):
            clock.instructions += gap.instructions
            clock.cycles += gap.cycles
            clock.hops += gap.hops
            clock.busy = [sum(pair) for pair in zip(clock.busy, gap.busy, strict=True)]


def words(kernel: RefControlFlow) -> list[int]:
    """The kernel in the words of `table.h`, without arguments."""
    result = [*_text(kernel.name), *_text(""), 0, 0, 0, 0, len(kernel.sites)]
    for site in kernel.sites:
        result += [site.kind, site.bytes, site.flags, *_gap_words(site.before), *site.use]
    result.append(len(kernel.blocks))
    for block in kernel.blocks:
        join = NOWHERE if block.join is None else block.join
        result += [int(block.logged), join, *_gap_words(block.after)]
        result += [len(block.targets), *block.targets, len(block.sites), *block.sites, len(block.uses)]
        result += itertools.chain.from_iterable((use.site, use.distance, use.cycles, use.hops) for use in block.uses)
    return result


def _gap_words(gap: RefComputeGap) -> tuple[int, ...]:
    return gap.instructions, gap.cycles, gap.hops, *gap.busy


def _text(text: str) -> Iterator[int]:
    data = text.encode()
    yield len(data)
    for start in range(0, len(data), 4):
        yield int.from_bytes(data[start : start + 4], "little")
