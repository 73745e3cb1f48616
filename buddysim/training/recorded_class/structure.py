"""What tells modules apart that compute different things: weights, switches, and the structure of modules within."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import torch

_Simple = str | int | float | bool | None | torch.dtype


class Structures:
    """Of a module and all within.

    Two modules are of one structure where their classes, weights and simple attributes are equal, but for numbers that
    are their position in a list. What a configuration lists by position counts as an attribute.
    """

    def __init__(self, root: torch.nn.Module) -> None:
        self._root = root
        self._numbers: dict[Hashable, int] = {}
        self._of: dict[int, int] = {}
        self._paths: dict[int, Mapping[int, str]] = {}
        self._weights: dict[int, Mapping[int, str]] = {}
        self._positions: dict[int, frozenset[int]] = {}
        for path, module in root.named_modules():
            self._positions[id(module)] = frozenset(int(part) for part in path.split(".") if part.isdigit())

    def of(self, module: torch.nn.Module) -> int:
        """Return a number that modules of one structure share."""
        number = self._of.get(id(module))
        if number is None:
            described = self._described(module)
            number = self._of[id(module)] = self._numbers.setdefault(described, len(self._numbers))
        return number

    def paths(self, module: torch.nn.Module) -> Mapping[int, str]:
        """Paths of the modules within one, by their identity."""
        if id(module) not in self._paths:
            self._paths[id(module)] = {id(one): path for path, one in module.named_modules()}
        return self._paths[id(module)]

    def weights(self, module: torch.nn.Module) -> Mapping[int, str]:
        """Paths of the parameters and buffers within a module, by their identity."""
        if id(module) not in self._weights:
            named = [*module.named_parameters(), *module.named_buffers()]
            self._weights[id(module)] = {id(one): path for path, one in named}
        return self._weights[id(module)]

    def _described(self, module: torch.nn.Module) -> Hashable:
        positions = self._positions.get(id(module), frozenset())
        tensors = [*module._parameters.items(), *module._buffers.items()]
        return (
            type(module),
            module.training,
            tuple((name, None if one is None else _shape(one)) for name, one in tensors),
            tuple((name, None if one is None else self.of(one)) for name, one in module._modules.items()),
            tuple(_attributes(module, positions)),
        )


def _attributes(module: torch.nn.Module, positions: frozenset[int]) -> list[Hashable]:
    described: list[Hashable] = []
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, torch.Tensor):
            continue
        if isinstance(value, int) and not isinstance(value, bool) and value in positions:
            described.append((name, "position"))
        elif isinstance(value, _Simple):
            described.append((name, value))
        elif isinstance(value, tuple | list):
            described.append((name, repr(value)))
        else:
            described.append((name, type(value), *_listed(value, positions)))
    return described


def _listed(value: Any, positions: frozenset[int]) -> list[Hashable]:
    """What a configuration lists for a layer of these positions."""
    attributes = getattr(value, "__dict__", {})
    return [
        getattr(value, "__qualname__", ""),
        *(
            (name, repr(one[position]))
            for name, one in attributes.items()
            if isinstance(one, list | tuple)
            for position in sorted(positions)
            if position < len(one)
        ),
    ]


def _shape(tensor: torch.Tensor) -> Hashable:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad
