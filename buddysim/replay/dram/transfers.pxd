"""Reads and writes of device memory by the L2, counted."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport DeviceLocation, Dram, banked_read, dram_write
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.kinds cimport DRAM_WRITE, Traffic
from buddysim.replay.primitives.waits cimport Waits, count_wait


cdef int64_t device_fetch_generic(Dram* dram, const Waits* waits, const DeviceLocation* location, int bursts,
                                  int64_t t) noexcept nogil


cdef inline int64_t device_fetch(Dram* dram, const Waits* waits, const DeviceLocation* location, int bursts,
                                 int64_t t) noexcept nogil:
    """`dram_read`; counts the wait, which is the latency beyond that of a row hit on an idle channel."""
    cdef DeviceLocation copy
    if unlikely(dram.generic_reads):
        copy = location[0]      # so that the compiler can keep `location` in registers
        return device_fetch_generic(dram, waits, &copy, bursts, t)
    return banked_read(dram, location, bursts, t + dram.before_ps) + dram.after_ps


cdef inline int64_t device_read(Dram* dram, const Waits* waits, const DeviceLocation* location, int bursts, Traffic kind,
                                int64_t t) noexcept nogil:
    """`device_fetch`; counts the bursts."""
    location.channel.moved[<int>kind] += bursts
    return device_fetch(dram, waits, location, bursts, t)


cdef inline int64_t device_write(Dram* dram, const Waits* waits, const DeviceLocation* location, int bursts, Traffic kind,
                                 int64_t t) noexcept nogil:
    """`dram_write`; counts the wait."""
    cdef int64_t accepted_ps = dram_write(dram, location, bursts, kind, t)
    count_wait(waits, DRAM_WRITE, accepted_ps - t)
    return accepted_ps
