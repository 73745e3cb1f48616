"""Records the forward pass of a PyTorch module as programs, one for each kind of module and of arguments.

The module runs without data, and above autograd each operator that it calls is noted, and when each value ends. Modules
of one structure that get arguments of the same shapes run once: their other calls return results of these shapes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.from_torch.below_autograd import Proceed, above_autograd
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory
from buddysim.training.networks.from_torch.without_data import is_on_host, tensors_in
from buddysim.training.recorded_class.forms import FunctionOperator
from buddysim.training.recorded_class.program import (
    CallStep,
    ForwardProgram,
    OperatorStep,
    Reference,
    Slot,
    Weight,
    mapped,
)
from buddysim.training.recorded_class.structure import Structures

#: Modules that have a forward pass of their own here.
OWN_FORWARD = (torch.nn.Linear,)


class _Frame:
    """A call of a module that runs."""

    def __init__(self, tracer: Tracer, module: torch.nn.Module, parent: _Frame | None) -> None:
        self.tracer, self.module, self.parent = tracer, module, parent
        self.program = ForwardProgram()
        self.known: dict[int, tuple[Any, int]] = {}
        self.captured: list[tuple[Any, Reference]] = []
        self.reusable = self.runs = True

    def slot(self, tensor: torch.Tensor) -> int:
        """Give a value a number, and note its end."""
        number, key = self.program.slots, id(tensor)
        self.program.slots += 1

        def ended(_: Any) -> None:
            if self.known.get(key, (None, -1))[1] == number:
                del self.known[key]
            if self.runs and self.program.steps:
                self.program.steps[-1].ends.append(number)

        self.known[key] = ref(tensor, ended), number
        return number

    def find(self, tensor: torch.Tensor) -> int | None:
        """Return the number of a value of this call."""
        known = self.known.get(id(tensor))
        return None if known is None else known[1]

    def reference(self, tensor: torch.Tensor) -> Reference:
        """Return where a value comes from: this call, the module's weights, or the caller.

        Raises
        ------
        BuddysimError
            a value that no operator of PyTorch's made
        """
        number = self.find(tensor)
        if number is not None:
            return Slot(number)
        path = self.tracer.structures.weights(self.module).get(id(tensor))
        if path is not None:
            return Weight(path)
        if self.parent is None:
            raise BuddysimError("values that no operator of PyTorch's own library returns aren't followed")
        outer = self.parent.reference(tensor)
        number = self.slot(tensor)
        self.captured.append((ref(tensor), outer))
        self.program.inputs.append(number)
        return Slot(number)


class _Reusable:
    """What a call has left for others of its kind.

    Attributes
    ----------
    structure, leaves : of the results, None for tensors, whose shapes are in `shapes`
    """

    def __init__(self, frame: _Frame, result: Any) -> None:
        self.program, self.captured = frame.program, [one for one, _ in frame.captured]
        leaves, self.structure = tree_flatten(result)
        self.leaves = [None if isinstance(one, torch.Tensor) else one for one in leaves]
        self.is_tensor = [isinstance(one, torch.Tensor) for one in leaves]
        self.shapes = [(tuple(one.shape), one.stride(), one.dtype) for one in leaves if isinstance(one, torch.Tensor)]


class Tracer:
    """Records calls of a module and of the modules within.

    Parameters
    ----------
    memory : where its tensors are
    casting_back : products that return the number format of what they get, autocast or not: those of bitsandbytes
    """

    def __init__(
        self, module: torch.nn.Module, memory: UntouchedMemory, casting_back: frozenset[int] = frozenset()
    ) -> None:
        self.memory, self.structures, self.casting_back = memory, Structures(module), casting_back
        self._is_host = is_on_host(memory)
        self._frame: _Frame | None = None
        self._reusable: dict[Any, _Reusable] = {}
        self._module = module

    def record(self, inputs: Mapping[str, torch.Tensor], select: Any) -> ForwardProgram:
        """Return what a call does that returns the tensor which `select` finds in the module's result."""
        frame = self._frame = _Frame(self, self._module, None)
        frame.program.inputs = [frame.slot(one) for one in inputs.values()]
        with self._calls_watched(), above_autograd(self._operator):
            selected = select(self._module(**inputs))
        frame.program.results = [frame.reference(selected)]
        self._frame, frame.runs = None, False
        return frame.program

    def _operator(self, operator: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        result = proceed(operator, args, kwargs)
        frame = self._frame
        if frame is None:
            return result
        inputs, results = list(tensors_in((args, kwargs))), list(tensors_in(result))
        if not results:  # a number: what follows may depend on it
            frame.reusable = False
            return result
        if all(map(self._is_host, inputs if inputs else results)):
            return result
        step = OperatorStep(
            self._referenced(args),
            self._referenced(kwargs),
            operator=operator,
            recorded=torch.is_grad_enabled(),
            cast=torch.is_autocast_enabled("cpu"),
        )
        frame.program.steps.append(step)
        own = {id(one) for one in inputs}
        step.results += [None if id(one) in own else frame.slot(one) for one in results]
        return result

    def _referenced(self, value: Any) -> Any:
        frame = self._frame
        assert frame is not None
        return mapped(
            value,
            lambda one: isinstance(one, torch.Tensor),
            lambda one: one if self._is_host(one) else frame.reference(one),
        )

    def _function(self, apply: Any, cls: Any, args: Any) -> Any:
        """A function with a backward pass that its author wrote."""
        frame, self._frame = self._frame, None
        result = apply(*args)
        self._frame = frame
        return self._operator(FunctionOperator(cls), args, {}, lambda *_: result)

    @contextmanager
    def _calls_watched(self) -> Iterator[None]:
        original = torch.nn.Module.__call__

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self._called(original, module, args, kwargs)

        def apply(cls: Any, *args: Any) -> Any:
            return self._function(functools.partial(applied, cls), cls, args)

        applied = torch.autograd.Function.apply.__func__
        torch.nn.Module.__call__ = call
        torch.autograd.Function.apply = classmethod(apply)
        try:
            yield
        finally:
            torch.autograd.Function.apply = classmethod(applied)
            torch.nn.Module.__call__ = original

    def _called(self, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        outer = self._frame
        assert outer is not None
        path = self.structures.paths(outer.module).get(id(module))
        if path is None or module is outer.module:
            return original(module, *args, **kwargs)
        step = CallStep(self._referenced(args), self._referenced(kwargs), path=path)
        self._frame = None
        key = None if type(module) in OWN_FORWARD else self._key(module, args, kwargs)
        known = self._reusable.get(key)
        if known is not None and all(one() is not None for one in known.captured):
            result = self._again(known, step, outer, args, kwargs)
            self._frame = outer
        else:
            self._frame = outer
            result = self._first(original, module, step, key, args, kwargs)
        outer.program.steps.append(step)
        mine = {id(one) for one in tensors_in((args, kwargs))}
        for one in tensors_in(result):
            known_as = outer.find(one)
            step.results.append(None if id(one) in mine else outer.slot(one) if known_as is None else known_as)
        return result

    def _first(self, original: Any, module: Any, step: CallStep, key: Any, args: Any, kwargs: Any) -> Any:
        outer = self._frame
        assert outer is not None
        frame = self._frame = _Frame(self, module, outer)
        frame.program.inputs = [frame.slot(one) for one in tensors_in((args, kwargs)) if not self._is_host(one)]
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._frame = outer
        if key is None:
            if id(module) in self.casting_back:
                self._frame = None
                result = result.to(args[0].dtype)
                self._frame = outer
            return result
        frame.program.results = [frame.reference(one) for one in tensors_in(result)]
        frame.runs = False
        step.program, step.captured = frame.program, [one for _, one in frame.captured]
        inputs = {id(one) for one in tensors_in((args, kwargs))}
        known = any(
            getattr(self.memory.find(one), "known", True) for one in tensors_in(result) if id(one) not in inputs
        )
        if not frame.reusable or known:
            outer.reusable = False if not frame.reusable else outer.reusable
        else:
            self._reusable[key] = _Reusable(frame, result)
        return result

    def _again(self, known: _Reusable, step: CallStep, outer: _Frame, args: Any, kwargs: Any) -> Any:
        step.program = known.program
        step.captured = [outer.reference(one()) for one in known.captured]
        inputs = [one for one in tensors_in((args, kwargs)) if not self._is_host(one)]
        by_slot = dict(zip(known.program.inputs, inputs, strict=False))
        tensors = []
        for reference, (shape, strides, dtype) in zip(known.program.results, known.shapes, strict=True):
            if isinstance(reference, Slot) and reference.number in by_slot:
                tensors.append(by_slot[reference.number])
            elif isinstance(reference, Weight):
                raise BuddysimError("a module that returns a weight is called twice")
            else:
                tensors.append(self.memory.allocate(shape, strides, dtype))
        remaining = iter(tensors)
        leaves = [
            next(remaining) if is_tensor else one for is_tensor, one in zip(known.is_tensor, known.leaves, strict=True)
        ]
        return tree_unflatten(leaves, known.structure)

    def _key(self, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        numbers: dict[int, int] = {}

        def described(one: Any) -> Any:
            if isinstance(one, torch.Tensor):
                number = numbers.setdefault(id(one), len(numbers))
                return tuple(one.shape), one.stride(), one.dtype, number, self._is_host(one) and one.item()
            try:
                hash(one)
            except TypeError:
                return id(one)
            return type(one), one

        leaves, structure = tree_flatten((args, kwargs))
        return (
            self.structures.of(module),
            str(structure),
            tuple(map(described, leaves)),
            torch.is_grad_enabled(),
            torch.is_autocast_enabled("cpu"),
        )
