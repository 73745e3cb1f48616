"""Instruction cache: an SM fetches a line of a kernel's code when a warp first reaches it."""

from __future__ import annotations

from tests.reference.replay.numbers import RefNumbers

INSTRUCTION_BYTES, LINE_INSTRUCTIONS, MAX_LINES = 16, 8, 1024


class RefInstructionCache:
    """The lines of a kernel's code that one SM has fetched or requested.

    Parameters
    ----------
    numbers : of the machine
    code_bytes : of the kernel; 0: not known
    """

    def __init__(self, numbers: RefNumbers, code_bytes: int) -> None:
        self.latency, self.ahead = numbers.code_latency, numbers.machine.sm.icache_prefetch_lines
        instructions = code_bytes // INSTRUCTION_BYTES if self.latency else 0
        self.lines = min(-(-instructions // LINE_INSTRUCTIONS), MAX_LINES)
        self.arrivals: list[int] = []

    def passed(self, first: int, slots: int) -> int:
        """Return the number of instructions that a warp has passed after `slots` more than `first`."""
        return min(first + slots, self.lines * LINE_INSTRUCTIONS)

    def wait(self, first: int, slots: int, begun: int, chain: int) -> int:
        """Return a warp's wait for the lines of its next `slots` instructions, which take `chain` from `begun` on."""
        waited = 0
        for instruction in range(first, self.passed(first, slots)):
            if instruction % LINE_INSTRUCTIONS == 0:
                at = begun + chain * (instruction - first) // slots + waited
                waited += max(0, self._arrival(instruction // LINE_INSTRUCTIONS, at) - at)
        return waited

    def _arrival(self, line: int, now: int) -> int:
        start = max(now, self.arrivals[line]) if line < len(self.arrivals) else now
        while len(self.arrivals) <= min(line + self.ahead, self.lines - 1):
            self.arrivals.append(start + self.latency)
        return self.arrivals[line]
