"""The GPU of this computer through CuPy: what it is, and one number of each microbenchmark."""

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

#: Times that every launch is repeated; the median counts.
TURNS = 5
_WARP, _LINE, _CHUNK = 32, 128, 512 * 1024
_CHASE_HOPS = 2**18
_LOADS = 2**15
_CHUNKS_READ = 2**15
_STREAM_BYTES = 2**29
_STRIDE_ROUNDS = 2**14
_MARGIN = 16
_RESERVED = 1024
"""Shared memory that CUDA keeps of each block from compute capability 8.0 on."""


@dataclass(frozen=True)
class GpuProperties:
    """What CUDA says of a GPU.

    Attributes
    ----------
    name : as the driver calls it
    figures : `cudaGetDeviceProperties`, by the names of its fields
    """

    name: str
    figures: dict[str, int]


class MicrobenchmarkGpu(Protocol):
    """What is measured: bytes and thread counts in, the units of docs/validation-rules.md out."""

    @property
    def about(self) -> GpuProperties:
        """What CUDA says of it."""

    def clock_mhz(self) -> float:
        """The clock of the SMs while a kernel runs."""

    def chase_cycles(self, footprint: int, on_host: bool = False) -> float:
        """A load of a pointer chase."""

    def per_sm_gb_s(self, footprint: int) -> float:
        """All SMs read one working set again and again."""

    def shared_gb_s(self, footprint: int) -> float:
        """All SMs read chunks of one working set in turn."""

    def stream_gb_s(self, op: str, arrays: int, threads: int) -> float:
        """A kernel of STREAM with two blocks of so many threads on each SM."""

    def stride_cycles(self, stride: int) -> float:
        """A warp's load from the L1 whose lanes are words apart."""

    def copy_gb_s(self, to_host: bool, count: int) -> float:
        """A copy of so many bytes from or to pinned host memory."""

    def kernel_us(self, name: str, n: int) -> float:
        """A kernel of a program on arrays of n x n."""


