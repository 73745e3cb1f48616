"""The way of a program through its kernel's machine code, from what the interpreter saw: iterations and accesses.

The interpreter tells how often each loop of the source ran and in which order the program accessed memory. The machine
code has other loops: unrolled ones with a rest, pipelined ones whose first loads precede them. A walk from the first
instruction decides at each branch which way takes the program through as many iterations and accesses.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.capture.triton_kernels.compiled_kernel import CompiledKernel
from buddysim.capture.triton_kernels.ptx import Position

_MAX_INSTRUCTIONS: Final = 1 << 24
#: Positions of one access: kinds that differ in the compiled kernel are one in the interpreter.
NOTHING: Final = -1


@dataclass(frozen=True)
class ProgramPath:
    """Instructions that a program executes, in order.

    Attributes
    ----------
    instructions : index of each in the machine code
    events : of a memory instruction the access of the interpreter that it is part of, in the program's order; -1: none
    groups : of a memory instruction its number among those of its operation
    accesses : of a memory instruction its operation's number in the compiled kernel; -1: another instruction
    dropped : accesses of the interpreter that the compiled kernel doesn't have
    """

    instructions: tuple[int, ...]
    events: tuple[int, ...]
    groups: tuple[int, ...]
    accesses: tuple[int, ...]
    dropped: int


@dataclass
class _Loop:
    """A loop of the machine code."""

    header: int
    blocks: set[int]
    latch: int
    lines: Counter[int] = field(default_factory=Counter)
    position: Position | None = None
    family: int = 0
    mark: int = 0
    copies: int = 1


class PathFinder:
    """Finds the paths of one compiled kernel.

    Parameters
    ----------
    kernel : compiled
    source_loops : first position of each loop of the source, with its last line
    """

    def __init__(self, kernel: CompiledKernel, source_loops: Mapping[Position, int]) -> None:
        self._kernel = kernel
        self._blocks = kernel.sass.blocks
        self._steps = {
            line: (number, group)
            for number, access in enumerate(kernel.accesses)
            for group, line in enumerate(access.lines)
        }
        self._memory = [self._memory_of(number) for number in range(len(self._blocks))]
        self._back_edges = self._find_back_edges()
        self._reach = [self._forward_from(number) for number in range(len(self._blocks))]
        self._source_loops = source_loops
        self._loops: list[_Loop] = []
        self._by_edge: dict[tuple[int, int], _Loop] = {}
        self._copies: list[dict[int, int]] = []

    def find(self, events: Sequence[Position], loops: Mapping[Position, Sequence[int]]) -> ProgramPath:
        """Return the path of a program.

        Parameters
        ----------
        events : source position of each access, in order
        loops : iterations of each run through each loop of the source, by the loop's position
        """
        if not self._copies:  # a kernel's loops are known when it has been interpreted
            self._loops = self._find_loops(self._source_loops)
            self._by_edge = {(loop.latch, loop.header): loop for loop in self._loops}
            self._copies = [self._copies_in(number) for number in range(len(self._blocks))]
        return _Walk(self, events, loops).run()

    def _memory_of(self, number: int) -> list[int]:
        """Return the memory instructions of a block in the order of the PTX: unrolled copies one after the other."""
        block = self._blocks[number]
        copies: Counter[int] = Counter()
        result = []
        for index in range(block.first, block.end):
            line = self._kernel.sass.instructions[index].ptx_line
            if line in self._steps and self._is_access(index):
                result.append((copies[line], line, index))
                copies[line] += 1
        return [index for _, _, index in sorted(result)]

    def _is_access(self, index: int) -> bool:
        return self._kernel.sass.instructions[index].name in (
            "LDG", "STG", "ATOM", "ATOMG", "RED", "REDG", "LDGSTS", "LD", "ST", "UTMALDG", "UTMASTG",
        )  # fmt: skip

    def step_of(self, index: int) -> tuple[int, int] | None:
        """Return operation and group of a memory instruction; None for any other."""
        line = self._kernel.sass.instructions[index].ptx_line
        return self._steps.get(line) if self._is_access(index) else None

    # -- graph --------------------------------------------------------------------------------------------------------

    def _find_back_edges(self) -> set[tuple[int, int]]:
        edges: set[tuple[int, int]] = set()
        state = [0] * len(self._blocks)
        if not self._blocks:
            return edges
        stack = [(0, iter(self._blocks[0].following))]
        state[0] = 1
        while stack:
            number, following = stack[-1]
            for successor in following:
                if state[successor] == 1:
                    edges.add((number, successor))
                elif state[successor] == 0:
                    state[successor] = 1
                    stack.append((successor, iter(self._blocks[successor].following)))
                    break
            else:
                state[number] = 2
                stack.pop()
        return edges

    def _forward_from(self, start: int) -> set[int]:
        """Return the blocks that are reached without going back in a loop."""
        seen = {start}
        pending = [start]
        while pending:
            number = pending.pop()
            for successor in self._blocks[number].following:
                if (number, successor) not in self._back_edges and successor not in seen:
                    seen.add(successor)
                    pending.append(successor)
        return seen

    def _find_loops(self, source_loops: Mapping[Position, int]) -> list[_Loop]:
        before: dict[int, list[int]] = {}
        for number, block in enumerate(self._blocks):
            for successor in block.following:
                before.setdefault(successor, []).append(number)
        loops = []
        for latch, header in sorted(self._back_edges):
            inside = {header, latch}
            pending = [latch] if latch != header else []
            while pending:
                for number in before.get(pending.pop(), []):
                    if number not in inside:
                        inside.add(number)
                        pending.append(number)
            loops.append(_Loop(header, inside, latch))
        for loop in loops:
            inner = [other.blocks for other in loops if other is not loop and other.blocks < loop.blocks]
            own = loop.blocks.difference(*inner) if inner else loop.blocks
            loop.lines = Counter(
                line
                for number in own
                for each in self._kernel.sass.instructions[self._blocks[number].first : self._blocks[number].end]
                if (line := each.ptx_line)
            )
            loop.mark, loop.copies = self._mark_of(loop)
            loop.position = self._source_loop(loop, source_loops)
        for loop in loops:  # a wait at a barrier inside of a source's loop is none of its iterations
            if any(loop.blocks < other.blocks and loop.position == other.position for other in loops):
                loop.position = None
        for number, loop in enumerate(loops):
            loop.family = number
            for other in loops[:number]:
                nested = loop.blocks <= other.blocks or other.blocks <= loop.blocks
                if not nested and loop.position == other.position and loop.lines.keys() & other.lines.keys():
                    loop.family = other.family
        return loops

    def _mark_of(self, loop: _Loop) -> tuple[int, int]:
        """Return the line of the PTX by which iterations count, and how many of them one of the machine code's has."""
        counts = Counter(
            self._kernel.sass.instructions[index].ptx_line
            for number in loop.blocks
            for index in self._memory[number]
            if self._kernel.sass.instructions[index].ptx_line in loop.lines
        )
        counts = counts or loop.lines
        if not counts:
            return 0, 1
        copies = max(counts.values()) if counts is not loop.lines else Counter(counts.values()).most_common(1)[0][0]
        return min(line for line, count in counts.items() if count == copies), copies

    def _copies_in(self, number: int) -> dict[int, int]:
        """Return how many iterations a block has of each loop, by the loop's family."""
        block = self._blocks[number]
        lines = Counter(each.ptx_line for each in self._kernel.sass.instructions[block.first : block.end])
        accesses = Counter(self._kernel.sass.instructions[index].ptx_line for index in self._memory[number])
        result = {}
        for loop in self._loops:
            count = accesses[loop.mark] if loop.mark in self._steps else lines[loop.mark]
            if count and loop.position is not None and (loop.mark in self._steps or number in loop.blocks):
                result[loop.family] = count
        return result

    def _source_loop(self, loop: _Loop, source_loops: Mapping[Position, int]) -> Position | None:
        """Return the loop of the source that a loop is: by its branch, else the innermost one around its code."""
        branch = self._kernel.sass.instructions[self._blocks[loop.latch].end - 1]
        position = self._position(branch.ptx_line)
        if position in source_loops:
            return position
        lines = {result for line in loop.lines if (result := self._position(line)) is not None}
        around = [
            start
            for start, last in source_loops.items()
            if any(each.file == start.file and start.line <= each.line <= last for each in lines)
            and all(each.file != start.file or start.line <= each.line <= last for each in lines)
        ]
        return max(around, default=None)

    def _position(self, line: int) -> Position | None:
        positions = self._kernel.positions
        return positions[line - 1] if 0 < line <= len(positions) else None


class _Walk:
    """One walk: the state of its loops and the accesses that are left."""

    def __init__(self, finder: PathFinder, events: Sequence[Position], loops: Mapping[Position, Sequence[int]]) -> None:
        self._finder = finder
        self._left: dict[Position, deque[int]] = {}
        for number, position in enumerate(events):
            self._left.setdefault(position, deque()).append(number)
        self._counts = {position: deque(counts) for position, counts in loops.items()}
        self._active: dict[int, int] = {}
        self._seen: Counter[int] = Counter()
        self._assigned: dict[tuple[int, int], int] = {}
        self._result: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])

    def run(self) -> ProgramPath:
        finder = self._finder
        blocks, kernel = finder._blocks, finder._kernel
        number: int | None = 0 if blocks else None
        while number is not None:
            self._execute(number)
            if len(self._result[0]) > _MAX_INSTRUCTIONS:
                raise BuddysimError(
                    f"capture triton: {kernel.name}: a program of more than {_MAX_INSTRUCTIONS:,} instructions"
                )
            number = self._next(number)
        instructions, events, groups, accesses = (tuple(part) for part in self._result)
        dropped = sum(len(left) for left in self._left.values())
        return ProgramPath(instructions, events, groups, accesses, dropped)

    def _execute(self, number: int) -> None:
        finder = self._finder
        own: dict[int, int] = {}
        for index in finder._memory[number]:
            step = finder.step_of(index)
            assert step is not None
            line = finder._kernel.sass.instructions[index].ptx_line
            occurrence = self._seen[line]
            self._seen[line] += 1
            key = step[0], occurrence
            if key not in self._assigned:
                position = finder._kernel.accesses[step[0]].layout.position
                left = self._left.get(position) if position is not None else None
                self._assigned[key] = left.popleft() if left else NOTHING
            own[index] = self._assigned[key]
        for family, copies in finder._copies[number].items():
            if not any(loop.family == family and number in loop.blocks for loop in finder._loops):
                left_over = self._iterations(finder._loops[family])
                if left_over is not None:
                    self._active[family] = left_over - copies
        block = finder._blocks[number]
        instructions, events, groups, accesses = self._result
        for index in range(block.first, block.end):
            step = finder.step_of(index) if index in own else None
            instructions.append(index)
            events.append(own.get(index, NOTHING))
            groups.append(step[1] if step else 0)
            accesses.append(step[0] if step else NOTHING)

    def _next(self, number: int) -> int | None:
        following = self._finder._blocks[number].following
        if not following:
            return None
        back = [(number, each) for each in following if (number, each) in self._finder._back_edges]
        if back:
            stays = self._stays(self._finder._by_edge[back[0]])
            others = [each for each in following if (number, each) not in self._finder._back_edges]
            return back[0][1] if stays or not others else others[0]
        return following[0] if len(following) == 1 else self._choose(following[0], following[1])

    def _stays(self, loop: _Loop) -> bool:
        left = self._iterations(loop)
        if left is None:  # a loop that the source doesn't have: as long as there are accesses for it
            stays = self._pending(loop.blocks) is not None
        else:
            self._active[loop.family] = left = left - loop.copies
            stays = left >= loop.copies
        if stays:
            for inner in self._finder._loops:
                if inner is not loop and inner.blocks < loop.blocks:
                    self._active.pop(inner.family, None)
        return stays

    def _iterations(self, loop: _Loop) -> int | None:
        """Return how many iterations of the source's loop are left."""
        if loop.position is None or loop.position not in self._counts:
            return None
        if loop.family not in self._active:
            counts = self._counts[loop.position]
            self._active[loop.family] = counts.popleft() if counts else loop.copies
        return self._active[loop.family]

    def _choose(self, first: int, second: int) -> int:
        """Return the way at a branch forward."""
        finder = self._finder
        ways = finder._reach[first], finder._reach[second]
        only = ways[0] - ways[1], ways[1] - ways[0]
        for side in (0, 1):
            least: dict[int, int] = {}
            for number in only[side]:
                for family, copies in finder._copies[number].items():
                    least[family] = min(copies, least.get(family, copies))
            for family in sorted(least):
                left = self._peek(finder._loops[family])
                if left is not None:
                    return (first, second)[side if left >= least[family] else 1 - side]
        later = [self._pending(part) for part in only]
        common = self._pending(ways[0] & ways[1])
        for side in (0, 1):
            ordinal, other = later[side], later[1 - side]
            if ordinal is not None and (common is None or ordinal <= common) and (other is None or ordinal < other):
                return (first, second)[side]
        for side in (0, 1):
            if self._executes("CALL", only[side]):
                return (first, second)[1 - side]
        if not only[0] or not only[1]:  # a way around some code: the code is taken unless it accesses memory
            longer = 0 if only[0] else 1
            skip = any(finder._memory[number] for number in only[longer]) or self._executes("SYNCS", only[longer])
            return (first, second)[1 - longer if skip else longer]
        return first

    def _peek(self, loop: _Loop) -> int | None:
        if loop.position is None or loop.position not in self._counts:
            return None
        if loop.family in self._active:
            return self._active[loop.family]
        counts = self._counts[loop.position]
        return counts[0] if counts else 0

    def _pending(self, blocks: set[int]) -> int | None:
        """Return the first access that is left for some blocks, in the program's order."""
        finder = self._finder
        first: int | None = None
        for number in blocks:
            for index in finder._memory[number]:
                step = finder.step_of(index)
                assert step is not None
                position = finder._kernel.accesses[step[0]].layout.position
                left = self._left.get(position) if position is not None else None
                if left and (first is None or left[0] < first):
                    first = left[0]
        return first

    def _executes(self, name: str, blocks: set[int]) -> bool:
        finder = self._finder
        return any(
            finder._kernel.sass.instructions[index].name == name
            for number in blocks
            for index in range(finder._blocks[number].first, finder._blocks[number].end)
        )
