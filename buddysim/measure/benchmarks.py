"""Which points of which microbenchmarks are measured: those that docs/validation-rules.md compares, and a few more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from buddysim.measure.gpu import GpuProperties, MicrobenchmarkGpu
from buddysim.validation.curve.curve_data import CHASE, PER_SM, SHARED, STREAM, STRIDES

KIB, MIB = 1024, 2**20
HOST_CHASE = "host_pointer_chase_latency"
TO_HOST, TO_DEVICE = "copy_to_host", "copy_to_device"
KERNELS = ("vector_add", "gemm", "convolution")
_STREAMS = {"init": 1, "read": 1, "scale": 2, "triad": 3, "3pt": 2, "5pt": 2}
"""Arrays of each kernel of STREAM that its bandwidth counts."""
_MOST_L2S = 8
_MOST_BYTES_SHARE = 4
"""Of the device's memory a footprint takes at most a quarter."""


@dataclass(frozen=True)
class Benchmark:
    """A curve to measure.

    Attributes
    ----------
    name, x_unit, y_unit : as the table has them
    x : its points
    y : what is measured at one
    """

    name: str
    x_unit: str
    y_unit: str
    x: Sequence[float]
    y: Callable[[MicrobenchmarkGpu, float], float]


def benchmarks(about: GpuProperties) -> Iterator[Benchmark]:
    """All of a GPU, in the order in which they are measured."""
    largest = min(_MOST_L2S * about.figures["l2CacheSize"], about.figures["totalGlobalMem"] // _MOST_BYTES_SHARE) // KIB
    footprint = "footprint_kB"
    yield Benchmark(
        CHASE, footprint, "cycles", _rising(2, largest, 1.2), lambda gpu, x: gpu.chase_cycles(round(x * KIB))
    )
    yield Benchmark(PER_SM, footprint, "GB/s", _rising(2, largest, 1.3), lambda gpu, x: gpu.per_sm_gb_s(round(x * KIB)))
    yield Benchmark(
        SHARED, footprint, "GB/s", _rising(1024, largest, 1.2, 512), lambda gpu, x: gpu.shared_gb_s(round(x * KIB))
    )
    most = about.figures["maxThreadsPerMultiProcessor"]
    occupancies = [round(100 * part / 32, 1) for part in range(1, 33)]
    for op, arrays in _STREAMS.items():

        def stream(gpu: MicrobenchmarkGpu, x: float, op: str = op, arrays: int = arrays) -> float:
            return gpu.stream_gb_s(op, arrays, max(16, round(x / 100 * most / 16) * 16 // 2))

        yield Benchmark(f"{STREAM}{op}", "occupancy_percent", "GB/s", occupancies, stream)
    yield Benchmark(STRIDES, "stride_floats", "cycles", range(16), lambda gpu, x: gpu.stride_cycles(int(x)))
    for name, to_host in ((TO_HOST, True), (TO_DEVICE, False)):

        def copy(gpu: MicrobenchmarkGpu, x: float, to_host: bool = to_host) -> float:
            return gpu.copy_gb_s(to_host, round(x * MIB))

        yield Benchmark(name, "MiB", "GB/s", [1, 4, 16, 64, 256], copy)
    yield Benchmark(
        HOST_CHASE, footprint, "cycles", [16 * KIB, 64 * KIB], lambda gpu, x: gpu.chase_cycles(round(x * KIB), True)
    )
    for name in KERNELS:

        def kernel(gpu: MicrobenchmarkGpu, x: float, name: str = name) -> float:
            return gpu.kernel_us(name, int(x))

        yield Benchmark(f"kernel_{name}", "rows", "us", [512, 1024, 2048], kernel)


def _rising(least: int, most: int, factor: float, unit: int = 1) -> list[float]:
    """Whole multiples of a unit, each about so many times the one before, to the last not above `most`."""
    found: list[int] = []
    at = float(least)
    while at <= most:
        whole = round(at / unit) * unit
        if not found or whole > found[-1]:
            found.append(whole)
        at = max(at * factor, at + 1)
    return [float(x) for x in found]
