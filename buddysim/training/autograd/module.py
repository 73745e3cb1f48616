"""Modules and parameters, named as in a state dict; a module's calls are scopes of the tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape, contiguous_strides
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor


class Parameter(Tensor):
    """A weight: a leaf that needs a gradient.

    Parameters
    ----------
    dtype : the tape's default if not given
    requires_grad : false for a frozen weight
    """

    __slots__ = ()

    def __init__(self, shape: Shape, dtype: DType | None = None, requires_grad: bool = True) -> None:
        tape = active_tape()
        made = tape.empty(shape, dtype or tape.default_dtype, "parameter", kind="parameter")
        super().__init__(shape, contiguous_strides(shape), 0, made.dtype, made.storage, "parameter")
        self.requires_grad = requires_grad


class ModuleHooks:
    """What happens around the forward pass of a module; the scope is the module's."""

    def before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that the module is called with."""
        return args, kwargs

    def after_forward(self, output: Any) -> Any:
        """Return what the module's caller gets."""
        return output


class Module:
    """A part of a model: attributes that are parameters, buffers or modules, and a `forward`.

    Attributes that are lists of modules are named as `torch.nn.ModuleList` names them.
    """

    _hooks: tuple[ModuleHooks, ...] = ()

    def __init__(self) -> None:
        self._path: str | None = None

    @property
    def path(self) -> str:
        """Its path in the model; empty before the model is named, and of the model itself."""
        return self._path or ""

    def add_hooks(self, hooks: ModuleHooks) -> None:
        """Call hooks around every forward pass: the first that are added outermost."""
        self._hooks = (*self._hooks, hooks)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._path is None:
            self.name_scopes()
        tape = active_tape()
        before, tape.scope = tape.scope, self.path
        try:
            for hooks in self._hooks:
                args, kwargs = hooks.before_forward(args, kwargs)
            output = self.forward(*args, **kwargs)
            for hooks in reversed(self._hooks):
                output = hooks.after_forward(output)
            return output
        finally:
            tape.scope = before

    def name_scopes(self, prefix: str = "") -> None:
        """Name this module and those within, as the root of a model."""
        for path, module in self.named_modules(prefix):
            if module._path is None or prefix:
                module._path = path
        for path, parameter in self.named_parameters(prefix):
            parameter.storage.record.label = path

    def children(self) -> Iterator[tuple[str, Module]]:
        """Modules directly within, by name."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, list):
                for number, one in enumerate(value):
                    if isinstance(one, Module):
                        yield f"{name}.{number}", one

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all within, by path."""
        yield prefix, self
        for name, module in self.children():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self, prefix: str = "", tied: bool = False) -> Iterator[tuple[str, Parameter]]:
        """Parameters by their path; one that has several by the first alone, unless `tied`."""
        seen: set[int] = set()
        for path, module in self.named_modules(prefix):
            for name, value in vars(module).items():
                if isinstance(value, Parameter) and (tied or id(value) not in seen):
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def parameters(self) -> list[Parameter]:
        """Each parameter once."""
        return [one for _, one in self.named_parameters()]

    def zero_grad(self) -> None:
        """Drop the gradients (``set_to_none=True``)."""
        for one in self.parameters():
            one.grad = None
