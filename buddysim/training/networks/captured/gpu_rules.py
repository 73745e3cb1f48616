"""What a GPU stores otherwise than the CPU that a script was captured on.

Dropout's noise takes a byte an element: CUDA's kernel draws, scales and multiplies at once and saves a mask.
"""

from __future__ import annotations

from buddysim.formats.operator_graph import OperatorGraph

_NOISE = "bernoulli_"


def noise_storages(graph: OperatorGraph) -> dict[int, int]:
    """Return the storages of dropout's noise, and the bytes of an element there."""
    noise: dict[int, int] = {}
    for operator in graph.operators:
        if operator.short_name == _NOISE:
            for number in operator.outputs:
                tensor = graph.tensors[number]
                elements = 1
                for extent in tensor.shape:
                    elements *= extent
                if elements:
                    noise[tensor.storage] = max(1, tensor.extent // elements)
    return noise
