"""Layer norm and RMS norm as one kernel each, with CUDA's statistics in single precision."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.cuda_scratch import cuda_scratch
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import arithmetic, copies, functions, reductions
from buddysim.training.autograd.operators.pointwise import records, result_type
from buddysim.training.autograd.tensor import Tensor


class NativeLayerNormBackward0(GraphNode):
    """Saves operands and statistics."""

    __slots__ = ("parameters",)
    name, kernel = "NativeLayerNormBackward0", "native_layer_norm_backward"

    def __init__(self, operands: Sequence[Tensor | None], result: Tensor, *statistics: Tensor) -> None:
        super().__init__(result.storage.tape, operands)
        for name, operand in zip(("input", "weight", "bias"), operands, strict=False):
            self.save(name, operand)
        self.returns(result)
        for number, one in enumerate(statistics, 1):
            self.save_output(f"result{number}", one)
        self.parameters = len(operands)

    def backward(self, gradient: Tensor) -> Gradients:
        operands = self.saved[: self.parameters]
        results = [
            self.tape.empty(one.shape, one.dtype, self.kernel) if self.needs(position) else None
            for position, one in enumerate(operands)
        ]
        scratch = cuda_scratch(self.tape, self.kernel, gradient)
        reads = [gradient, *[one for one in self.saved if one is not None]]
        self.tape.launch(self.kernel, reads, [one for one in results if one is not None])
        del scratch
        return results


def layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Layer norm over the last extents, `shape`."""
    tape = x.storage.tape
    operands = [tape.single(one) if one is not None else None for one in (x, weight, bias)]
    reads = [one for one in operands if one is not None]
    x = reads[0]
    statistics = (*x.shape[: len(x.shape) - len(shape)], *(1,) * len(shape))
    name = "native_layer_norm"
    result = tape.empty(x.shape, x.dtype, name)
    mean, deviation = tape.empty(statistics, float32, name), tape.empty(statistics, float32, name)
    tape.launch(name, reads, (result, mean, deviation))
    if records(*reads):
        NativeLayerNormBackward0(operands, result, mean, deviation)
    return result


class FusedRmsNormBackward0(NativeLayerNormBackward0):
    """Saves operands and one number a row; on CUDA its kernel copies a gradient that isn't contiguous."""

    __slots__ = ()
    name, kernel = "FusedRmsNormBackward0", "_fused_rms_norm_backward"


def rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None) -> Tensor:
    """RMS norm over the last extents, `shape`: one kernel where input and weight have one type, else six."""
    tape = x.storage.tape
    x = tape.single(x)
    weight = tape.single(weight) if weight is not None else None
    if weight is not None and weight.dtype is not x.dtype:
        return _composite_rms_norm(x, shape, weight)
    operands = (x,) if weight is None else (x, weight)
    name = "_fused_rms_norm"
    result = tape.empty(x.shape, x.dtype, name)
    scale = tape.empty((*x.shape[: len(x.shape) - len(shape)], *(1,) * len(shape)), float32, name)
    tape.launch(name, operands, (result, scale))
    if records(*operands):
        FusedRmsNormBackward0((x, weight), result, scale)
    return result


def _composite_rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor) -> Tensor:
    """RMS norm of an input and a weight of two types (``layer_norm.cpp``)."""
    dtype = result_type(x, weight)
    wide = copies.to(x, float32)
    power = arithmetic.pow_(wide, 2)
    variance = reductions.mean(power, range(len(x.shape) - len(shape), len(x.shape)), keepdim=True)
    scale = functions.rsqrt(arithmetic.add(variance, 1e-6))
    return copies.to(arithmetic.mul(arithmetic.mul(wide, scale), weight), dtype)
