"""`gto`: the warp that issued a memory instruction last, else the oldest one; the engine inlines it (`pick_warp`)."""
from buddysim.replay.sm.scheduler.base cimport WarpSchedulerBase

ORDER = 0


cdef class WarpScheduler(WarpSchedulerBase):
    SUMMARY = "greedy-then-oldest: the warp that issued a memory instruction last, else the oldest"
