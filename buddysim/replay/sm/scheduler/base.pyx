"""The base of every warp scheduler."""


cdef class WarpSchedulerBase(Component):
    """The order in which the warps of a scheduler issue.

    A policy is one module with a class `WarpScheduler` derived from this one. Its name in machine files is the module's.
    `__cinit__` sets `pick`, which returns the index of a warp that can issue now (`warp_can_issue`); at least one can. The result
    depends on the scheduler and the time alone, as `pick` is called to predict the next warp, too.
    """
