"""OpenCL device of a workload: arrays and kernels by name, and the number of launches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.machine.units import format_size

if TYPE_CHECKING:
    from buddysim.workloads.solver import Solver

# Contraction would let results depend on whether the processor has fused multiply-add.
_PROLOGUE = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
"""


class Device:
    """A solver's arrays and kernels on the first OpenCL device.

    Arrays are zero at first, so that untouched elements don't depend on the machine.

    Parameters
    ----------
    solver : states arrays, sources and constants
    """

    def __init__(self, solver: Solver) -> None:
        self._cl = cl = import_pyopencl()
        device = cl.get_platforms()[0].get_devices()[0]
        _check_device_memory(solver, device.max_mem_alloc_size, device.global_mem_size)
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)
        text = _PROLOGUE + "\n".join(_source(source) for source in solver.sources)
        options = [f"-D {name}={_literal(value)}" for name, value in solver.constants.items()]
        self._program = cl.Program(self._context, text).build(options=["-cl-std=CL1.2", *options])
        self._kernels: dict[str, Any] = {}
        self._arrays = dict(solver.arrays)
        self._buffers = {}
        for name, array in self._arrays.items():
            self._buffers[name] = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, array.bytes)
            self.fill(name, 0)
        self.launches = 0

    def launch(self, kernel: str, size: int | tuple[int, ...], group: int | tuple[int, ...], *arguments: Any) -> None:
        """Start a kernel.

        Parameters
        ----------
        kernel : its name
        size : work-items that are needed, along each dimension; rounded up to whole groups
        group : work-items of a group
        arguments : a text names an array, a Python integer is an ``int``, a float a ``double``; numpy scalars
            keep their type
        """
        sizes = (size,) if isinstance(size, int) else size
        groups = (group,) if isinstance(group, int) else group
        whole = tuple(-(-requested // of) * of for requested, of in zip(sizes, groups, strict=True))
        if kernel not in self._kernels:
            self._kernels[kernel] = self._cl.Kernel(self._program, kernel)
        self._kernels[kernel](self._queue, whole, groups, *(self._argument(value) for value in arguments))
        self.launches += 1

    def read(self, name: str, elements: int | None = None) -> NDArray[Any]:
        """Return the first elements of an array, or all."""
        array = self._arrays[name]
        values = np.empty(array.elements if elements is None else elements, array.dtype)
        self._cl.enqueue_copy(self._queue, values, self._buffers[name])
        return values

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Copy values to the beginning of an array, converted to its type."""
        array = self._arrays[name]
        data = np.ascontiguousarray(values, array.dtype).ravel()
        if len(data) > array.elements:
            raise ValueError(f"{name}: {len(data)} values, expected at most {array.elements}")
        self._cl.enqueue_copy(self._queue, self._buffers[name], data)

    def fill(self, name: str, value: float) -> None:
        """Set all elements of an array."""
        array = self._arrays[name]
        pattern = np.array(value, array.dtype)
        self._cl.enqueue_fill_buffer(self._queue, self._buffers[name], pattern, 0, array.bytes)

    def copy(self, source: str, start: int, target: str, at: int, elements: int) -> None:
        """Copy elements of an array, from `start` on, to another from `at` on."""
        size = np.dtype(self._arrays[source].dtype).itemsize
        self._cl.enqueue_copy(
            self._queue,
            self._buffers[target],
            self._buffers[source],
            src_offset=start * size,
            dst_offset=at * size,
            byte_count=elements * size,
        )

    def finish(self) -> None:
        """Wait for the end of all commands."""
        self._queue.finish()

    def _argument(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._buffers[value]
        if isinstance(value, int):
            return np.int32(value)
        if isinstance(value, float):
            return np.float64(value)
        return value


def _check_device_memory(solver: Solver, largest: int, together: int) -> None:
    """Refuse arrays that the device can't hold, before any is made."""
    name, size = max(((name, array.bytes) for name, array in solver.arrays.items()), key=lambda each: each[1])
    if size > largest:
        raise BuddysimError(
            f"array {name} needs {format_size(size)}, the OpenCL device gives at most {format_size(largest)} at once"
        )
    if solver.device_bytes > together:
        raise BuddysimError(
            f"the arrays need {format_size(solver.device_bytes)}, the OpenCL device has {format_size(together)}"
        )


def import_pyopencl() -> Any:
    """Return PyOpenCL; a BuddysimError if it or a device is missing."""
    try:
        import pyopencl
    except ImportError:
        raise BuddysimError("workloads need PyOpenCL, which isn't installed: pip install 'buddysim[opencl]'") from None
    return pyopencl


def _source(source: Path | str) -> str:
    return source if isinstance(source, str) else source.read_text(encoding="utf-8")


def _literal(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{float(value)!r}"
