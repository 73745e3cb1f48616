"""PyTorch without its arithmetic: operators return tensors of the right shape whose memory nobody writes.

A module runs on plain tensors of the CPU: autograd, autocast and the module's own control flow are the real ones. What
would be computed is left out. Small tensors whose values are known, such as position numbers and masks, are computed,
as modules ask for their values.

PyTorch's own fake tensors would do the same but for one thing: libraries ask for them and take other paths then.
`transformers` builds a mask for fake tensors that it leaves out for real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._pytree import tree_leaves, tree_map_only

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.from_torch.below_autograd import Proceed
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory

aten = torch.ops.aten

#: Elements up to which a tensor is computed where its values are known.
MAX_COMPUTED = 1 << 22

#: Operators that return a part of their input, though their schemas don't say so.
_VIEWS = (aten._unsafe_view, aten.unsafe_split, aten.unsafe_split_with_sizes)


class WithoutData:
    """A handler for `below_autograd` that leaves out arithmetic, but for small tensors with known values.

    Parameters
    ----------
    memory : where results are allocated
    signatures : by operator: the results that it allocates; PyTorch's own description for all others
    """

    def __init__(self, memory: UntouchedMemory, signatures: Mapping[Any, Callable[..., Any]]) -> None:
        self.memory, self.signatures = memory, signatures
        self._shapes = FakeTensorMode()

    def __call__(self, func: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        """Return the results of an operator."""
        if func is aten.lift_fresh.default:
            return self.memory.copied(args[0]) if args[0].numel() > 1 else args[0]
        if is_view(func):
            return proceed(func, args, kwargs)
        inputs = list(tensors_in((args, kwargs)))
        if inputs and all(map(is_on_host(self.memory), inputs)):
            return proceed(func, args, kwargs)
        if func in self.signatures:
            results = tree_map_only(torch.Tensor, self._signed, self.signatures[func](*args, **kwargs))
            return results if len(results) > 1 else results[0]
        known = all(map(self._knows, inputs))
        try:
            shaped = self._shaped(func, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            if known:
                return self._computed(proceed(func, args, kwargs), inputs)
            raise BuddysimError(f"{func} depends on values that only a real run has") from None
        if known and sum(one.numel() for one in tensors_in(shaped)) <= MAX_COMPUTED:
            return self._computed(proceed(func, args, kwargs), inputs)
        changed = list(changed_by(func, args, kwargs))
        for one in changed:
            self._forget(one)
        if any(one.alias_info is not None for one in func._schema.returns):
            remaining = iter(changed)
            return tree_map_only(torch.Tensor, lambda _: next(remaining), shaped)
        return tree_map_only(torch.Tensor, self._allocated, shaped)

    def _knows(self, tensor: torch.Tensor) -> bool:
        block = self.memory.find(tensor)
        return block is None or block.known

    def _forget(self, tensor: torch.Tensor) -> None:
        block = self.memory.find(tensor)
        if block is not None:
            block.known = False

    def _shaped(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator returns, as fake tensors."""

        def shape_of(tensor: torch.Tensor) -> torch.Tensor:
            like = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
            return FakeTensor(self._shapes, like, tensor.device)

        args, kwargs = tree_map_only(torch.Tensor, shape_of, (args, kwargs))
        with self._shapes:
            return func(*args, **kwargs)

    def _allocated(self, shaped: torch.Tensor, size: int = 0) -> torch.Tensor:
        return self.memory.allocate(tuple(shaped.shape), tuple(shaped.stride()), shaped.dtype, size=size)

    def _signed(self, result: torch.Tensor) -> torch.Tensor:
        """A result of a signature, which may be a part of its storage."""
        if not result.dim() and result.dtype == torch.int64:
            return result  # seed and offset of the generator, which CUDA's attention has on the host
        return self._allocated(result, result.untyped_storage().nbytes())

    def _computed(self, results: Any, inputs: list[torch.Tensor]) -> Any:
        """What PyTorch computed, in memory of this kind; what it changed in place is there already."""
        own = {id(one) for one in inputs}
        return tree_map_only(torch.Tensor, lambda one: one if id(one) in own else self.memory.copied(one), results)


def is_view(func: Any) -> bool:
    """Whether an operator computes nothing, but returns a part of its input or gives it another shape."""
    return bool(func.is_view) or func.overloadpacket in _VIEWS or torch.Tag.inplace_view in func.tags


def is_on_host(memory: UntouchedMemory) -> Callable[[torch.Tensor], bool]:
    """Whether a GPU's host would have a tensor: a number that a script made a tensor of, or what follows from such."""
    return lambda tensor: tensor.numel() == 1 and memory.find(tensor) is None


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of arguments or results, lists and all."""
    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


def changed_by(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """The tensors that an operator changes in place."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from tensors_in(kwargs.get(argument.name, args[position] if position < len(args) else None))
