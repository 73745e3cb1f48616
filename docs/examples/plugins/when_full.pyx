"""`when_full`: a queue drains when it is full, and completely (`Drain_When_Full` of Lee et al., TR-HPS-2010-002)."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.write_drain.base cimport WriteDrainBase
from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.dram.dram cimport Dram, PseudoChannel, drain_writes


cdef void write_queued(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:
    if channel.queued_bursts >= dram.write_high_watermark:
        drain_writes(dram, channel, t, 0)


cdef class WriteDrain(WriteDrainBase):
    SUMMARY = "a full queue drains completely; an idle bus starts no drain"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        dram.write_queued = write_queued
        return 0
