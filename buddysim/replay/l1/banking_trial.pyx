"""A trial of an L1 banking: when lines of instructions enter one L1."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.address_map_simd cimport LineLocation
from buddysim.replay.engine.arena cimport Arena, arena_free, arena_zeroed
from buddysim.replay.engine.memory cimport MemorySystem
from buddysim.replay.engine.stream cimport StreamOp
from buddysim.replay.l1.l1 cimport L1s, l1_enter, l1s_init


def entry_times(dict numbers, banking, instructions):
    """When the lines of instructions enter the L1 of an SM, under a banking.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    banking : an instance of the banking
    instructions : of each the time of its issue (ps), and of each of its lines the mask of its sectors

    Returns
    -------
    list of (times at which its lines enter, arrival of the instruction), ps
    """
    cdef Arena arena = Arena(NULL)
    cdef MemorySystem* m
    cdef L1s l1
    cdef LineLocation line
    cdef StreamOp op
    cdef int64_t now, arrival
    cdef int number
    cdef list entered = [], times
    try:
        m = <MemorySystem*>arena_zeroed(&arena, 1, sizeof(MemorySystem))
        l1s_init(&arena, &l1, 1, numbers, banking)
        for issued, sectors in instructions:
            now = arrival = issued
            times = []
            op = (<StreamOp*>arena_zeroed(&arena, 1, sizeof(StreamOp)))[0]
            for number in range(len(sectors)):
                line.entry, line.masks = <uint32_t>number, sectors[number]
                arrival = l1_enter(&l1, m, l1.sms, now) if l1.enter == NULL else l1.enter(&l1, m, l1.sms, &line, number, now)
                times.append(arrival)
            entered.append((times, arrival if l1.leave == NULL else l1.leave(&l1, m, l1.sms, &op, arrival)))
    finally:
        arena_free(&arena)
    return entered
