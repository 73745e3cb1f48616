"""`all_bank`: all banks refresh together (REFab); the engine inlines it (`refresh_interval_start`)."""
from buddysim.replay.dram.refresh.base cimport RefreshBase

ORDER = 0


cdef class Refresh(RefreshBase):
    SUMMARY = "all banks refresh together, for tRFC"
