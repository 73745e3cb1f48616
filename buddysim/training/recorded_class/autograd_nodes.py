"""The nodes that PyTorch's autograd makes for one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import DTYPES, DType
from buddysim.training.networks.from_torch.step_recorder import Packed
from buddysim.training.recorded_class.forms import AutogradNode


class AutogradNodes:
    """The nodes behind an operator's results, back to its arguments."""

    def __init__(self, arguments: Sequence[torch.Tensor], before: Sequence[Any], roots: Sequence[Any]) -> None:
        self.inputs = {one: number for number, one in enumerate(before) if one is not None}
        leaves = {id(one): number for number, one in enumerate(arguments)}
        visited, waiting = set(), [one for one in roots if one is not None]
        while waiting:
            node = waiting.pop()
            if node is None or node in visited or node in self.inputs:
                continue
            if hasattr(node, "variable"):
                if id(node.variable) not in leaves:
                    raise BuddysimError("an operator trains what isn't its argument")
                self.inputs[node] = leaves[id(node.variable)]
                continue
            visited.add(node)
            waiting += [following for following, _ in node.next_functions]
        self.ordered = sorted(visited, key=lambda one: one._sequence_nr())
        self.numbers = {node: number for number, node in enumerate(self.ordered)}

    def nodes(self) -> list[AutogradNode]:
        """Return the nodes in the order in which they were made."""
        return [
            AutogradNode(
                node.name(),
                node,
                [
                    None
                    if one is None
                    else (True, self.inputs[one], 0)
                    if one in self.inputs
                    else (False, self.numbers[one], output)
                    for one, output in node.next_functions
                ],
                [(tuple(one.shape), _type(one.dtype)) for one in node._input_metadata],
            )
            for node in self.ordered
        ]

    def saved(self) -> list[tuple[int, str, Packed]]:
        """Return what the nodes save, in order: the node, the name, what autograd holds."""
        saved = []
        for node in self.ordered:
            for attribute in dir(node):
                if attribute.startswith("_raw_saved_"):
                    value = getattr(node, attribute)
                    data = [one.data for one in (value if isinstance(value, tuple) else (value,))]
                    name = attribute.removeprefix("_raw_saved_")
                    saved += [(self.numbers[node], name, one) for one in data if type(one) is Packed]
        saved.sort(key=lambda one: one[2].number)
        return saved


def _type(dtype: torch.dtype) -> DType:
    return DTYPES[str(dtype).removeprefix("torch.")]