def lap_of(footprint: int) -> npt.NDArray[np.uint64]:
    """Words of a chase, a random lap over all lines: at the start of each the offset of the next one, in bytes."""
    places = max(1, footprint // _LINE)
    lap = np.random.default_rng(0).permutation(places).astype(np.uint64) * np.uint64(_LINE)
    words = np.zeros(places * _LINE // 8, dtype=np.uint64)
    words[lap // np.uint64(8)] = np.roll(lap, -1)
    return words


def open_gpu() -> CudaGpu:
    """The first GPU that CUDA sees.

    Raises
    ------
    BuddysimError
        where CuPy is not installed, or CUDA finds no GPU
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
    """`MicrobenchmarkGpu` in CUDA: every time is that of a longer kernel less that of a shorter one."""

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
        self._chased(chain, 0, 16 * _CHASE_HOPS)  # from idle, clocks rise for a while
        cycles, ms = self._chased(chain, 0, 16 * _CHASE_HOPS)
        return cycles / ms / 1000

    def chase_cycles(self, footprint: int, on_host: bool = False) -> float:
        host = self._cupy.cuda.alloc_pinned_memory(max(footprint, _LINE)) if on_host else None
        chain = self._chain(footprint, host)
        places = max(1, footprint // _LINE)
        hops = max(_CHASE_HOPS // (16 if on_host else 1), 1)
        return median(self._chased(chain, min(places, 2**22), hops)[0] / hops for _ in range(TURNS))

    def per_sm_gb_s(self, footprint: int) -> float:
        lines = max(1, footprint // _LINE)
        held = self._cupy.zeros(lines * _WARP, dtype=np.float32)
        warps = 8

        def ms(loads: int) -> float:
            arguments = (held, np.uint32(lines), np.int64(loads), np.uint64(0))
            return self._ms("sm_loads", self._sms, warps * _WARP, arguments)

        lap = -(-lines // warps)
        first = 2 * lap
        return self._sms * warps * _LOADS * _LINE / (ms(first + _LOADS) - ms(first)) / 1e6

    def shared_gb_s(self, footprint: int) -> float:
        chunks = max(1, footprint // _CHUNK)
        held = self._cupy.zeros(chunks * _CHUNK // 8, dtype=np.float64)
        blocks = 2 * self._sms * max(1, -(-chunks // (2 * self._sms)))
        more = blocks * max(1, _CHUNKS_READ // blocks)

        def ms(count: int) -> float:
            return self._ms("l2_loads", count, 1024, (held, np.uint32(chunks), np.uint64(0)))

        return more * _CHUNK / (ms(blocks + more) - ms(blocks)) / 1e6

    def stream_gb_s(self, op: str, arrays: int, threads: int) -> float:
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        turn = 2 * self._sms * threads
        turns = min(_STREAM_BYTES, free // 4) // 8 // turn
        held = [self._cupy.zeros(turns * turn + 2 * _MARGIN, dtype=np.float64) for _ in range(3)]
        kept = max(0, self.about.figures["sharedMemPerMultiprocessor"] // 2 - _RESERVED)
        arguments = (*(array[_MARGIN:] for array in held), np.float64(3.0))

        def ms(some: int) -> float:
            return self._ms(f"stream_{op}", 2 * self._sms * some, threads, arguments, kept)

        few = turns // 3
        moved = arrays * (turns - few) * turn * 8
        return float(moved / (ms(turns) - ms(few)) / 1e6)

    def stride_cycles(self, stride: int) -> float:
        held = self._cupy.zeros(2 * _WARP * max(stride, 1) + 64, dtype=np.float32)
        sums, found = self._cupy.zeros(1024, dtype=np.float32), self._cupy.zeros(1, dtype=np.int64)

        def cycles(rounds: int) -> int:
            arguments = (held, np.uint32(stride), np.int64(rounds), np.uint32(0), sums, found)
            self._launch("l1_strides", 1, 1024, arguments)
            return int(found[0])

        longer = [cycles(2 * _STRIDE_ROUNDS) - cycles(_STRIDE_ROUNDS) for _ in range(TURNS)]
        return float(median(longer) / (_STRIDE_ROUNDS * 8 * _WARP))

    def copy_gb_s(self, to_host: bool, count: int) -> float:
        runtime = self._cupy.cuda.runtime
        pinned = self._cupy.cuda.alloc_pinned_memory(count)
        held = self._cupy.zeros(count, dtype=np.uint8)
        target, source = (pinned.ptr, held.data.ptr) if to_host else (held.data.ptr, pinned.ptr)
        kind = runtime.memcpyDeviceToHost if to_host else runtime.memcpyHostToDevice
        stream = self._cupy.cuda.get_current_stream().ptr
        return count / self._timed(lambda: runtime.memcpyAsync(target, source, count, kind, stream)) / 1e6

    def kernel_us(self, name: str, n: int) -> float:
        held = [self._cupy.zeros((n, n), dtype=np.float32) for _ in range(3)]
        flat = name == "vector_add"
        grid = (-(-n * n // 256),) if flat else (-(-n // 32), -(-n // 8))
        arguments = (*held, np.uint32(n * n if flat else n))
        return 1000 * self._ms(name, grid, (256,) if flat else (32, 8), arguments)

    def _chain(self, footprint: int, host: Any) -> int:
        """Address of the first place of a random lap over a footprint, in device memory or in pinned host memory."""
        words = lap_of(footprint)
        self._held = self._cupy.empty(len(words), dtype=np.uint64) if host is None else host
        base = int(self._held.data.ptr if host is None else host.ptr)
        words += np.uint64(base)
        if host is None:
            self._held.set(words)
        else:
            ctypes.memmove(base, words.ctypes.data, words.nbytes)
        return base

    def _chased(self, first: int, warm: int, hops: int) -> tuple[int, float]:
        """Cycles of the hops, and milliseconds of the whole kernel."""
        found = self._cupy.zeros(2, dtype=np.uint64)
        arguments = (np.uint64(first), np.int64(warm), np.int64(hops), found)
        ms = self._once(lambda: self._launch("chase", 1, _WARP, arguments))
        return int(found[1]), ms

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
        """Milliseconds, the median of some turns after one that doesn't count."""
        act()
        return median(self._once(act) for _ in range(TURNS))

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
