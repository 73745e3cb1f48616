"""The same small program in PyTorch and in the symbolic one: what autograd saves, what each operator allocates.

A program is a function of a namespace and of tensors, and returns a scalar. The namespace has PyTorch's functions and
types, or the package's, under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_leaves

from buddysim.training.autograd import Autocast, Tape, Tensor, functional
from buddysim.training.autograd.dtypes import DTYPES, bfloat16, bool8
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.records import CUDA_SCRATCH, AllocationEvent, FreeEvent, TracedOperation
from buddysim.training.networks.from_torch.below_autograd import Proceed, below_autograd

Recipe = Literal["fp32", "bf16", "autocast"]
Program = Callable[..., Any]

#: Saved tensors that live on the host of a GPU, and the bytes of each.
ON_HOST = ("philox_seed", "philox_offset")
BYTES_ON_HOST = 8


@dataclass(frozen=True)
class Input:
    """A tensor that a program takes: a leaf, of the recipe's type unless it has one of its own.

    Attributes
    ----------
    largest : integers are random below it
    values : of integers that must have some
    """

    shape: tuple[int, ...]
    dtype: str | None = None
    requires_grad: bool = True
    largest: int = 2
    values: tuple[int, ...] | None = None

    def type_in(self, recipe: Recipe) -> str:
        return self.dtype or ("bfloat16" if recipe == "bf16" else "float32")

    @property
    def is_trained(self) -> bool:
        return self.requires_grad and self.dtype in (None, "float32", "bfloat16", "float16")


@dataclass
class Step:
    """One forward and backward pass.

    Attributes
    ----------
    saved : node, name in its formula, shape, type
    allocations : of each operator that allocates: what, and what lives then; bytes
    end : bytes that live at the end, without the leaves
    gradients : shape, strides and type
    """

    saved: list[tuple[str, str, tuple[int, ...], str]] = field(default_factory=list)
    allocations: list[tuple[list[int], int]] = field(default_factory=list)
    end: int = 0
    gradients: list[tuple[Any, ...]] = field(default_factory=list)


def run_symbolic(program: Program, inputs: Sequence[Input], recipe: Recipe = "fp32", attention: Any = "flash") -> Step:
    """A step of the symbolic PyTorch."""
    namespace = SimpleNamespace(**{**vars(functional), **DTYPES, "bool": bool8})
    namespace.scaled_dot_product_attention = partial(functional.scaled_dot_product_attention, kernel=attention)
    step = Step()
    with Tape() as tape:
        tensors: list[Tensor] = []
        for one in inputs:
            dtype = DTYPES[one.type_in(recipe)]
            tensors.append(Parameter(one.shape, dtype) if one.is_trained else tape.input(one.shape, dtype))
        begin = len(tape.events)
        with tape.in_phase("forward"), Autocast(tape, bfloat16) if recipe == "autocast" else nullcontext():
            loss = program(namespace, *tensors)
        step.saved = [(one.node, one.name, one.shape, one.dtype.name) for one in tape.saved]
        loss.backward()
        fresh: list[int] = []
        for event in tape.events[begin:]:
            if isinstance(event, AllocationEvent | FreeEvent) and tape.storages[event.storage].producer == CUDA_SCRATCH:
                continue
            if isinstance(event, AllocationEvent):
                step.end += event.bytes
                fresh.append(event.bytes)
            elif isinstance(event, FreeEvent):
                step.end -= event.bytes
            else:
                assert isinstance(event, TracedOperation)
                _note(step, fresh, step.end)
                fresh = []
        step.gradients = [
            (one.grad.shape, one.grad.strides, one.grad.dtype.name) if one.grad is not None else ()
            for one, spec in zip(tensors, inputs, strict=True)
            if spec.is_trained
        ]
    return step


def _note(step: Step, fresh: list[int], live: int) -> None:
    sizes = sorted(size for size in fresh if size)
    if sizes:
        step.allocations.append((sizes, live))


def run_torch(program: Program, inputs: Sequence[Input], recipe: Recipe = "fp32") -> Step:
    """A step of PyTorch on real tensors; within `cuda_rules`, by CUDA's rules.

    PyTorch's own reports of its allocator are read, as they disturb nothing: a dispatch mode, or a wrapper of a storage
    in Python, makes autograd add gradients out of place.
    """
    namespace = SimpleNamespace(**{**_public(torch), **_public(torch.nn.functional), **_OTHERWISE_CALLED})
    torch.manual_seed(0)
    tensors = [_tensor(one, recipe) for one in inputs]
    step, marker = Step(), _Marker()
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "autocast" else nullcontext()
    with torch.profiler.profile(activities=_CPU, profile_memory=True) as profile:
        with below_autograd(marker), autocast:
            loss = program(namespace, *tensors)
        step.saved = _saved(loss)
        with below_autograd(marker):
            loss.backward()
    step.gradients = [
        (tuple(one.grad.shape), one.grad.stride(), _name(one.grad.dtype)) if one.grad is not None else ()
        for one, spec in zip(tensors, inputs, strict=True)
        if spec.is_trained
    ]
    for name, fresh, live in marker.allocations(profile):
        _note(step, [] if name == "" else fresh, live)
        step.end = live
    return step


def _copied_into(x: Any, y: Any, dim: int, elements: int | tuple[int, int]) -> Any:
    part = (
        x.select(dim, elements) if isinstance(elements, int) else x.narrow(dim, elements[0], elements[1] - elements[0])
    )
    part.copy_(y)
    return x


#: Functions that the package calls with other arguments.
_OTHERWISE_CALLED: dict[str, Callable[..., Any]] = {
    "index": lambda x, *indices: x[indices],
    "index_add": lambda x, indices, rows: x.index_add(0, indices, rows),
    "gather": lambda x, indices: x.gather(-1, indices),
    "scatter_": lambda x, indices, source=1.0: x.scatter_(-1, indices, source),
    "polar": lambda angles: torch.polar(torch.ones_like(angles), angles),
    "max_values": lambda x, dim: x.max(dim, keepdim=True).values,
    "new_empty": lambda x, shape: x.new_empty(*shape),
    "copy_into": _copied_into,
    "to_contiguous": lambda x, dtype: x.to(dtype, memory_format=torch.contiguous_format),
    "solve_triangular": lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True),
    "conv1d": lambda x, w, b, padding: torch.nn.functional.conv1d(x, w, b, padding=padding, groups=w.shape[0]),
    "grouped_mm": lambda x, matrices, ends, rows: torch.nn.functional.grouped_mm(x, matrices, offs=ends),
}

_CPU = [torch.profiler.ProfilerActivity.CPU]


class _Marker:
    """Marks each operator in the profile."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, func: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        self.names.append(func.overloadpacket.__name__)
        with torch.profiler.record_function(f"#{len(self.names) - 1}"):
            return proceed(func, args, kwargs)

    def allocations(self, profile: Any) -> Iterator[tuple[str, list[int], int]]:
        """Of each operator what it allocates and doesn't free itself, and what lives when it ends; then the end.

        What is allocated between operators are numbers of Python's, which a GPU has on its host.
        """
        live, sizes = 0, {}
        events = sorted(_flat(profile), key=lambda event: event[0])
        position = 0
        while position < len(events):
            _, end, name, event = events[position]
            position += 1
            if event is not None:
                live -= sizes.pop(event.ptr, 0) if event.alloc_size < 0 else 0
                continue
            inner: dict[int, int] = {}
            while position < len(events) and events[position][0] <= end:
                event = events[position][3]
                position += 1
                if event is None:
                    continue
                if event.alloc_size > 0:
                    inner[event.ptr] = event.alloc_size
                elif event.ptr in inner:
                    del inner[event.ptr]
                else:
                    live -= sizes.pop(event.ptr, 0)
            if "efficient_attention" in self.names[name]:
                inner = {key: size for key, size in inner.items() if size != BYTES_ON_HOST}
            sizes.update(inner)
            live += sum(inner.values())
            yield self.names[name], list(inner.values()), live
        yield "", [], live


