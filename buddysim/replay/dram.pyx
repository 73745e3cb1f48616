"""Memory of a `Dram`, and a thin class over it for tests and for the DRAM benchmark."""
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from buddysim.replay.port cimport Port

cdef int dram_init(Dram* dram) except -1:
    """Allocates the channels of a `Dram` whose numbers are set: all rows closed, the bus free, refresh due after tREFI."""
    cdef int i
    dram.slots_per_ps = ~<uint64_t>0 / <uint64_t>dram.burst_ps
    dram.pseudo = <PseudoChannel*>calloc(dram.n_pseudo, sizeof(PseudoChannel))
    dram.banks = <Bank*>calloc(<size_t>dram.n_pseudo * dram.n_banks, sizeof(Bank))
    dram.queues = <QueuedWrite*>calloc(<size_t>dram.n_pseudo * WRITE_QUEUE_LIMIT, sizeof(QueuedWrite))
    if not (dram.pseudo and dram.banks and dram.queues):
        raise MemoryError(f"{dram.n_pseudo} channels of {dram.n_banks} banks do not fit in memory")
    for i in range(dram.n_pseudo * dram.n_banks):
        dram.banks[i].row = dram.banks[i].left_row = -1
    for i in range(dram.n_pseudo):
        dram.pseudo[i].calendar = <uint64_t*>calloc(CALENDAR_WORDS, sizeof(uint64_t))
        dram.pseudo[i].bus = <Port*>calloc(1, sizeof(Port))
        if not (dram.pseudo[i].calendar and dram.pseudo[i].bus):
            raise MemoryError("the bus calendars do not fit in memory")
        dram.pseudo[i].last_slot, dram.pseudo[i].turned_slot = -1, -2
        if dram.timing.rfc:
            dram.pseudo[i].next_refresh_ps = dram.timing.refi
            calendar_mark_refresh(dram, &dram.pseudo[i], 0, CALENDAR_WORDS * 64)
    return 0


cdef void dram_free(Dram* dram) noexcept:
    cdef int i
    if dram.pseudo:
        for i in range(dram.n_pseudo):
            free(dram.pseudo[i].calendar)
            free(dram.pseudo[i].bus)
    free(dram.pseudo)
    free(dram.banks)
    free(dram.queues)
