"""What a GPU stores otherwise than the CPU that a script was captured on.

Dropout's noise takes a byte an element: CUDA's kernel draws, scales and multiplies at once and saves a mask. An
optimizer's step launches each of its operators once for all weights (foreach, the default there), not weight by weight.
"""

from __future__ import annotations

from math import prod

from buddysim.formats.operator_graph import OperatorGraph

_NOISE = "bernoulli_"


def noise_storages(graph: OperatorGraph) -> dict[int, int]:
    """Return the storages of dropout's noise, and the bytes of an element there."""
    noise: dict[int, int] = {}
    for operator in graph.operators:
        if operator.short_name == _NOISE:
            for number in operator.outputs:
                tensor = graph.tensors[number]
                elements = prod(tensor.shape)
                if elements:
                    noise[tensor.storage] = max(1, tensor.extent // elements)
    return noise


def launched_together(graph: OperatorGraph) -> dict[int, tuple[int, ...]]:
    """Return the operators of each update that a GPU launches as one: by the first of them, those of its name.

    Operators on single numbers alone, such as counters of steps, are the host's and in none.
    """
    together: dict[int, tuple[int, ...]] = {}
    by_name: dict[str, list[int]] = {}
    for number, operator in enumerate(graph.operators):
        if operator.kind != "compute":
            continue
        if operator.phase != "optimizer":
            together |= {group[0]: tuple(group) for group in by_name.values()}
            by_name = {}
        elif any(prod(graph.tensors[one].shape) > 1 for one in (*operator.inputs, *operator.outputs)):
            by_name.setdefault(operator.name, []).append(number)
    return together | {group[0]: tuple(group) for group in by_name.values()}
