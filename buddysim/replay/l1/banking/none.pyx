"""`none`: lines enter one after the other, `l1.lines_per_cycle` in a cycle; the engine inlines it (`l1_enter`)."""
from buddysim.replay.l1.banking.base cimport L1BankingBase

ORDER = 0


cdef class L1Banking(L1BankingBase):
    SUMMARY = "lines enter at lines_per_cycle"
