"""Measures the operators that a model's training step asks for, and what the host takes to launch one.

These are products, attention forward and backward, and kernels that memory bounds.

Rows have the columns of the package's own (`cost.operators.rows`). PyTorch runs the operators: on the GPU that CUDA
lists first, or on the CPU. Other devices run some of them (`opencl_operators`). Of each size the median of a few runs
counts, after runs that warm up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from buddysim.base.errors import BuddysimError
from buddysim.base.output import check_outputs, write_text
from buddysim.training.autograd.records import TracedOperation
from buddysim.training.cost.operators.rows import USER_FILES
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import AttentionWork, Launcher, work_of

#: Runs of each size; the median counts.
REPETITIONS = 7
_WARM_UPS = 2
#: Operators whose launches are timed together: the host waits for the GPU where about a thousand are launched.
LAUNCHED = 200
_SOURCE = "u"
_BYTES = 4  # of an element of what memory-bound kernels read

ProductSize = tuple[str, int, int, int, int]
MemorySize = tuple[str, int, int]


class RequestedOperators(NamedTuple):
    """What a step runs, each size once.

    Attributes
    ----------
    products : number format, count, m, n, k
    attention : kernel and extents
    memory : kind, bytes and elements of a row
    """

    products: tuple[ProductSize, ...]
    attention: tuple[tuple[str, AttentionWork], ...]
    memory: tuple[MemorySize, ...]


class OperatorDevice(Protocol):
    """What runs operators; times are in microseconds.

    Attributes
    ----------
    name : in the rows
    about : what runs them, in words
    files : which of `USER_FILES` it can measure
    launchers : whose launches it can time
    """

    name: str
    about: str
    files: tuple[str, ...]
    launchers: tuple[Launcher, ...]

    def number_format(self, name: str) -> str:
        """Return the number format in which products of a format are measured."""

    def product_us(self, size: ProductSize) -> float:
        """Measure products of one size."""

    def attention_us(self, work: AttentionWork) -> float:
        """Measure the forward pass of attention."""

    def attention_backward_us(self, work: AttentionWork) -> float:
        """Measure the backward pass of attention."""

    def memory_us(self, size: MemorySize) -> float:
        """Measure a kernel that reads and writes as many bytes."""

    def launch_us(self, launcher: Launcher, operators: int) -> float:
        """Measure the host's time of one of so many operators in a row; of the optimizer, of one of so many tensors."""


def requested_operators(network: RecordedNetwork) -> RequestedOperators:
    """Return the sizes of a recorded step, in the order in which they come first."""
    products: dict[ProductSize, None] = {}
    attention: dict[tuple[str, AttentionWork], None] = {}
    memory: dict[MemorySize, None] = {}
    for operation in network.tape.operations:
        if operation.phase == "setup" or operation.collective is not None:
            continue
        work = work_of(operation)
        if work.attention is not None:
            if not work.backward:
                attention[work.kernel, work.attention] = None
        elif work.products:
            products |= {(work.number_format, count, m, n, k): None for m, n, k, count in work.products}
        elif work.bytes and work.launcher != "optimizer":
            memory[work.kind, work.bytes, _row(operation)] = None
    return RequestedOperators(tuple(products), tuple(attention), tuple(memory))


def _row(operation: TracedOperation) -> int:
    operands = operation.reads or operation.writes
    return operands[0].shape[-1] if operands and operands[0].shape else 1


