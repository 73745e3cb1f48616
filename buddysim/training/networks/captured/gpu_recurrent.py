"""LSTMs as a GPU stores them: in cuDNN's reserve instead of the workspace of the CPU's library.

The reserve's content is assumed, as for the layer kind `lstm`: the four gates and the cell of each step, sample and
unit. cuDNN doesn't document its size (``cudnnGetRNNTempSpaceSizes``).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from buddysim.formats.operator_graph import OperandTensor, OperatorGraph

_LAYER = "mkldnn_rnn_layer"
_GATES = 4


def with_reserves(graph: OperatorGraph) -> OperatorGraph:
    """Return the graph with the workspace of each LSTM's layer as large as cuDNN's reserve."""
    storages, tensors = list(graph.storages), list(graph.tensors)
    for operator in graph.operators:
        if operator.short_name != _LAYER or len(operator.outputs) < 2 or len(operator.inputs) < 3:
            continue
        result, last = graph.tensors[operator.outputs[0]], operator.outputs[-1]
        workspace = graph.tensors[last]
        if workspace.dtype != "uint8":
            continue
        rows = graph.tensors[operator.inputs[2]].shape[0]
        units = rows + rows // _GATES  # gates and cell
        bytes_of_element = max(1, result.extent // prod(result.shape))
        size, doubled = (
            prod(shape[:-1]) * units * bytes_of_element for shape in (result.shape, result.doubled or result.shape)
        )
        storages[workspace.storage] = replace(storages[workspace.storage], bytes=size, doubled=doubled)
        for number, one in enumerate(tensors):
            if one.storage == workspace.storage:
                tensors[number] = OperandTensor(one.storage, 0, (size,), (1,), one.dtype, size, (doubled,))
    return replace(graph, storages=tuple(storages), tensors=tuple(tensors))
