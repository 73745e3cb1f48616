"""A capture of Triton's launches: each is interpreted, compiled, and written to the trace; values in snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from buddysim.capture.launch_window import LaunchWindow
from buddysim.capture.snapshot_selection import select_first_to_last
from buddysim.capture.torch.access.graph_accesses import write_kernel
from buddysim.capture.triton_kernels.aten_products import product_kernels
from buddysim.capture.triton_kernels.compiled_kernel import CompiledKernel, KernelCompiler
from buddysim.capture.triton_kernels.device_memory import TensorMemory
from buddysim.capture.triton_kernels.interpretation import Interpreter
from buddysim.capture.triton_kernels.interrupts import postponed_interrupt
from buddysim.capture.triton_kernels.launch_records import AccessCounts, LaunchRecords
from buddysim.capture.triton_kernels.status_line import StatusLine
from buddysim.compress import DEFAULT, entry_classes
from buddysim.trace.format import PAGE_BYTES
from buddysim.trace.model import Dim3, Provenance
from buddysim.trace.writer import TraceWriter

RESERVED_PROVENANCE_BYTES: Final = 4096
_WARP_THREADS: Final = 32


@dataclass(frozen=True)
class TritonCaptureSettings:
    """Settings of a capture.

    Parameters
    ----------
    architecture : of the GPU that kernels are compiled for: 80, 90, ..
    snapshots : of all tensors, at most
    window : launches whose accesses are recorded; None: all
    grid_sample : record one of so many thread blocks
    compressor : of the size maps
    torch_compile : let ``torch.compile`` make Triton kernels
    workers : processes that interpret programs
    contents_every : period of the 8 KiB pages whose bytes are kept; 0: none
    """

    architecture: int = 90
    snapshots: int = 10
    window: LaunchWindow | None = None
    grid_sample: int = 1
    compressor: str = DEFAULT
    torch_compile: bool = False
    workers: int = 1
    contents_every: int = 1


@dataclass
class TritonCaptureSummary:
    """Counts of a capture.

    Attributes
    ----------
    launches : of the program
    kernels : launches in the trace
    allocations : in the trace
    snapshots : in the trace
    accesses : of the programs
    """

    launches: int = 0
    kernels: int = 0
    allocations: int = 0
    snapshots: int = 0
    accesses: AccessCounts = field(default_factory=AccessCounts)


@dataclass
class _TakenSnapshot:
    launch_index: int
    contents: dict[int, npt.NDArray[np.uint8]]  # by allocation


class TritonSession:
    """Captures the launches of this process.

    Parameters
    ----------
    writer : of the trace
    provenance : of the trace, completed at the end
    settings : of the capture
    """

    def __init__(self, writer: TraceWriter, provenance: Provenance, settings: TritonCaptureSettings) -> None:
        self.summary = TritonCaptureSummary()
        self._writer, self._provenance, self._settings = writer, provenance, settings
        self._status = StatusLine()
        self._compiler = KernelCompiler(settings.architecture)
        self._memory = TensorMemory()
        self.interpreter = Interpreter(self._launch)
        self._records: dict[int, LaunchRecords] = {}
        self._kernels: dict[int, CompiledKernel] = {}
        self._snapshots: list[_TakenSnapshot] = []
        self._every = 1
        self._in_kernel = False

    def _launch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> None:
        index = self.summary.launches
        self._free()
        bound, kernel, blocks = self._prepare(function, args, kwargs, grid)
        if index == 0:
            self._snapshot(0)
        self.summary.launches += 1
        recorded = self._is_recorded(index)
        own = {name: value for name, value in kwargs.items() if name in bound}
        sample, count = self._settings.grid_sample, blocks[0] * blocks[1] * blocks[2]

        def progress(number: int) -> None:
            self._status.show(f"launch {index}: {kernel.name}: thread block {number:,} of {count:,}")

        workers = 1 if any(access.layout.kind == "atomic" for access in kernel.accesses) else self._settings.workers
        programs = self.interpreter.run(
            function, args, own, blocks, lambda number: recorded and number % sample == 0, progress, workers
        )
        try:
            if recorded:
                self._write(index, kernel, blocks, programs)
            else:
                for _ in programs:
                    pass
        finally:
            self._status.erase()
        self._snapshot(index + 1)

    def add_product(self, name: str, inputs: list[Any], result: Any) -> None:
        """Write the kernels of a product that Inductor left to ATen, which has run.

        Parameters
        ----------
        name : of Inductor's call
        inputs : tensors that it read
        result : tensor that it wrote
        """
        self._free()
        *reads, written = [
            (tensor, self._on_device(tensor, f"{name}.{argument}").data_ptr())
            for tensor, argument in [*((one, f"in{number}") for number, one in enumerate(inputs)), (result, "out")]
        ]
        if self.summary.launches == 0:
            self._snapshot(0)
        for kernel in product_kernels(name, reads, written):
            index = self.summary.launches
            self.summary.launches += 1
            if self._is_recorded(index):
                with postponed_interrupt():
                    write_kernel(self._writer, kernel, index)
                self.summary.kernels += 1
        self._snapshot(self.summary.launches)

    def _is_recorded(self, index: int) -> bool:
        window = self._settings.window
        return window is None or window.first <= index < (index + 1 if window.end is None else window.end)

    def _prepare(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any
    ) -> tuple[dict[str, Any], CompiledKernel, Dim3]:
        """Allocate the tensors of a launch and compile its kernel."""
        names = [parameter.name for parameter in function.params]
        arguments = dict(zip(names, args, strict=False)) | {name: kwargs[name] for name in names if name in kwargs}
        options = {name: value for name, value in kwargs.items() if name not in arguments}
        on_device = {name: self._on_device(value, f"{function.__name__}.{name}") for name, value in arguments.items()}
        bound, key = self._compiler.bind(function, (), on_device | options)
        kernel = self._compiler.compile(function, bound, key, options)
        if callable(grid):
            grid = grid(arguments | {name: value for name, value in bound.items() if name not in arguments})
        extents = tuple(int(extent) for extent in (grid if isinstance(grid, tuple | list) else (grid,)))
        blocks: Dim3 = (*extents, 1, 1)[:3]  # type: ignore[assignment]
        return bound, kernel, blocks

    def _on_device(self, value: Any, name: str) -> Any:
        """Return an argument with its tensors' pointers as the GPU has them."""
        if isinstance(value, tuple):
            return type(value)(self._on_device(one, name) for one in value)
        if not hasattr(value, "untyped_storage"):
            return value
        stored, new = self._memory.add(value, name)
        if new:
            stored.allocation = self._writer.add_allocation(name, stored.base, max(1, stored.bytes))
            self.summary.allocations += 1
        return self._memory.pointer(value, stored)

    def _free(self) -> None:
        for stored in self._memory.remove_freed():
            if stored.allocation is not None:
                self._writer.free_allocation(stored.allocation)

    def _write(self, index: int, kernel: CompiledKernel, blocks: Dim3, programs: Any) -> None:
        records = self._records.get(id(kernel))
        if records is None:
            records = self._records[id(kernel)] = LaunchRecords(
                kernel,
                self.interpreter.source_loops,
                self._memory,
                self._settings.architecture,
                self.summary.accesses,
            )
            self._kernels[id(kernel)] = kernel
        self._writer.begin_kernel(
            kernel.name,
            blocks,
            (kernel.warps * _WARP_THREADS, 1, 1),
            registers=kernel.registers,
            shared_memory_bytes=kernel.shared_bytes,
            launch_index=index,
            code_bytes=kernel.sass.code_bytes,
        )
        self._in_kernel = True
        self.summary.kernels += 1
        for part in records.records(programs):
            with postponed_interrupt():
                self._writer.add_blocks(*part)
        with postponed_interrupt():
            self._writer.end_kernel()
            self._in_kernel = False

    # -- values -------------------------------------------------------------------------------------------------------

    def _snapshot(self, launch_index: int) -> None:
        """Copy all tensors, unless snapshots have become rarer; of too many, every other one is arguments up."""
        if self._settings.snapshots == 0 or launch_index % self._every:
            return
        contents = {stored.allocation: stored.contents() for stored in self._memory if stored.allocation is not None}
        self._snapshots.append(_TakenSnapshot(launch_index, contents))
        if len(self._snapshots) > 2 * self._settings.snapshots:
            self._every *= 2
            self._snapshots = [each for each in self._snapshots if each.launch_index % self._every == 0]

    def finish(self, end: str) -> None:
        """Write the snapshots that stay, and how the program ended.

        Parameters
        ----------
        end : for the provenance; begins with "none:" after a normal end
        """
        if self._in_kernel:
            self._writer.end_kernel()
            self._in_kernel = False
        self._free()
        self._every = 1
        if not self._snapshots or self._snapshots[-1].launch_index != self.summary.launches:
            self._snapshot(self.summary.launches)
        points = [each.launch_index for each in self._snapshots]
        for number in select_first_to_last(points, self._settings.snapshots) if self._settings.snapshots else []:
            self._write_snapshot(self._snapshots[number])
        self._writer.replace_provenance(
            replace(self._provenance, assumptions=self._provenance.assumptions | self._omissions() | {"end": end})
        )
        self._compiler.close()

    def _write_snapshot(self, taken: _TakenSnapshot) -> None:
        index = taken.launch_index
        label = "before the first launch" if index == 0 else f"after {index} launches"
        snapshot = self._writer.add_snapshot(index, label)
        self.summary.snapshots += 1
        for allocation, data in taken.contents.items():
            padded = np.zeros(-(-len(data) // 128) * 128, np.uint8)
            padded[: len(data)] = data
            classes = entry_classes(padded, self._settings.compressor)
            self._writer.add_size_map(snapshot, allocation, classes, self._settings.compressor)
            every = self._settings.contents_every
            if every == 1:
                self._writer.add_contents(snapshot, allocation, data)
            elif every:
                pages = np.arange(0, -(-len(data) // PAGE_BYTES), every)
                stored = [data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] for page in pages]
                self._writer.add_contents(snapshot, allocation, np.concatenate(stored), pages)

    def _omissions(self) -> dict[str, str]:
        """Statements on what the capture left out, for the provenance."""
        counts, sample = self.summary.accesses, self._settings.grid_sample
        texts = {}
        if counts.dropped:
            texts["removed"] = (
                f"{counts.dropped} accesses of the interpreter are not in the trace: the compiler removed them, or "
                "loaded once what the source loads several times."
            )
        if counts.outside:
            texts["outside"] = f"{counts.outside} lane accesses outside of all tensors are not in the trace."
        if sample > 1:
            texts["grid"] = f"One of {sample} thread blocks of each launch is in the trace; values are of all."
        if self._settings.window is not None:
            texts["launches"] = f"Only launches {self._settings.window} of {self.summary.launches} are in the trace."
        return texts
