"""The same small program in PyTorch and in the symbolic one: what autograd saves, and what lives after each allocation.

A program is a function of a namespace and of tensors, and returns a scalar. The namespace has PyTorch's functions and
types, or the package's, under the same names.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from buddysim.training.autograd import Autocast, Tape, Tensor, functional
from buddysim.training.autograd.dtypes import DTYPES, bfloat16, bool8
from buddysim.training.autograd.module import Parameter
from buddysim.training.networks.from_torch.cuda_rules import cuda_rules

Recipe = Literal["fp32", "bf16", "autocast"]
Program = Callable[..., Any]

#: Saved tensors that live on the host of a GPU.
ON_HOST = ("philox_seed", "philox_offset")


@dataclass(frozen=True)
class Input:
    """A tensor that a program takes: a leaf, of the recipe's type unless it has one of its own."""

    shape: tuple[int, ...]
    dtype: str | None = None
    requires_grad: bool = True
    largest: int = 2

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
    allocations : bytes of each allocation, and what lives then
    end : bytes that live at the end
    gradients : shape, strides and type
    """

    saved: list[tuple[str, str, tuple[int, ...], str]] = field(default_factory=list)
    allocations: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0
    gradients: list[tuple[Any, ...]] = field(default_factory=list)


def run_symbolic(program: Program, inputs: Sequence[Input], recipe: Recipe = "fp32", attention: Any = "flash") -> Step:
    """A step of the symbolic PyTorch, as a dispatch mode would see it."""
    namespace = SimpleNamespace(**{**vars(functional), **DTYPES, "bool": bool8})
    namespace.scaled_dot_product_attention = partial(functional.scaled_dot_product_attention, kernel=attention)
    step = Step()
    with Tape(watched=True) as tape:
        tensors: list[Tensor] = []
        for one in inputs:
            dtype = DTYPES[one.type_in(recipe)]
            leaf = Parameter(one.shape, dtype) if one.is_trained else tape.input(one.shape, dtype)
            tensors.append(leaf)
        with tape.in_phase("forward"), Autocast(tape, bfloat16) if recipe == "autocast" else nullcontext():
            loss = program(namespace, *tensors)
        step.saved = [(one.node, one.name, one.shape, one.dtype.name) for one in tape.saved]
        loss.backward()
        live = list(tape.live_bytes())
        for event, level in zip(tape.events, live, strict=True):
            if type(event).__name__ == "Allocation" and tape.storages[event.storage].phase != "setup" and event.bytes:
                step.allocations.append((event.bytes, level))
        step.end = live[-1]
        step.gradients = [
            (one.grad.shape, one.grad.strides, one.grad.dtype.name) if one.grad is not None else ()
            for one, spec in zip(tensors, inputs, strict=True)
            if spec.is_trained
        ]
    return step


class _Watch(TorchDispatchMode):
    """Live bytes of storages, by weak references."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.allocations: list[tuple[int, int]] = []
        self.seen: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and not _is_on_host(func, leaf):
                self.note(leaf)
        return result

    def note(self, tensor: torch.Tensor, quietly: bool = False) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen or size == 0:
            return
        self.live += size
        if not quietly:
            self.allocations.append((size, self.live))

        def freed(_: object) -> None:
            del self.seen[key]
            self.live -= size

        self.seen[key] = weakref.ref(storage, freed)


def _is_on_host(func: Any, leaf: torch.Tensor) -> bool:
    return "efficient_attention" in func.overloadpacket.__name__ and leaf.dtype == torch.int64


def run_torch(
    program: Program, inputs: Sequence[Input], recipe: Recipe = "fp32", attention: Any = "flash", cuda: bool = True
) -> Step:
    """A step of PyTorch by CUDA's rules, on real tensors."""
    namespace = SimpleNamespace(**{**_public(torch), **_public(torch.nn.functional)})
    torch.manual_seed(0)
    tensors = [_tensor(one, recipe) for one in inputs]
    step, watch = Step(), _Watch()
    for tensor in tensors:
        watch.note(tensor, quietly=True)
    autocast = torch.autocast("cpu", torch.bfloat16) if recipe == "autocast" else nullcontext()
    with cuda_rules(attention) if cuda else nullcontext(), watch:
        with autocast:
            loss = program(namespace, *tensors)
        step.saved = _saved(loss, watch)
        loss.backward()
        step.end = watch.live
    step.allocations = watch.allocations
    step.gradients = [
        (tuple(one.grad.shape), one.grad.stride(), _name(one.grad.dtype)) if one.grad is not None else ()
        for one, spec in zip(tensors, inputs, strict=True)
        if spec.is_trained
    ]
    return step


def _public(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}


def _tensor(one: Input, recipe: Recipe) -> torch.Tensor:
    dtype = getattr(torch, one.type_in(recipe))
    if dtype.is_floating_point:
        return torch.randn(one.shape, dtype=dtype, requires_grad=one.is_trained)
    return torch.randint(0, one.largest, one.shape).to(dtype)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _saved(loss: torch.Tensor, watch: _Watch) -> list[tuple[str, str, tuple[int, ...], str]]:
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
                    if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata in watch.seen:
                        saved.append((node.name(), name, tuple(tensor.shape), _name(tensor.dtype)))
    return saved


def assert_same(program: Program, inputs: Sequence[Input], recipe: Recipe = "fp32", attention: Any = "flash") -> None:
    """Saved tensors, every allocation with what lives then, and gradients agree."""
    expected = run_torch(program, inputs, recipe, attention)
    simulated = run_symbolic(program, inputs, recipe, attention)
    assert sorted(simulated.saved) == sorted(expected.saved)
    assert simulated.allocations == expected.allocations
    assert simulated.gradients == expected.gradients
    assert simulated.end == expected.end
