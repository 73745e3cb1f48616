"""`banked`: rows, bank groups, bus turnarounds and refresh; the engine inlines it (`banked_read`)."""
from buddysim.replay.dram.model.base cimport DramModelBase

ORDER = 0


cdef class DramModel(DramModelBase):
    SUMMARY = "rows, bank groups, bus turnarounds and refresh"
