"""Functions that see and may replace every operator of PyTorch, below autograd or above it.

PyTorch's own means for that, a ``TorchDispatchMode``, changes what it observes: while a mode is active, autograd takes
every tensor for a subclass and adds gradients out of place, and attention adds its mask out of place. So this takes
kernels of a dispatch key that no real tensor of these networks uses: Negative, which marks lazily negated imaginary
parts. They run for all tensors of the thread while a context is active. Above autograd and autocast it takes the key
PreDispatch, where operators are still those that a script calls: `linear`, not a transpose and a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch

#: What a handler calls to let the operator run: with the operator, its arguments and keywords.
Proceed = Callable[[Any, Any, Any], Any]
#: From an operator, its arguments, its keywords and what runs it to its result.
Handler = Callable[[Any, Any, Any, Proceed], Any]


class _Handlers:
    """Handlers at a dispatch key, and PyTorch's library that has their kernels while there are any."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.handlers: list[Handler] = []
        self.library: Any = None
        self.dispatch_key = getattr(torch._C.DispatchKey, key)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Context in which kernels are there; entered within another one, it does nothing."""
        outermost = self.library is None
        if outermost:
            self.library = self._installed()
        try:
            yield
        finally:
            if outermost:
                self.library._destroy()
                self.library = None

    @contextmanager
    def added(self, handler: Handler) -> Iterator[None]:
        with self.installed():
            self.handlers.append(handler)
            torch._C._dispatch_tls_set_dispatch_key_included(self.dispatch_key, True)
            try:
                yield
            finally:
                self.handlers.remove(handler)
                torch._C._dispatch_tls_set_dispatch_key_included(self.dispatch_key, bool(self.handlers))

    def _installed(self) -> Any:
        library = torch.library.Library("aten", "IMPL")
        for name in torch._C._dispatch_get_all_op_names():
            operator = _operator(name)
            if operator is not None:
                library.impl(name, partial(self._handled, operator), self.key)
        return library

    def _handled(self, operator: Any, *args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(self.dispatch_key)):
            if torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python):
                return operator(*args, **kwargs)  # within `torch.tensor`: PyTorch hides it from modes too
            return self._call(len(self.handlers) - 1, operator, args, kwargs)

    def _call(self, level: int, operator: Any, args: Any, kwargs: Any) -> Any:
        if level < 0:
            return operator(*args, **kwargs)
        return self.handlers[level](operator, args, kwargs, partial(self._call, level - 1))


_BELOW, _ABOVE = _Handlers("Negative"), _Handlers("PreDispatch")


def handlers_installed() -> AbstractContextManager[None]:
    """Context within which `below_autograd` begins at once; else each one takes a quarter of a second."""
    return _BELOW.installed()


def below_autograd(handler: Handler) -> AbstractContextManager[None]:
    """Context in which a handler is called in place of each operator; the one entered last is called first.

    What a handler itself calls isn't seen by handlers. Parameters can't be made within.
    """
    return _BELOW.added(handler)


def above_autograd(handler: Handler) -> AbstractContextManager[None]:
    """Context in which a handler is called in place of each operator that a script calls, before autocast."""
    return _ABOVE.added(handler)


def _operator(name: str) -> Any:
    """An operator of the ``aten`` library; None for others, and for variants that write into given results."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    if namespace != "aten" or overload == "out" or overload.endswith("_out"):
        return None
    return getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
