"""Reads whose waits are counted, and those of other models than `banked`."""
from buddysim.replay.dram.dram cimport dram_idle_ps, dram_read
from buddysim.replay.primitives.extremes cimport max_i64
from buddysim.replay.primitives.kinds cimport DRAM_READ


cdef int64_t device_fetch_generic(Dram* dram, const Waits* waits, const DeviceLocation* location, int bursts,
                                  int64_t t) noexcept nogil:
    """`device_fetch` if waits are counted, or with a model of its own (`DramOps`)."""
    cdef int64_t done = dram_read(dram, location, bursts, t)
    count_wait(waits, DRAM_READ, max_i64(0, done - t - dram_idle_ps(dram, bursts)))
    return done
