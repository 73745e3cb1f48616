"""Reads and writes of device memory by the L2, counted."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport DeviceLocation, banked_read, dram_write
from buddysim.replay.memory.memory cimport MemorySystem
from buddysim.replay.primitives.compiler_hints cimport unlikely
from buddysim.replay.primitives.kinds cimport DRAM_WRITE, Traffic
from buddysim.replay.primitives.waits cimport count_wait


cdef int64_t device_fetch_generic(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil


cdef inline int64_t device_fetch(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """`dram_read`; counts the wait, which is the latency beyond that of a row hit on an idle channel."""
    cdef DeviceLocation copy
    if unlikely(m.generic_reads):
        copy = location[0]      # so that the compiler can keep `location` in registers
        return device_fetch_generic(m, &copy, bursts, t)
    return banked_read(&m.dram, location, bursts, t + m.dram.before_ps) + m.dram.after_ps


cdef inline int64_t device_read(MemorySystem* m, const DeviceLocation* location, int bursts, Traffic kind,
                                int64_t t) noexcept nogil:
    """`device_fetch`; counts the bursts."""
    location.channel.moved[<int>kind] += bursts
    return device_fetch(m, location, bursts, t)


cdef inline int64_t device_write(MemorySystem* m, const DeviceLocation* location, int bursts, Traffic kind,
                                 int64_t t) noexcept nogil:
    """`dram_write`; counts the wait."""
    cdef int64_t accepted_ps = dram_write(&m.dram, location, bursts, kind, t)
    count_wait(&m.waits, DRAM_WRITE, accepted_ps - t)
    return accepted_ps
