"""Base class of warp schedulers, each a module of this folder: which warp issues."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.sm.issue_order cimport PickOp


cdef class WarpSchedulerBase(Component):
    cdef PickOp pick        # NULL: `gto`, which the engine inlines
