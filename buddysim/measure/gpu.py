"""The GPU of this computer through CuPy: its properties, and the microbenchmarks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from statistics import median
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from buddysim.base.errors import BuddysimError

#: Repetitions of every launch; the median counts.
REPETITIONS = 5
_WARP, _LINE, _CHUNK = 32, 128, 512 * 1024
_CHASE_HOPS = 2**18
_LOADS = 2**15
_CHUNKS_READ = 2**15
_STREAM_BYTES = 2**29
_STRIDE_ROUNDS = 2**14
_MARGIN = 16
_RESERVED = 1024
"""Shared memory that CUDA reserves in each block from compute capability 8.0 on."""


@dataclass(frozen=True)
class GpuProperties:
    """The properties of a GPU that CUDA reports.

    Attributes
    ----------
    name : the driver's name of the GPU
    figures : `cudaGetDeviceProperties`, by the names of its fields
    """

    name: str
    figures: dict[str, int]


class MicrobenchmarkGpu(Protocol):
    """A GPU that runs the microbenchmarks; results have the units of docs/validation/method.md."""

    @property
    def about(self) -> GpuProperties:
        """Properties of the GPU."""

    def clock_mhz(self) -> float:
        """Measure the clock of the SMs while a kernel runs."""

    def chase_cycles(self, footprint: int, on_host: bool = False) -> float:
        """Measure a load of a pointer chase."""

    def per_sm_gb_s(self, footprint: int) -> float:
        """Measure the bandwidth of SMs that each read one working set repeatedly."""

    def shared_gb_s(self, footprint: int) -> float:
        """Measure the bandwidth of all SMs that read chunks of one shared working set."""

    def stream_gb_s(self, op: str, arrays: int, threads: int) -> float:
        """Measure a kernel of STREAM with two blocks of `threads` threads on each SM."""

    def stride_cycles(self, stride: int) -> float:
        """Measure a warp's load from the L1 whose lanes read with a stride of words."""

    def copy_gb_s(self, to_host: bool, count: int) -> float:
        """Measure a copy of `count` bytes from or to pinned host memory."""

    def kernel_us(self, name: str, n: int) -> float:
        """Measure a kernel of a program on arrays of n x n elements."""


