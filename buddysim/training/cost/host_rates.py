"""How fast the host updates weights, and its NVMe drives read and write.

An update reads and writes each byte once, so memory bounds it. It reaches half of the memory's bandwidth (assumed: no
measurement is at hand). A core alone moves 10 GB/s (assumed: ten cache lines of 64 bytes in flight, each for 64 ns), so
few cores bound it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from buddysim.training.autograd.records import HostTask

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine

BANDWIDTH_FRACTION = 0.49
"""Of the host memory's bandwidth, that an update reaches; assumed."""

CORE_BYTES_PER_S = 10 * 10**9
"""That one core moves."""

SECOND = 10**12  # picoseconds


@dataclass(frozen=True)
class HostRates:
    """Bytes per second of the host's updates, and of its drives."""

    update: int
    nvme_read: int
    nvme_write: int

    @classmethod
    def of(cls, machine: TrainingMachine) -> HostRates:
        """Return the rates of a machine's host."""
        memory = round(BANDWIDTH_FRACTION * machine.host_bytes_per_s)
        update = max(1, min(memory, machine.training.host_cores * CORE_BYTES_PER_S))
        return cls(update, machine.nvme_read_bytes_per_s, machine.nvme_write_bytes_per_s)

    def task_ps(self, task: HostTask) -> int:
        """Return the time of a task, rounded up to a picosecond."""
        rate = {"update": self.update, "nvme_read": self.nvme_read, "nvme_write": self.nvme_write}[task.kind]
        return -(-task.bytes * SECOND // rate)
