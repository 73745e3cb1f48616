"""The section of memory copies."""

from __future__ import annotations

from typing import Annotated

from buddysim.machine import fields
from buddysim.machine.section import Duration, Rate, Section
from buddysim.machine.units import parse_bandwidth, parse_time

_CUDA_MEMCPY = "Rhu et al., vDNN, MICRO 2016, section II-C: cudaMemcpy reaches 12.8 of the 16 GB/s of PCIe gen3"


class CopiesConfig(Section):
    """Copy engines, which run memcpys and memsets next to kernels of other streams."""

    timed: Annotated[str, fields.one_of("between", "all", "none")] = fields.key(
        "between",
        "copies that take time; between: those between the first and the last kernel",
        "Choukse et al. (arXiv 1903.02596) and Accel-Sim measure kernels: what is before or after is not",
    )
    engines: Annotated[int, fields.count(1, 16)] = fields.key(
        1,
        "copy engines of each kind: to the device, from it, and within it",
        "NVIDIA, CUDA C++ Programming Guide, concurrent data transfers: asyncEngineCount 2 is one of each direction",
    )
    h2d_bandwidth: Rate = fields.key(
        parse_bandwidth("12.8 GB/s"), "bandwidth of copies from pinned host memory", _CUDA_MEMCPY
    )
    d2h_bandwidth: Rate = fields.key(
        parse_bandwidth("12.8 GB/s"), "bandwidth of copies to pinned host memory", _CUDA_MEMCPY
    )
    pageable_bandwidth: Rate = fields.key(
        parse_bandwidth("5.5 GB/s"),
        "bandwidth of copies from and to host memory that is not pinned, where a trace says so",
        "rapidsai/dask-cuda pull request 98: 5 to 6 GB/s without pinned memory, over PCIe gen3",
    )
    latency: Duration = fields.key(
        parse_time("10 us"),
        "time from the call of a copy to its first byte, where a trace has none",
        "assumed: launch of a cudaMemcpyAsync, about 10 us",
    )