def _flat(profile: Any) -> Iterator[tuple[int, int, int, Any]]:
    """Begin, end, number of the marker; and of an allocation or a free what it is."""
    waiting = list(profile.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if "Allocation" in str(event.tag):
            yield event.start_time_ns, event.start_time_ns, -1, event.extra_fields
        elif event.name.startswith("#"):
            yield event.start_time_ns, event.end_time_ns, int(event.name[1:]), None


def _public(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}


def _tensor(one: Input, recipe: Recipe) -> torch.Tensor:
    dtype = getattr(torch, one.type_in(recipe))
    if dtype.is_floating_point:
        return torch.randn(one.shape, dtype=dtype, requires_grad=one.is_trained)
    if one.values is not None:
        return torch.tensor(one.values, dtype=dtype)
    return torch.randint(0, one.largest, one.shape).to(dtype)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _saved(loss: torch.Tensor) -> list[tuple[str, str, tuple[int, ...], str]]:
    """What the nodes of a graph save, without numbers of Python's, which are double or boolean and have no extent."""
    nodes, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            waiting += [following for following, _ in node.next_functions]
    saved = []
    for node in sorted(nodes, key=lambda one: one._sequence_nr()):
        for attribute in dir(node):
            name = attribute.removeprefix("_saved_")
            if attribute.startswith("_saved_") and name not in ON_HOST:
                for tensor in tree_leaves(getattr(node, attribute)):
                    if isinstance(tensor, torch.Tensor) and not _is_number(tensor):
                        saved.append((node.name(), name, tuple(tensor.shape), _name(tensor.dtype)))
    return saved


def _is_number(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 0 and tensor.dtype in (torch.float64, torch.int64, torch.bool)


def assert_same(program: Program, inputs: Sequence[Input], recipe: Recipe = "fp32", attention: Any = "flash") -> None:
    """Saved tensors, every allocation with what lives then, and gradients agree; call it within `cuda_rules`."""
    expected = run_torch(program, inputs, recipe)
    simulated = run_symbolic(program, inputs, recipe, attention)
    assert sorted(simulated.saved) == sorted(expected.saved)
    assert simulated.allocations == expected.allocations
    assert simulated.gradients == expected.gradients
    assert simulated.end == expected.end
