"""`simple`: each pseudo-channel has a bandwidth and a latency, that of a closed bank."""
from libc.stdint cimport int64_t

from buddysim.replay.dram.dram cimport DeviceLocation, Dram, DramOps
from buddysim.replay.dram.model.base cimport DramModelBase
from buddysim.replay.primitives.arena cimport Arena, arena_zeroed
from buddysim.replay.primitives.port cimport FINE_BITS, Port, port_peek, port_transfer

ORDER = 1

cdef struct Simple:
    Port* ports         # [pseudo-channels]
    int64_t burst_cost  # a burst through a port, in port units


cdef inline Port* port_of(const Dram* dram, const DeviceLocation* location) noexcept nogil:
    return (<Simple*>dram.model_state).ports + (location.channel - dram.pseudo)


cdef inline int64_t cost_of(const Dram* dram, int bursts) noexcept nogil:
    return bursts * (<Simple*>dram.model_state).burst_cost


cdef int64_t idle_ps(const Dram* dram, int bursts) noexcept nogil:
    return dram.before_ps + dram.timing.rcd + dram.timing.cl + bursts * dram.burst_ps + dram.after_ps


cdef int64_t read(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    cdef int64_t grant_ps = port_transfer(port_of(dram, location), dram.horizon, t + dram.before_ps, cost_of(dram, bursts))
    return grant_ps - dram.before_ps + idle_ps(dram, bursts)


cdef int64_t read_dry_run(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    cdef int64_t grant_ps = port_peek(port_of(dram, location), dram.horizon, t + dram.before_ps, cost_of(dram, bursts))
    return grant_ps - dram.before_ps + idle_ps(dram, bursts)


cdef int64_t write(Dram* dram, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    return port_transfer(port_of(dram, location), dram.horizon, t + dram.before_ps, cost_of(dram, bursts)) - dram.before_ps


cdef class DramModel(DramModelBase):
    SUMMARY = "bandwidth and latency alone"

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        cdef Simple* simple = <Simple*>arena_zeroed(arena, 1, sizeof(Simple))
        cdef DramOps* ops = <DramOps*>arena_zeroed(arena, 1, sizeof(DramOps))
        simple.ports = <Port*>arena_zeroed(arena, dram.n_pseudo, sizeof(Port))
        simple.burst_cost = dram.burst_ps << FINE_BITS
        ops.read, ops.read_dry_run, ops.write, ops.idle_ps = read, read_dry_run, write, idle_ps
        dram.model, dram.model_state = ops, simple
        return 0
