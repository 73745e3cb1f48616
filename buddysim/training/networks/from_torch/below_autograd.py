"""Functions that see and may replace every operator of PyTorch, below autograd.

PyTorch's own means for that, a ``TorchDispatchMode``, changes what it observes: while a mode is active, autograd takes
every tensor for a subclass and adds gradients out of place, and attention adds its mask out of place. So this takes
kernels of a dispatch key that no real tensor of these networks uses: Negative, which marks lazily negated imaginary
parts. They run for all tensors of the thread while a context is active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

_KEY = torch._C.DispatchKey.Negative
_NAME = "Negative"

#: What a handler calls to let the operator run: with the operator, its arguments and keywords.
Proceed = Callable[[Any, Any, Any], Any]
#: From an operator, its arguments, its keywords and what runs it to its result.
Handler = Callable[[Any, Any, Any, Proceed], Any]

_HANDLERS: list[Handler] = []
_LIBRARIES: list[Any] = []


@contextmanager
def handlers_installed() -> Iterator[None]:
    """Context within which `below_autograd` begins at once; else each one takes a quarter of a second."""
    outermost = not _LIBRARIES
    if outermost:
        _LIBRARIES.append(_installed())
    try:
        yield
    finally:
        if outermost:
            _LIBRARIES.pop()._destroy()


@contextmanager
def below_autograd(handler: Handler) -> Iterator[None]:
    """Context in which a handler is called in place of each operator; the one entered last is called first.

    What a handler itself calls isn't seen by handlers. Parameters can't be made within.
    """
    with handlers_installed():
        _HANDLERS.append(handler)
        torch._C._dispatch_tls_set_dispatch_key_included(_KEY, True)
        try:
            yield
        finally:
            _HANDLERS.remove(handler)
            torch._C._dispatch_tls_set_dispatch_key_included(_KEY, bool(_HANDLERS))


def _installed() -> Any:
    library = torch.library.Library("aten", "IMPL")
    for name in torch._C._dispatch_get_all_op_names():
        operator = _operator(name)
        if operator is not None:
            library.impl(name, partial(_handled, operator), _NAME)
    return library


def _operator(name: str) -> Any:
    """An operator of the ``aten`` library; None for others, and for variants that write into given results."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    if namespace != "aten" or overload == "out" or overload.endswith("_out"):
        return None
    return getattr(getattr(torch.ops.aten, base, None), overload or "default", None)


def _handled(operator: Any, *args: Any, **kwargs: Any) -> Any:
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_KEY)):
        if torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python):
            return operator(*args, **kwargs)  # within `torch.tensor`: PyTorch hides it from modes too
        return _call(len(_HANDLERS) - 1, operator, args, kwargs)


def _call(level: int, operator: Any, args: Any, kwargs: Any) -> Any:
    if level < 0:
        return operator(*args, **kwargs)
    return _HANDLERS[level](operator, args, kwargs, partial(_call, level - 1))