def chase_words(footprint: int) -> npt.NDArray[np.uint64]:
    """Return the words of a random cycle over all lines: each line starts with the byte offset of the next line."""
    n_lines = max(1, footprint // _LINE)
    order = np.random.default_rng(0).permutation(n_lines).astype(np.uint64) * np.uint64(_LINE)
    words = np.zeros(n_lines * _LINE // 8, dtype=np.uint64)
    words[order // np.uint64(8)] = np.roll(order, -1)
    return words


def open_gpu() -> CudaGpu:
    """Return the first GPU that CUDA lists.

    Raises
    ------
    BuddysimError
            CuPy is not installed, or CUDA finds no GPU
    """
    if find_spec("cupy") is None:
        raise BuddysimError("machines measure needs CuPy, which is not installed: pip install 'buddysim[gpu]'")
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
        return CudaGpu(cupy)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BuddysimError(f"machines measure: expected a GPU that CUDA can use, found none: {error}") from None


class CudaGpu:
    """`MicrobenchmarkGpu` in CUDA: times are differences between a longer and a shorter kernel."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        figures = {key: int(value) for key, value in properties.items() if isinstance(value, int)}
        self.about = GpuProperties(properties["name"].decode(), figures)
        self._sms = figures["multiProcessorCount"]
        source = (resources.files("buddysim.measure") / "kernels.cu").read_text(encoding="utf-8")
        self._module = cupy.RawModule(code=source, options=("-std=c++17",))

    def clock_mhz(self) -> float:
        chain = self._chain(2**14, None)
        self._chased(chain, 0, 16 * _CHASE_HOPS)  # an idle GPU raises its clock for a while
        cycles, ms = self._chased(chain, 0, 16 * _CHASE_HOPS)
        return cycles / ms / 1000

    def chase_cycles(self, footprint: int, on_host: bool = False) -> float:
        host = self._cupy.cuda.alloc_pinned_memory(max(footprint, _LINE)) if on_host else None
        chain = self._chain(footprint, host)
        n_lines = max(1, footprint // _LINE)
        hops = max(_CHASE_HOPS // (16 if on_host else 1), 1)
        return median(self._chased(chain, min(n_lines, 2**22), hops)[0] / hops for _ in range(REPETITIONS))

    def per_sm_gb_s(self, footprint: int) -> float:
        lines = max(1, footprint // _LINE)
        array = self._cupy.zeros(lines * _WARP, dtype=np.float32)
        warps = 8

        def ms(loads: int) -> float:
            arguments = (array, np.uint32(lines), np.int64(loads), np.uint64(0))
            return self._ms("sm_loads", self._sms, warps * _WARP, arguments)

        first = 2 * -(-lines // warps)
        return self._sms * warps * _LOADS * _LINE / (ms(first + _LOADS) - ms(first)) / 1e6

    def shared_gb_s(self, footprint: int) -> float:
        chunks = max(1, footprint // _CHUNK)
        array = self._cupy.zeros(chunks * _CHUNK // 8, dtype=np.float64)
        blocks = 2 * self._sms * max(1, -(-chunks // (2 * self._sms)))
        more = blocks * max(1, _CHUNKS_READ // blocks)

        def ms(count: int) -> float:
            return self._ms("l2_loads", count, 1024, (array, np.uint32(chunks), np.uint64(0)))

        return more * _CHUNK / (ms(blocks + more) - ms(blocks)) / 1e6

    def stream_gb_s(self, op: str, arrays: int, threads: int) -> float:
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        wave = 2 * self._sms * threads
        waves = min(_STREAM_BYTES, free // 4) // 8 // wave
        streams = [self._cupy.zeros(waves * wave + 2 * _MARGIN, dtype=np.float64) for _ in range(3)]
        shared_memory = max(0, self.about.figures["sharedMemPerMultiprocessor"] // 2 - _RESERVED)
        arguments = (*(array[_MARGIN:] for array in streams), np.float64(3.0))

        def ms(n_waves: int) -> float:
            return self._ms(f"stream_{op}", 2 * self._sms * n_waves, threads, arguments, shared_memory)

        few = waves // 3
        moved = arrays * (waves - few) * wave * 8
        return float(moved / (ms(waves) - ms(few)) / 1e6)

    def stride_cycles(self, stride: int) -> float:
        array = self._cupy.zeros(2 * _WARP * max(stride, 1) + 64, dtype=np.float32)
        sums, result = self._cupy.zeros(1024, dtype=np.float32), self._cupy.zeros(1, dtype=np.int64)

        def cycles(rounds: int) -> int:
            arguments = (array, np.uint32(stride), np.int64(rounds), np.uint32(0), sums, result)
            self._launch("l1_strides", 1, 1024, arguments)
            return int(result[0])

        longer = [cycles(2 * _STRIDE_ROUNDS) - cycles(_STRIDE_ROUNDS) for _ in range(REPETITIONS)]
        return float(median(longer) / (_STRIDE_ROUNDS * 8 * _WARP))

    def copy_gb_s(self, to_host: bool, count: int) -> float:
        runtime = self._cupy.cuda.runtime
        pinned = self._cupy.cuda.alloc_pinned_memory(count)
        array = self._cupy.zeros(count, dtype=np.uint8)
        target, source = (pinned.ptr, array.data.ptr) if to_host else (array.data.ptr, pinned.ptr)
        kind = runtime.memcpyDeviceToHost if to_host else runtime.memcpyHostToDevice
        stream = self._cupy.cuda.get_current_stream().ptr
        return count / self._timed(lambda: runtime.memcpyAsync(target, source, count, kind, stream)) / 1e6

    def kernel_us(self, name: str, n: int) -> float:
        arrays = [self._cupy.zeros((n, n), dtype=np.float32) for _ in range(3)]
        flat = name == "vector_add"
        grid = (-(-n * n // 256),) if flat else (-(-n // 32), -(-n // 8))
        arguments = (*arrays, np.uint32(n * n if flat else n))
        return 1000 * self._ms(name, grid, (256,) if flat else (32, 8), arguments)

    def _chain(self, footprint: int, host: Any) -> int:
        """Return the address of the first line of a chase over a footprint, in device or in pinned host memory."""
        words = chase_words(footprint)
        self._held = self._cupy.empty(len(words), dtype=np.uint64) if host is None else host
        base = int(self._held.data.ptr if host is None else host.ptr)
        words += np.uint64(base)
        if host is None:
            self._held.set(words)
        else:
            ctypes.memmove(base, words.ctypes.data, words.nbytes)
        return base

    def _chased(self, first: int, warm: int, hops: int) -> tuple[int, float]:
        """Return the cycles of the hops, and the milliseconds of the complete kernel."""
        result = self._cupy.zeros(2, dtype=np.uint64)
        arguments = (np.uint64(first), np.int64(warm), np.int64(hops), result)
        ms = self._once(lambda: self._launch("chase", 1, _WARP, arguments))
        return int(result[1]), ms

    def _ms(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: Sequence[Any],
        shared_memory: int = 0,
    ) -> float:
        return self._timed(lambda: self._launch(name, grid, block, arguments, shared_memory))

    def _timed(self, act: Callable[[], object]) -> float:
        """Return milliseconds: the median of some repetitions after a first one that is dropped."""
        act()
        return median(self._once(act) for _ in range(REPETITIONS))

    def _once(self, act: Callable[[], object]) -> float:
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        act()
        end.record()
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, end))

    def _launch(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: Sequence[Any],
        shared_memory: int = 0,
    ) -> None:
        kernel = self._module.get_function(name)
        if shared_memory:
            kernel.max_dynamic_shared_size_bytes = shared_memory
        blocks, threads = (tuple(one) if isinstance(one, Sequence) else (one,) for one in (grid, block))
        kernel(blocks, threads, tuple(arguments), shared_mem=shared_memory)
