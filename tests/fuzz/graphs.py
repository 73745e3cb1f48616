"""A small operator graph with every operator that has a model of its kernels."""

from __future__ import annotations

from math import prod
from typing import Any

from buddysim.formats.operator_graph import OperandTensor, Operator, OperatorGraph, Storage

_BYTES = {"int64": 8}


def small_graph() -> OperatorGraph:
    """Return an iteration on tensors of some hundred elements."""
    maker = _Maker()
    data, filters, bias = maker.new("data", 2, 3, 8, 8), maker.new("filters", 4, 3, 3, 3), maker.new("bias", 4)
    out, slope = maker.new("out", 2, 4, 8, 8), maker.new("slope", 2, 4, 8, 8)
    maker.call("convolution", (data, filters, bias), (out,), stride=(1, 1), padding=(1, 1))
    scale = [maker.new(f"bn{number}", 4) for number in range(4)]
    maker.call("native_batch_norm", (out, *scale[:2]), (out, *scale[2:]))
    maker.call("relu", (out,), (out,))
    half, indices = maker.new("half", 2, 4, 4, 4), maker.new("indices", 2, 4, 4, 4, dtype="int64")
    window = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0)}
    maker.call("max_pool2d_with_indices", (out,), (half, indices), **window)
    rows, weight, products = maker.new("rows", 2, 64), maker.new("weight", 64, 8), maker.new("products", 2, 8)
    maker.call("mm", (rows, weight), (products,))
    maker.call("_log_softmax", (products,), (products,), dim=1)
    maker.call("cat", (products, products), (maker.new("both", 4, 8),), dim=0)
    table, numbers = maker.new("table", 16, 8), maker.new("numbers", 2, dtype="int64")
    maker.call("embedding", (table, numbers), (products,))
    maker.call("_log_softmax_backward_data", (products, products), (products,), dim=1)
    maker.call("max_pool2d_with_indices_backward", (half, out, indices), (slope,), **window)
    maker.call("avg_pool2d", (out,), (half,), **window)
    maker.call("avg_pool2d_backward", (half, out), (slope,), **window)
    maker.call("native_batch_norm_backward", (slope, out, *scale[1:]), (slope, scale[0], scale[1]))
    maker.call("convolution_backward", (slope, data, filters), (data, filters, bias), output_mask=(True, True, True))
    maker.call("_fused_sgd_", (filters, bias, filters, bias), (filters, bias))
    maker.call("einsum", (rows, weight), (products,))
    return OperatorGraph(tuple(maker.storages), tuple(maker.tensors), tuple(maker.operators), provenance={"made": "x"})


class _Maker:
    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self.tensors: list[OperandTensor] = []
        self.operators: list[Operator] = []

    def new(self, name: str, *shape: int, dtype: str = "float32") -> int:
        """Add a tensor with its own storage, and return its number."""
        size = prod(shape) * _BYTES.get(dtype, 4)
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.tensors.append(OperandTensor(len(self.storages), 0, shape, strides, dtype, size))
        self.storages.append(Storage(size, "weight" if len(self.storages) % 2 else "feature_map", name))
        return len(self.tensors) - 1

    def call(self, name: str, inputs: tuple[int, ...], outputs: tuple[int, ...], **arguments: Any) -> None:
        self.operators.append(
            Operator(f"aten.{name}.default", "forward", inputs=inputs, outputs=outputs, arguments=arguments)
        )
