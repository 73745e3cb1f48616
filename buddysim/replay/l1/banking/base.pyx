"""The base of every L1 banking."""


cdef class L1BankingBase(Component):
    """The banks of an L1: when each line of a memory instruction enters it.

    A banking is one module with a class `L1Banking` derived from this one. Its name in machine files is the module's. `prepare`
    sets `enter`, which gets the lines of an instruction in their order, numbered from 0, and returns when a line enters. It
    moves `free_ps` of the SM's L1 on by `line_ps` for each cycle that the instruction occupies. All lines of an instruction
    enter before those of another one, so one state serves all SMs. `leave`, called after the last line, may occupy further
    cycles, and returns when the instruction has arrived.
    """

    cdef int prepare(self, Arena* arena) except -1:
        """Allocates the state (`arena_zeroed`) and sets `enter`, `leave` and `state`."""
        return 0
