"""PyTorch without its arithmetic: operators return tensors of the right shape whose memory nobody writes.

A module runs on plain tensors of the CPU: autograd, autocast and the module's own control flow are the real ones. What
would be computed is left out, so no memory is touched: the pages of a new tensor cost nothing until they are written.
Small tensors whose values are known, such as position numbers and masks, are computed, as modules ask for their values.

PyTorch's own fake tensors would do the same but for one thing: libraries ask for them and take other paths then.
`transformers` builds a mask for fake tensors that it leaves out for real ones.
"""

from __future__ import annotations

import weakref
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

aten = torch.ops.aten

#: Elements up to which a tensor is computed where its values are known.
MAX_COMPUTED = 1 << 22

#: Operators that return a part of their input, though their schemas don't say so.
_VIEWS = (aten._unsafe_view, aten.unsafe_split, aten.unsafe_split_with_sizes, aten.set_, aten.resize_)


class WithoutData:
    """A handler for `below_autograd` that leaves out arithmetic, but for small tensors with known values.

    Parameters
    ----------
    signatures : by operator: what allocates its results; PyTorch's own description for all others
    """

    def __init__(self, signatures: Mapping[Any, Callable[..., Any]]) -> None:
        self.signatures = signatures
        self._shapes = FakeTensorMode()
        self._unknown: dict[int, Any] = {}

    def forget(self, tensor: torch.Tensor) -> None:
        """Takes a tensor's values for unknown from now on."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._unknown:
            self._unknown[key] = weakref.ref(storage, lambda _: self._unknown.pop(key))

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's values are known."""
        return tensor.untyped_storage()._cdata not in self._unknown

    def __call__(self, func: Any, args: Any, kwargs: Any, proceed: Proceed) -> Any:
        """Return the results of an operator."""
        if func.is_view or func.overloadpacket in _VIEWS:
            return proceed(func, args, kwargs)
        if func in self.signatures:
            results = self.signatures[func](*args, **kwargs)
            for one in tensors_in(results):
                self.forget(one)
            return results if len(results) > 1 else results[0]
        known = all(self.knows(one) for one in tensors_in((args, kwargs)))
        try:
            result = self._shaped(func, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            if known:
                return proceed(func, args, kwargs)
            raise BuddysimError(f"{func} depends on values that only a real run has") from None
        if known and sum(one.numel() for one in tensors_in(result)) <= MAX_COMPUTED:
            return proceed(func, args, kwargs)
        for one in changed_by(func, args, kwargs):
            self.forget(one)
        return self._allocated(func, args, kwargs, result)

    def _shaped(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator returns, as fake tensors."""

        def shape_of(tensor: torch.Tensor) -> torch.Tensor:
            like = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
            return FakeTensor(self._shapes, like, tensor.device)

        args, kwargs = tree_map_only(torch.Tensor, shape_of, (args, kwargs))
        with self._shapes:
            return func(*args, **kwargs)

    def _allocated(self, func: Any, args: Any, kwargs: Any, shaped: Any) -> Any:
        """The result of an operator with memory of its own; what it changes in place is its own result."""
        changed = iter(changed_by(func, args, kwargs))
        if any(one.alias_info is not None for one in func._schema.returns):
            return tree_map_only(torch.Tensor, lambda _: next(changed), shaped)

        def allocated(one: torch.Tensor) -> torch.Tensor:
            made = torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="cpu")
            self.forget(made)
            return made

        return tree_map_only(torch.Tensor, allocated, shaped)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of arguments or results, lists and all."""
    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


def changed_by(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """The tensors that an operator changes in place."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from tensors_in(kwargs.get(argument.name, args[position] if position < len(args) else None))
