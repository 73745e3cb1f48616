"""OpenCL device that runs codecs: kernels by name, buffers, launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module, resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs import BLOCKS, GRIDS

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class LaunchShape:
    """Parameters of a launch: work-groups, and work-items per work-group."""

    grid: int
    block: int

    def check(self) -> None:
        """Check that the parameters are in range.

        Raises
        ------
        BuddysimError
            if the grid or the block is out of range
        """
        if not GRIDS[0] <= self.grid <= GRIDS[1]:
            raise BuddysimError(f"grid {self.grid}: out of range: expected {GRIDS[0]} to {GRIDS[1]} work-groups")
        if self.block not in BLOCKS:
            raise BuddysimError(f"block {self.block}: unknown: expected {' or '.join(map(str, BLOCKS))} work-items")


#: Launch of the prefix sums that every codec needs between its passes (scan.cl).
SCAN = LaunchShape(1, 256)


class OpenclDevice:
    """The first OpenCL device, with the kernels of some source files of this folder."""

    def __init__(self, sources: Sequence[str]) -> None:
        try:
            self._cl: Any = import_module("pyopencl")
        except ImportError:
            raise BuddysimError("pyopencl: not installed: pip install 'buddysim[opencl]'") from None
        self._context = self._cl.Context(self._cl.get_platforms()[0].get_devices()[:1])
        self._queue = self._cl.CommandQueue(self._context)
        folder = resources.files("buddysim.gpu_codecs")
        text = "\n".join((folder / name).read_text(encoding="utf-8") for name in sources)
        program = self._cl.Program(self._context, text).build(["-cl-std=CL1.2"])
        self._kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}

    def buffer(self, words: int, contents: Words | None = None) -> Any:
        """Return a buffer of 32-bit words, zero or with these contents."""
        flags = self._cl.mem_flags
        if contents is not None:
            return self._cl.Buffer(self._context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=contents)
        zeroed = self._cl.Buffer(self._context, flags.READ_WRITE, 4 * max(words, 1))
        self._cl.enqueue_fill_buffer(self._queue, zeroed, np.uint32(0), 0, 4 * max(words, 1))
        return zeroed

    def launch(self, kernel: str, launch: LaunchShape, *arguments: Any) -> None:
        """Start a kernel; integers are passed as words."""
        passed = (np.uint32(value) if isinstance(value, int) else value for value in arguments)
        self._kernels[kernel](self._queue, (launch.grid * launch.block,), (launch.block,), *passed)

    def read(self, buffer: Any, words: int) -> Words:
        """Return the first words of a buffer."""
        words_read = np.empty(words, np.uint32)
        self._cl.enqueue_copy(self._queue, words_read, buffer)
        return words_read

    def read_bytes(self, buffer: Any, count: int) -> bytes:
        """Return the first bytes of a buffer: payloads may end within a word."""
        return self.read(buffer, -(-count // 4)).tobytes()[:count]
