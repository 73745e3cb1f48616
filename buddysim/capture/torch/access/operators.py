"""Access models of the kernels that PyTorch launches on a GPU for ATen operators.

An operator that no model matches is modelled as one pass over its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buddysim.capture.torch.access.convolution import Convolution
from buddysim.capture.torch.access.elementwise import concatenate, elementwise
from buddysim.capture.torch.access.launch import ModelledKernel
from buddysim.capture.torch.access.matmul import matmul
from buddysim.capture.torch.access.normalisation import channel_passes
from buddysim.capture.torch.access.optimizer import update_parameters
from buddysim.capture.torch.access.pooling import PoolingWindow, pool, pool_backward
from buddysim.capture.torch.access.row_kernels import gather_rows, row_passes, scatter_add_rows
from buddysim.capture.torch.access.tensors import TensorView

_MAX_OPERANDS: Final = 8
_SINGLE: Final = "float32"


@dataclass(frozen=True)
class OperatorCall:
    """An operator with its tensors.

    Attributes
    ----------
    name : without library and overload: ``"convolution"``
    inputs, outputs : tensors in the order of the operator's schema, each once
    arguments : other arguments by name; a missing one has its default
    values : int64 contents of inputs of integers, by input index, if known
    """

    name: str
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)

    def pair(self, argument: str, default: int | tuple[int, int]) -> tuple[int, int]:
        """Return an argument as a pair for height and width."""
        value = self.arguments.get(argument, default) or default
        first, *rest = value if isinstance(value, tuple) else (value,)
        return int(first), int(rest[0] if rest else first)


def launches_of(call: OperatorCall) -> list[ModelledKernel] | None:
    """Return the kernels of an operator, in order; None: there is no model."""
    model = _MODELS.get(call.name)
    kernels = model(call) if model is not None else None
    return kernels if kernels is not None else _elementwise_kernels(call)


def _elementwise_kernels(call: OperatorCall) -> list[ModelledKernel] | None:
    """Elementwise operators: each element depends on the elements at the same index."""
    if not call.outputs or len(call.inputs) + len(call.outputs) > _MAX_OPERANDS:
        return None
    shape = call.outputs[0].shape
    if any(view.shape != shape for view in call.outputs) or not all(_fits(view.shape, shape) for view in call.inputs):
        return None
    return [elementwise(call.name, call.inputs, call.outputs)]


def _fits(inner: tuple[int, ...], outer: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    pairs = zip(reversed(inner), reversed(outer), strict=False)
    return len(inner) <= len(outer) and all(own in (1, whole) for own, whole in pairs)


def _plain(*views: TensorView) -> bool:
    return all(view.contiguous and view.dtype == _SINGLE for view in views)


def _convolution(call: OperatorCall, data: TensorView, filters: TensorView, out: TensorView) -> Convolution | None:
    if len(data.shape) != 4 or call.arguments.get("groups", 1) != 1 or call.arguments.get("transposed"):
        return None
    if not _plain(data, filters, out):
        return None
    pairs = call.pair("stride", 1), call.pair("padding", 0), call.pair("dilation", 1)
    return Convolution(data, filters, out, *pairs)


def _conv_forward(call: OperatorCall) -> list[ModelledKernel] | None:
    data, filters, *bias = call.inputs
    convolution = _convolution(call, data, filters, call.outputs[0])
    if convolution is None:
        return None
    out = call.outputs[0]
    shift = [TensorView(one.address, (1, *one.shape, 1, 1), (0, 1, 0, 0), one.dtype) for one in bias]
    return [convolution.forward(), *(elementwise("add_bias", [out, one], [out]) for one in shift)]


def _conv_backward(call: OperatorCall) -> list[ModelledKernel] | None:
    slope, data, filters = call.inputs[:3]
    output_mask = call.arguments.get("output_mask", (True, True, True))
    outputs = list(call.outputs)
    launches: list[ModelledKernel] = []
    for which, is_requested in enumerate(output_mask):
        if not is_requested:
            continue
        out = outputs.pop(0)
        convolution = _convolution(call, out if which == 0 else data, out if which == 1 else filters, slope)
        if convolution is None:
            return None
        if which == 0:
            launches.append(convolution.backward_data())
        elif which == 1:
            launches += convolution.backward_filter()
        else:
            launches.append(channel_passes("reduce_bias", [slope], [], [out], []))
    return launches


def _product(call: OperatorCall) -> list[ModelledKernel] | None:
    *bias, left, right = call.inputs
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0]:
        return None
    return [matmul("sgemm", left, right, call.outputs[0], bias[0] if bias else None)]


def _batch_norm(call: OperatorCall) -> list[ModelledKernel] | None:
    data, *_ = call.inputs
    if len(call.outputs) < 3:  # of an evaluation: running statistics are read, and none are computed
        return None
    out, mean, deviation, *_ = call.outputs
    if not _plain(data, out) or len(data.shape) < 3:
        return None
    values = [view for view in call.inputs[1:] if view.shape == mean.shape]
    return [channel_passes("bn_fw_tr_1C11", [data], values, [mean, deviation], [out])]


def _batch_norm_backward(call: OperatorCall) -> list[ModelledKernel] | None:
    slope, data, *values = call.inputs
    out, *gradients = call.outputs
    if not _plain(slope, data, out) or len(data.shape) < 3:
        return None
    weight, *_, mean, deviation = values
    return [channel_passes("bn_bw_1C11", [slope, data], [weight, mean, deviation], gradients, [out])]


def _window(call: OperatorCall) -> PoolingWindow:
    size = call.pair("kernel_size", 1)
    return PoolingWindow(size, call.pair("stride", size), call.pair("padding", 0))


def _pool(call: OperatorCall) -> list[ModelledKernel] | None:
    if len(call.inputs[0].shape) != 4:
        return None
    return [pool(call.name, call.inputs[0], call.outputs, _window(call))]


def _max_pool_backward(call: OperatorCall) -> list[ModelledKernel] | None:
    slope, _, indices = call.inputs
    return [pool_backward(call.name, (slope, indices), call.outputs[0], _window(call))]


def _avg_pool_backward(call: OperatorCall) -> list[ModelledKernel] | None:
    return [pool_backward(call.name, call.inputs[:1], call.outputs[0], _window(call))]


def _softmax(call: OperatorCall) -> list[ModelledKernel] | None:
    if call.arguments.get("dim", -1) not in (-1, len(call.outputs[0].shape) - 1):
        return None
    return [row_passes(call.name, call.inputs, call.outputs, 3)]


def _softmax_backward(call: OperatorCall) -> list[ModelledKernel] | None:
    if call.arguments.get("dim", -1) not in (-1, len(call.outputs[0].shape) - 1):
        return None
    return [row_passes(call.name, call.inputs, call.outputs, 2)]


def _cat(call: OperatorCall) -> list[ModelledKernel] | None:
    (out,) = call.outputs
    axis = call.arguments.get("dim", 0) % len(out.shape)
    if not all(view.contiguous for view in (*call.inputs, out)) or sum(v.elements for v in call.inputs) != out.elements:
        return None
    return [concatenate("CatArrayBatchedCopy", call.inputs, out, axis)]


def _embedding(call: OperatorCall) -> list[ModelledKernel] | None:
    if 1 not in call.values:
        return None
    return [gather_rows(call.name, call.inputs[0], call.inputs[1], call.values[1], call.outputs[0])]


def _embedding_backward(call: OperatorCall) -> list[ModelledKernel] | None:
    if 1 not in call.values:
        return None
    (out,) = call.outputs
    return [
        elementwise("fill", [], [out]),
        scatter_add_rows(call.name, call.inputs[0], call.inputs[1], call.values[1], out),
    ]


def _update(call: OperatorCall) -> list[ModelledKernel] | None:
    """Return the kernels of a fused optimizer, from lists of parameters, gradients and state."""
    written = {view.address for view in call.outputs}
    parts = _equal_parts([view for view in call.inputs if view.shape])  # step counters belong to no list
    if parts is None:
        return None
    groups = [(list(each), [view for view in each if view.address in written]) for each in zip(*parts, strict=True)]
    if len({len(changed) for _, changed in groups}) != 1:
        return None
    return [update_parameters(call.name, groups)]


def _equal_parts(views: Sequence[TensorView]) -> list[Sequence[TensorView]] | None:
    """Split tensors into consecutive lists with equal shapes: parameters, gradients, one or two kinds of state."""
    for count in (4, 3, 2):
        size, rest = divmod(len(views), count)
        parts = [views[part * size : (part + 1) * size] for part in range(count)]
        if not rest and size and all([v.shape for v in part] == [v.shape for v in parts[0]] for part in parts):
            return parts
    return None


_MODELS: Final[Mapping[str, Callable[[OperatorCall], list[ModelledKernel] | None]]] = {
    "convolution": _conv_forward,
    "convolution_backward": _conv_backward,
    "mm": _product,
    "addmm": _product,
    "native_batch_norm": _batch_norm,
    "native_batch_norm_backward": _batch_norm_backward,
    "max_pool2d_with_indices": _pool,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "avg_pool2d": _pool,
    "avg_pool2d_backward": _avg_pool_backward,
    "_softmax": _softmax,
    "_log_softmax": _softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _softmax_backward,
    "cat": _cat,
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "_fused_sgd_": _update,
    "_fused_adagrad_": _update,
    "_fused_adam_": _update,
    "_fused_adamw_": _update,
}
