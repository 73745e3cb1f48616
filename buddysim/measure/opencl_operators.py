"""An OpenCL device that runs a model's operators, by kernels of buddysim's own (``operators.cl``).

OpenCL C reaches no tensor cores, so all products are in fp32: tiles of 16 x 16, a result for each work-item. They are
slower than a vendor's library. Attention, autograd and an optimizer have no kernel here. Times of kernels and copies
are those of OpenCL's profiling events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module, resources
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.machine.units import format_size
from buddysim.measure.operators import REPETITIONS, MemorySize, ProductSize, memory_extents
from buddysim.training.networks.recorded.work import AttentionWork, Launcher

TILE = 16
GROUP = 64
_WARM_UPS = 2
_NS_PER_US = 1000
_KERNELS = {"long_softmax": "softmax"}
"""Kernels of kinds that have none of their own name."""

Values = NDArray[np.float32]


def open_opencl(name: str | None) -> OpenclOperators:
    """Return the first GPU that OpenCL lists, or its first device where it lists none.

    Parameters
    ----------
    name : of the device in the rows; None: OpenCL's

    Raises
    ------
    BuddysimError
        PyOpenCL is not installed, or finds no device
    """
    try:
        opencl: Any = import_module("pyopencl")
    except ImportError:
        raise BuddysimError("machines measure --opencl needs PyOpenCL: pip install 'buddysim[opencl]'") from None
    try:
        devices = [device for platform in opencl.get_platforms() for device in platform.get_devices()]
    except opencl.Error:
        devices = []
    if not devices:
        raise BuddysimError("machines measure --opencl: OpenCL finds no device: expected the driver of one, or PoCL")
    gpus = [device for device in devices if device.type & opencl.device_type.GPU]
    return OpenclOperators(opencl, (gpus or devices)[0], name)


class OpenclOperators:
    """`operators.OperatorDevice` and `copies.CopyDevice` in OpenCL."""

    files: tuple[str, ...] = ("products", "memory", "launches")
    launchers: tuple[Launcher, ...] = ("compiled",)

    def __init__(self, opencl: Any, device: Any, name: str | None) -> None:
        self._cl = opencl
        self._device = device
        self.name = (name or device.name.strip()).replace(",", " ")
        gpu = "" if device.type & opencl.device_type.GPU else " on a CPU, which is no GPU"
        self.about = f"OpenCL, {device.platform.name.replace(',', ' ')}{gpu}; kernels of buddysim, no vendor's library"
        self.clock_mhz = float(device.max_clock_frequency)
        self._context = opencl.Context([device])
        profiling = opencl.command_queue_properties.PROFILING_ENABLE
        self._queue = opencl.CommandQueue(self._context, properties=profiling)
        source = (resources.files("buddysim.measure") / "operators.cl").read_text(encoding="utf-8")
        program = opencl.Program(self._context, source).build(["-cl-std=CL1.2", f"-DGROUP={GROUP}"])
        self._kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}

    def number_format(self, name: str) -> str:
        """Return the number format in which products of a format are measured."""
        return "fp32"

    def product_us(self, size: ProductSize) -> float:
        """Measure products of one size."""
        _, count, m, n, k = size
        left, right = np.ones((count, m, k), np.float32), np.ones((count, k, n), np.float32)
        return self.product(left, right)[0]

    def product(self, left: Values, right: Values) -> tuple[float, Values]:
        """Return the microseconds of products of batches, and the products."""
        count, m, k = left.shape
        n = right.shape[2]
        items = (_whole(n, TILE), _whole(m, TILE), count)
        us, out = self._run("product", items, (TILE, TILE, 1), [m, n, k, left, right], count * m * n)
        return us, out.reshape(count, m, n)

    def memory_us(self, size: MemorySize) -> float:
        """Measure a kernel that reads and writes as many bytes."""
        kind = size[0]
        values = np.ones(memory_extents(size), np.float32)
        others: dict[str, list[NDArray[Any]]] = {
            "norm_backward": [values],
            "gather": [np.arange(len(values), dtype=np.int32)[::-1].copy()],
        }
        return self.memory(_KERNELS.get(kind, kind), values, others.get(kind, []))[0]

    def memory(self, kernel: str, values: Values, others: Sequence[NDArray[Any]]) -> tuple[float, Values]:
        """Return the microseconds of a kernel on rows, and what it writes.

        Parameters
        ----------
        others : its other operands
        """
        rows, row = values.shape
        by_element = kernel == "elementwise"
        items, group = ((values.size,), None) if by_element else ((rows * GROUP,), (GROUP,))
        us, out = self._run(kernel, items, group, [row, values, *others], values.size)
        return us, out.reshape(rows, row)

    def launch_us(self, launcher: Launcher, operators: int) -> float:
        """Measure the host's time to set a kernel's argument and launch it, as compiled code does; of so many."""
        kernel, out = self._kernels["nothing"], self._buffer(4)
        spent = []
        for _ in range(_WARM_UPS + REPETITIONS):
            self._queue.finish()
            begin = time.perf_counter()
            for _ in range(operators):
                kernel(self._queue, (1,), (1,), out)
            spent.append((time.perf_counter() - begin) * 1e6 / operators)
        self._queue.finish()
        return median(spent[_WARM_UPS:])

    def attention_us(self, work: AttentionWork) -> float:
        """Refuse: OpenCL has no kernel of attention."""
        raise BuddysimError("machines measure --opencl: attention: no kernel of it in OpenCL")

    attention_backward_us = attention_us

    def copy_us(self, to_host: bool, count: int) -> float:
        """Measure a copy of `count` bytes to or from host memory that the driver allocated."""
        flags = self._cl.mem_flags
        pinned = self._buffer(count, flags.READ_WRITE | flags.ALLOC_HOST_PTR)
        mode = self._cl.map_flags.READ | self._cl.map_flags.WRITE
        host, _ = self._cl.enqueue_map_buffer(self._queue, pinned, mode, 0, (count,), np.uint8)
        device = self._buffer(count)
        target, source = (host, device) if to_host else (device, host)
        us = self._us(lambda: self._cl.enqueue_copy(self._queue, target, source, is_blocking=False))
        host.base.release(self._queue)
        self._queue.finish()
        return us

    def _run(
        self, name: str, items: tuple[int, ...], group: tuple[int, ...] | None, operands: Sequence[Any], results: int
    ) -> tuple[float, Values]:
        """Microseconds of a kernel, and its results; operands are integers and arrays."""
        out = self._buffer(4 * results)
        passed = [np.int32(one) if isinstance(one, int) else self._filled(one) for one in operands]
        us = self._us(lambda: self._kernels[name](self._queue, items, group, *passed, out))
        written = np.empty(results, np.float32)
        self._cl.enqueue_copy(self._queue, written, out)
        return us, written

    def _us(self, command: Callable[[], Any]) -> float:
        """Median of the repetitions, by the command's event."""
        spent: list[float] = []
        for _ in range(_WARM_UPS + REPETITIONS):
            event = command()
            event.wait()
            spent.append((event.profile.end - event.profile.start) / _NS_PER_US)
        return median(spent[_WARM_UPS:])

    def _filled(self, values: NDArray[Any]) -> Any:
        buffer = self._buffer(values.nbytes)
        self._cl.enqueue_copy(self._queue, buffer, values)
        return buffer

    def _buffer(self, count: int, flags: int | None = None) -> Any:
        """A buffer of `count` bytes."""
        largest = self._device.max_mem_alloc_size
        if count > largest:
            raise BuddysimError(
                f"machines measure --opencl: an operand of {format_size(count)}: {self.name} gives at most "
                f"{format_size(largest)} at once: expected a smaller --batch or --sequence"
            )
        return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE if flags is None else flags, count)


def _whole(extent: int, of: int) -> int:
    return -(-extent // of) * of
