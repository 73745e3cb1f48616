"""`when_full`: a queue drains when it is full, and completely (`Drain_When_Full` of Lee et al., TR-HPS-2010-002)."""
from libc.stdint cimport int64_t
from typing import Annotated

from buddysim.machine import fields
from buddysim.machine.section import Section

from buddysim.replay.dram.dram cimport Dram, PseudoChannel, drain_writes
from buddysim.replay.dram.write_drain.base cimport WriteDrainBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed


class WhenFull(Section):
    """The section `[write_drain.when_full]` of a machine file."""

    bursts: Annotated[int, fields.count(0, 128)] = fields.key(
        0, "queued write bursts that start a drain; 0: dram.write_high_watermark", "Lee et al.: a full queue"
    )


cdef void write_queued(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:
    if channel.queued_bursts >= (<int64_t*>dram.drain_state)[0]:
        drain_writes(dram, channel, t, 0)


cdef class WriteDrain(WriteDrainBase):
    SUMMARY = "a full queue drains completely; an idle bus starts no drain"
    SECTION = WhenFull
    cdef int64_t bursts

    @staticmethod
    def misfits(machine):
        if machine.section_of(WhenFull).bursts > machine.dram.write_high_watermark:
            yield "write_drain.when_full.bursts: expected at most dram.write_high_watermark"

    def configure(self, machine):
        self.bursts = machine.section_of(WhenFull).bursts or machine.dram.write_high_watermark

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        dram.drain_state = arena_zeroed(arena, 1, sizeof(int64_t))
        (<int64_t*>dram.drain_state)[0] = self.bursts
        dram.write_queued = write_queued
        return 0