def memory_extents(size: MemorySize) -> tuple[int, int]:
    """Return the rows, and elements of a row, of an operand of a kernel that moves so many bytes in all."""
    kind, byte_count, row = size
    arrays = 3 if kind == "norm_backward" else 2  # read or written
    length = max(1, row)
    return max(1, byte_count // arrays // _BYTES // length), length


def measure_operators(
    folder: Path, network: RecordedNetwork, device: OperatorDevice, progress: Callable[[str], object]
) -> list[Path]:
    """Measure the operators of a step into a folder, those that the device can run, and return the files written.

    Parameters
    ----------
    folder : of the files, which is created
    progress : called with a line for each file
    """
    requested = requested_operators(network)
    folder.mkdir(parents=True, exist_ok=True)
    products = dict.fromkeys((device.number_format(size[0]), *size[1:]) for size in requested.products)
    attention = [(_attention_cells(kernel, work), work) for kernel, work in requested.attention]
    measurements: dict[str, Iterator[tuple[object, ...]]] = {
        "products": ((*size, _SOURCE, device.product_us(size)) for size in products),
        "attention": ((*cells, device.attention_us(work)) for cells, work in attention),
        "attention_backward": ((*cells, device.attention_backward_us(work)) for cells, work in attention),
        "memory": ((*size, _SOURCE, device.memory_us(size)) for size in requested.memory),
        "launches": ((one, LAUNCHED, device.launch_us(one, LAUNCHED)) for one in device.launchers),
    }
    paths = [folder / f"{name}.csv" for name in device.files]
    check_outputs(paths)
    rows = {name: list(measurements[name]) for name in device.files}
    for path, (name, measured) in zip(paths, rows.items(), strict=True):
        columns = USER_FILES[name]
        by = f"# source: measured on {device.name} by machines measure (rows {_SOURCE}): {device.about}"
        lines = [by, ",".join(columns)]
        lines += [",".join((device.name, *(_cell(value) for value in row))) for row in measured]
        write_text(path, "\n".join(lines) + "\n")
        progress(f"{path.stem}: {len(measured)} sizes")
    return paths


def _attention_cells(kernel: str, work: AttentionWork) -> tuple[object, ...]:
    return kernel, work.batch, work.tokens, work.heads, work.kv_heads, work.head_size, work.window


def _cell(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def open_torch(name: str | None) -> TorchDevice:
    """Return the first GPU of PyTorch, or the CPU where it finds none.

    Parameters
    ----------
    name : of the GPU in the rows; None: PyTorch's

    Raises
    ------
    BuddysimError
        PyTorch is not installed
    """
    if find_spec("torch") is None:
        raise BuddysimError("machines measure --model needs PyTorch, which is not installed: pip install torch")
    import torch

    return TorchDevice(torch, name)


class TorchDevice:
    """`OperatorDevice` in PyTorch."""

    files: tuple[str, ...] = ("products", "attention", "attention_backward", "memory", "launches")
    launchers: tuple[Launcher, ...] = ("forward", "backward", "optimizer")

    def __init__(self, torch: Any, name: str | None) -> None:
        self._torch = torch
        self._on_gpu = bool(torch.cuda.is_available())
        self._device = "cuda" if self._on_gpu else "cpu"
        self.name = name or (torch.cuda.get_device_name(0) if self._on_gpu else "cpu").replace(",", " ")
        self.about = f"PyTorch {torch.__version__}"
        self._formats = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

    def number_format(self, name: str) -> str:
        return name

    def product_us(self, size: ProductSize) -> float:
        number_format, count, m, n, k = size
        left, right = self._values(number_format, count, m, k), self._values(number_format, count, k, n)
        return self._us(lambda: left @ right)

    def attention_us(self, work: AttentionWork) -> float:
        attend, inputs = self._attention(work, grad=False)
        return self._us(lambda: attend(*inputs))

    def attention_backward_us(self, work: AttentionWork) -> float:
        attend, inputs = self._attention(work, grad=True)
        output = attend(*inputs)
        gradient = self._torch.ones_like(output)
        return self._us(lambda: self._torch.autograd.grad(output, inputs, gradient, retain_graph=True))

    def _attention(self, work: AttentionWork, *, grad: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The kernel, and its inputs."""
        shape = (work.batch, work.heads, work.tokens, work.head_size)
        keys = (work.batch, work.kv_heads, work.keys, work.head_size)
        inputs = tuple(self._values("bf16", *extents).requires_grad_(grad) for extents in (shape, keys, keys))
        attend = self._torch.nn.functional.scaled_dot_product_attention
        return partial(attend, is_causal=work.causal, enable_gqa=work.heads != work.kv_heads), inputs

    def memory_us(self, size: MemorySize) -> float:
        kind = size[0]
        rows, row = memory_extents(size)
        values = self._values("fp32", rows, row)
        torch, shape = self._torch, values.shape[1:]
        if kind == "norm":
            return self._us(lambda: torch.native_layer_norm(values, shape, None, None, 1e-5))
        if kind == "norm_backward":
            _, mean, scale = torch.native_layer_norm(values, shape, None, None, 1e-5)
            backward, outputs = torch.ops.aten.native_layer_norm_backward, [True, False, False]
            return self._us(lambda: backward(values, values, shape, mean, scale, None, None, outputs))
        if kind in ("softmax", "long_softmax"):
            return self._us(lambda: values.softmax(-1))
        if kind == "gather":
            index = torch.randint(rows, (rows,), device=self._device)
            return self._us(lambda: values[index])
        return self._us(lambda: values + 1.0)

    def launch_us(self, launcher: Launcher, operators: int) -> float:
        torch = self._torch
        one = self._values("fp32", 1)
        if launcher == "forward":
            return self._host_us(lambda: [one + 1.0 for _ in range(operators)], operators)
        if launcher == "optimizer":
            tensors = [self._values("fp32", 1) for _ in range(operators)]
            return self._host_us(lambda: torch._foreach_add_(tensors, 1.0), operators)
        leaf = self._values("fp32", 1).requires_grad_(True)
        result = leaf
        for _ in range(operators):
            result = result * 1.5
        return self._host_us(lambda: torch.autograd.grad(result, leaf, retain_graph=True), operators)

    def _host_us(self, work: Callable[[], object], count: int) -> float:
        """Time of the host for each of `count` launches, which the GPU does not hold up."""
        spent = []
        for _ in range(_WARM_UPS + REPETITIONS):
            if self._on_gpu:
                self._torch.cuda.synchronize()
            begin = time.perf_counter()
            work()
            spent.append((time.perf_counter() - begin) * 1e6 / count)
        return median(spent[_WARM_UPS:])

    def _values(self, number_format: str, *shape: int) -> Any:
        return self._torch.ones(shape, dtype=self._formats[number_format], device=self._device)

    def _us(self, work: Callable[[], object]) -> float:
        for _ in range(_WARM_UPS):
            work()
        return median(self._once(work) for _ in range(REPETITIONS))

    def _once(self, work: Callable[[], object]) -> float:
        if not self._on_gpu:
            begin = time.perf_counter()
            work()
            return (time.perf_counter() - begin) * 1e6
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end) * 1e3)
