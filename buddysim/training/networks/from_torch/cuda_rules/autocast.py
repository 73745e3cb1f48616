"""CUDA's autocast on the CPU: every operator of CUDA's list casts as there, all others as if they weren't listed.

A kernel of the dispatch key AutocastCPU stands in for each one of PyTorch's. They run only where a script enables
autocast for the CPU, before autograd sees the call: so casts are operations of the graph, as on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any

import torch

from buddysim.training.networks.from_torch.cuda_rules.published_list import Policy, cuda_autocast_list

_KEY = "AutocastCPU"


class CudaAutocast:
    """Context in which autocast of the CPU follows CUDA's list, with its cache of cast weights."""

    def __init__(self) -> None:
        self._library: Any = None
        self._exit_autocast: Any = None
        #: Cast weights by the weight's address, and the weight, so that its address isn't used again.
        self._cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __enter__(self) -> CudaAutocast:
        self._library = torch.library.Library("aten", "IMPL")
        policies = cuda_autocast_list()
        for name, policy in policies.items():
            operator = _operator(name)
            if operator is not None:
                kernel = partial(self._cast_and_call, operator, _CASTS[policy])
                self._library.impl(name, kernel, _KEY)
        for name in _listed_for_cpu():
            if name not in policies:
                self._library.impl(name, torch.library.fallthrough_kernel, _KEY)
        self._watch_exits()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.clear_autocast_cache = self._exit_autocast
        self._cache.clear()
        self._library._destroy()

    def _watch_exits(self) -> None:
        """Clears the cache with PyTorch's own, which autocast does when its outermost context ends."""
        self._exit_autocast = clear = torch.clear_autocast_cache

        def cleared() -> None:
            self._cache.clear()
            clear()

        torch.clear_autocast_cache = cleared

    def _cast_and_call(self, operator: Any, cast: Cast, *args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))):
            positional, keywords = cast(self, operator, args, kwargs)
            return operator(*positional, **keywords)

    def cast(self, value: Any, dtype: torch.dtype) -> Any:
        """An argument with its tensors cast; those that autocast leaves alone (integers, double) unchanged."""
        if isinstance(value, list | tuple):
            return type(value)(self.cast(one, dtype) for one in value)
        if not _eligible(value) or value.dtype == dtype:
            return value
        if not self._cacheable(value, dtype):
            return value.to(dtype)
        if id(value) not in self._cache:
            self._cache[id(value)] = (value, value.to(dtype))
        return self._cache[id(value)][1]

    @staticmethod
    def _cacheable(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
        """Weights in single precision: leaves that want a gradient."""
        return (
            dtype == torch.get_autocast_dtype("cpu")
            and tensor.dtype == torch.float32
            and tensor.requires_grad
            and tensor.is_leaf
            and not tensor._is_view()
            and torch.is_autocast_cache_enabled()
        )


Arguments = tuple[Sequence[Any], dict[str, Any]]
Cast = Callable[[CudaAutocast, Any, Sequence[Any], dict[str, Any]], Arguments]


def _to(dtype: torch.dtype | None) -> Cast:
    """Casts all arguments to a type; None: autocast's."""

    def cast(autocast: CudaAutocast, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        target = dtype or torch.get_autocast_dtype("cpu")
        return autocast.cast(tuple(args), target), {name: autocast.cast(one, target) for name, one in kwargs.items()}

    return cast


def _set_dtype(autocast: CudaAutocast, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """Asks for a result in single precision where the caller asks for no type: the operator casts by itself."""
    position = next(n for n, argument in enumerate(operator._schema.arguments) if argument.name == "dtype")
    requested = args[position] if position < len(args) else kwargs.get("dtype")
    if requested is not None or not _eligible(args[0]):
        return args, kwargs
    return args[:position], {**kwargs, "dtype": torch.float32}


def _append_dtype(autocast: CudaAutocast, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """`norm` has its type in another overload, which the name's packet finds."""
    return args, {**kwargs, "dtype": torch.float32} if _eligible(args[0]) else kwargs


def _promote(autocast: CudaAutocast, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """Casts to the widest type of the arguments."""
    tensors = [one for one in torch.utils._pytree.tree_leaves((args, kwargs)) if _eligible(one)]
    wide = any(one.dtype == torch.float32 for one in tensors)
    return _to(torch.float32 if wide else None)(autocast, operator, args, kwargs)


_CASTS: dict[Policy, Cast] = {
    "lower_precision": _to(None),
    "fp32": _to(torch.float32),
    "fp32_set_dtype": _set_dtype,
    "fp32_append_dtype": _append_dtype,
    "promote": _promote,
}


def _eligible(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64


def _operator(name: str) -> Any:
    """What to call: the overload, or for `norm`, whose cast changes it, the packet; None if this build has none."""
    packet = getattr(torch.ops.aten, name.split(".")[0], None)
    if packet is None or cuda_autocast_list()[name] == "fp32_append_dtype":
        return packet
    return getattr(packet, name.partition(".")[2] or "default", None)


def _listed_for_cpu() -> list[str]:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(_KEY)
    return [name.removeprefix("aten::") for name in registered if name.startswith("aten::")]
