"""Base class of L1 bankings, each a module of this folder: when the lines of an instruction enter the L1."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.l1.l1 cimport EnterOp, LeaveOp
from buddysim.replay.primitives.arena cimport Arena


cdef class L1BankingBase(Component):
    cdef EnterOp enter      # NULL: one line after the other, `l1_enter`, which the engine inlines
    cdef LeaveOp leave      # NULL: an instruction has arrived with its last line
    cdef void* state        # `L1s.banking`: the banking's own, in the run's arena

    cdef int prepare(self, Arena* arena) except -1
