"""The measured runs, and the device memory left for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from buddysim.base.textfile import csv_tables

_DATA = resources.files("buddysim.validation") / "data" / "um_gtx_1080_ti.csv"
FRAME = 2 * 2**20
"""Unit of the driver's device memory: root chunks (NVIDIA's open kernel modules, uvm_pmm_gpu.h)."""
FREE = 11_544_297_472
"""Bytes of device memory free before the programs allocated, as their logs print it."""
OWN_FRAMES = {"bfs": 1}
"""Frames that cudaMalloc takes later: bfs has a flag in device memory (assumed: small allocations share a frame)."""


@dataclass(frozen=True)
class MeasuredUmRun:
    """A measured run of a program.

    Attributes
    ----------
    program : its name
    percent : oversubscription: memory that the program needs / memory left; 100 is just enough
    seconds : time of all kernels
    in_bytes, out_bytes : bytes to the device and back
    groups : fault groups
    left_bytes : bytes of device memory left after the reservation
    cpu_faults : page faults of the CPU
    """

    program: str
    percent: int
    seconds: float
    in_bytes: int
    out_bytes: int
    groups: int
    left_bytes: int
    cpu_faults: int

    @property
    def frames(self) -> int:
        """Frames left: the reservation takes complete frames."""
        reserved = FREE - self.left_bytes
        return FREE // FRAME - -(-reserved // FRAME) - OWN_FRAMES.get(self.program, 0)


def load_runs() -> list[MeasuredUmRun]:
    """Return all runs, in the order of the file."""
    rows = csv_tables(_DATA.read_text(encoding="utf-8"), _DATA.name)
    return [
        MeasuredUmRun(
            row["program"],
            int(row["oversubscription_percent"]),
            float(row["kernel_seconds"]),
            int(row["h2d_bytes"]),
            int(row["d2h_bytes"]),
            int(row["fault_groups"]),
            int(row["working_set_bytes_left_after_reservation"]),
            int(row["cpu_faults"]),
        )
        for row in rows
    ]
