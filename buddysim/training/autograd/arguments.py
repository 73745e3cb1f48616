"""Tensors among the arguments of a module, and a node of the graph before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.tensor import Tensor


def with_gradient(values: Any) -> Iterator[Tensor]:
    """Tensors that need gradients, in the order of `replaced`."""
    if isinstance(values, Tensor):
        if values.records:
            yield values
    elif isinstance(values, tuple | list):
        for one in values:
            yield from with_gradient(one)
    elif isinstance(values, dict):
        yield from with_gradient(list(values.values()))


def replaced(
    args: tuple[Any, ...], kwargs: dict[str, Any], function: Callable[[Tensor], Tensor]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with other tensors."""
    return tuple(_mapped(one, function) for one in args), {name: _mapped(one, function) for name, one in kwargs.items()}


def _mapped(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The same tuples, lists and dictionaries with other tensors."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple | list):
        return type(value)([_mapped(one, function) for one in value])
    if isinstance(value, dict):
        return {name: _mapped(one, function) for name, one in value.items()}
    return value


class PostBackwardNode(GraphNode):
    """The node before a module's inputs: when their gradients are there, the module's backward pass is done."""

    __slots__ = ("callback", "name")

    def __init__(self, name: str, callback: Callable[[], None], tensors: list[Tensor]) -> None:
        super().__init__(tensors[0].tape, tensors)
        self.name, self.callback = name, callback  # type: ignore[misc]

    def run(self, gradients: list[Tensor | None]) -> Gradients:
        self.callback()
        return gradients


def behind(name: str, callback: Callable[[], None], tensors: list[Tensor]) -> list[Tensor]:
    """Views of tensors behind a node that calls something when their gradients are there.

    Parameters
    ----------
    name : of the node, PyTorch's
    """
    node, views = PostBackwardNode(name, callback, tensors), []
    for one in tensors:
        view = Tensor(one.shape, one.strides, one.offset, one.dtype, one.storage, "view")
        view.is_view = True
        views.append(node.returns(view))
    return views
