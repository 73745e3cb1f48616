"""Measured points of each microbenchmark: those that docs/validation/method.md compares, and a few more."""

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
_MAX_L2S = 8
_MIN_MEMORY_RATIO = 4
"""A footprint is at most a quarter of the device's memory."""


@dataclass(frozen=True)
class Benchmark:
    """A curve to measure.

    Attributes
    ----------
    name, x_unit, y_unit : columns of the table
    x : its points
    y : function that measures a point
    """

    name: str
    x_unit: str
    y_unit: str
    x: Sequence[float]
    y: Callable[[MicrobenchmarkGpu, float], float]


def make_benchmarks(about: GpuProperties) -> Iterator[Benchmark]:
    """Yield all benchmarks of a GPU, in the order in which they are measured."""
    largest = min(_MAX_L2S * about.figures["l2CacheSize"], about.figures["totalGlobalMem"] // _MIN_MEMORY_RATIO) // KIB
    footprint = "footprint_kB"
    yield Benchmark(
        CHASE, footprint, "cycles", _geometric_points(2, largest, 1.2), lambda gpu, x: gpu.chase_cycles(round(x * KIB))
    )
    yield Benchmark(
        PER_SM, footprint, "GB/s", _geometric_points(2, largest, 1.3), lambda gpu, x: gpu.per_sm_gb_s(round(x * KIB))
    )
    yield Benchmark(
        SHARED,
        footprint,
        "GB/s",
        _geometric_points(1024, largest, 1.2, 512),
        lambda gpu, x: gpu.shared_gb_s(round(x * KIB)),
    )
    max_threads = about.figures["maxThreadsPerMultiProcessor"]
    occupancies = [round(100 * part / 32, 1) for part in range(1, 33)]
    for op, arrays in _STREAMS.items():

        def stream(gpu: MicrobenchmarkGpu, x: float, op: str = op, arrays: int = arrays) -> float:
            return gpu.stream_gb_s(op, arrays, max(16, round(x / 100 * max_threads / 16) * 16 // 2))

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


def _geometric_points(first: int, last: int, factor: float, unit: int = 1) -> list[float]:
    """Return multiples of a unit, each about `factor` times the one before, up to `last`."""
    points: list[int] = []
    value = float(first)
    while value <= last:
        multiple = round(value / unit) * unit
        if not points or multiple > points[-1]:
            points.append(multiple)
        value = max(value * factor, value + 1)
    return [float(x) for x in points]
