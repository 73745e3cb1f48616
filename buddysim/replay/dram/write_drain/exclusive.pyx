"""`exclusive`: reads wait until a drain has ended; a read since the last drain keeps the bus from being idle."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport Dram, PseudoChannel, drain_if_due
from buddysim.replay.dram.write_drain.base cimport WriteDrainBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.events cimport NEVER
from buddysim.replay.primitives.extremes cimport max_i64

ORDER = 1


cdef inline int64_t* drain_slot(const Dram* dram, const PseudoChannel* channel) noexcept nogil:
    """First slot of the channel's latest drain; NEVER: none yet."""
    return <int64_t*>dram.drain_state + (channel - dram.pseudo)


cdef int64_t read_slot(const Dram* dram, const PseudoChannel* channel, int64_t slot) noexcept nogil:
    """A read that would come during the latest drain or after it waits for the end of its bus turnaround."""
    return max_i64(slot, channel.turnaround_last_slot + 1) if slot >= drain_slot(dram, channel)[0] else slot


cdef void write_queued(Dram* dram, PseudoChannel* channel, int64_t t) noexcept nogil:
    cdef int64_t first = drain_if_due(dram, channel, t, channel.bus.last_slot == channel.turnaround_last_slot)
    if first >= 0:
        drain_slot(dram, channel)[0] = first


cdef class WriteDrain(WriteDrainBase):
    SUMMARY = "reads wait until the drain has ended"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        cdef int i
        dram.drain_state = arena_zeroed(arena, dram.n_pseudo, sizeof(int64_t))
        for i in range(dram.n_pseudo):
            (<int64_t*>dram.drain_state)[i] = NEVER
        dram.write_queued, dram.read_slot = write_queued, read_slot
        return 0
