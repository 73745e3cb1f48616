"""Trials of device memory under its policies, without the rest of the machine."""
from libc.stdint cimport int64_t, uint32_t

from buddysim.replay.engine.arena cimport Arena, arena_free
from buddysim.replay.dram.dram cimport (
    DeviceLocation, Dram, dram_configure, dram_idle_ps, dram_location, dram_read, dram_read_dry_run, dram_write,
)
from buddysim.replay.engine.horizon cimport Horizon, horizon_free, horizon_init
from buddysim.replay.engine.kinds cimport DEMAND


cdef class DramTrial:
    """Device memory of a machine, to which requests are made one by one.

    Parameters
    ----------
    numbers : the machine (`parameters.engine_numbers`)
    policies : an instance of each policy, by kind
    """

    cdef Arena arena
    cdef Horizon horizon
    cdef Dram dram
    cdef dict policies

    def __cinit__(self, dict numbers, dict policies):
        self.policies = policies
        horizon_init(&self.horizon, numbers["horizon_pages"])
        dram_configure(&self.arena, &self.dram, &self.horizon, numbers, policies)

    def __dealloc__(self):
        horizon_free(&self.horizon)
        arena_free(&self.arena)

    def read(self, uint32_t bank, uint32_t row, int bursts, int64_t t):
        """Reads; returns the arrival that a dry run gives, that of the read, and the earliest one on idle memory (ps)."""
        cdef DeviceLocation location
        dram_location(&self.dram, bank, row, &location)
        self.horizon.now_ps = t
        expected = dram_read_dry_run(&self.dram, &location, bursts, t)
        return expected, dram_read(&self.dram, &location, bursts, t), t + dram_idle_ps(&self.dram, bursts)

    def write(self, uint32_t bank, uint32_t row, int bursts, int64_t t):
        """Writes; returns the time of acceptance (ps), the bursts then queued, and how many the queue takes."""
        cdef DeviceLocation location
        dram_location(&self.dram, bank, row, &location)
        self.horizon.now_ps = t
        accepted_ps = dram_write(&self.dram, &location, bursts, DEMAND, t)
        return accepted_ps, location.channel.queued_bursts, self.dram.write_queue_entries

    def refresh_began(self, uint32_t bank, int64_t t):
        """Start of a bank's last refresh at `t`, and the interval between two (ps); None if all banks refresh together."""
        if self.dram.refresh_began == NULL:
            return None
        return self.dram.refresh_began(&self.dram, self.dram.banks + bank, t), self.dram.timing.refi

    def read_slot(self, uint32_t bank, int64_t slot):
        """First slot that a read may take from `slot` on; None if it may take every free one."""
        cdef DeviceLocation location
        dram_location(&self.dram, bank, 0, &location)
        return None if self.dram.read_slot == NULL else self.dram.read_slot(&self.dram, location.channel, slot)
