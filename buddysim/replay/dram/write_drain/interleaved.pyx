"""`interleaved`: reads use the slots that a drain leaves free; the engine inlines it (`drain_among_reads`)."""
from buddysim.replay.dram.write_drain.base cimport WriteDrainBase

ORDER = 0


cdef class WriteDrain(WriteDrainBase):
    SUMMARY = "reads use the bus slots that writes leave free"
