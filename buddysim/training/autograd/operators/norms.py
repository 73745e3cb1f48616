"""Layer norm and RMS norm as one kernel each, with CUDA's statistics in single precision."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.tensor import Tensor


class NativeLayerNormBackward0(Node):
    __slots__ = ("parameters",)
    name = "NativeLayerNormBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        gradient = gradients[0]
        assert gradient is not None
        x = self.saved[0]
        writes = [self.tape.empty(x.shape, x.dtype, "native_layer_norm_backward")] if self.needs(0) else []
        results: list[Tensor | None] = [writes[0] if writes else None]
        for position, parameter in enumerate(self.parameters, 1):
            if self.needs(position):
                shape, dtype = parameter
                writes.append(self.tape.empty(shape, dtype, "native_layer_norm_backward"))
            results.append(writes[-1] if self.needs(position) else None)
        self.tape.launch("native_layer_norm_backward", (gradient, *self.saved), writes)
        return results


def layer_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Layer norm over the last extents, `shape`."""
    tape = x.storage.tape
    x = tape.single(x)
    weight = tape.single(weight) if weight is not None else None
    bias = tape.single(bias) if bias is not None else None
    statistics = (*x.shape[: len(x.shape) - len(shape)], *(1,) * len(shape))
    name = "native_layer_norm"
    result = tape.empty(x.shape, x.dtype, name)
    mean = tape.empty(statistics, float32, name)
    deviation = tape.empty(statistics, float32, name)
    reads = [one for one in (x, weight, bias) if one is not None]
    tape.launch(name, reads, (result, mean, deviation))
    if any(one.records for one in reads):
        node = NativeLayerNormBackward0(tape, (x, weight, bias))
        node.parameters = [None if one is None else (one.shape, one.dtype) for one in (weight, bias)]
        node.save("input", x)
        if weight is not None:
            node.save("weight", weight)
        if bias is not None:
            node.save("bias", bias)
        node.returns(result)
        node.save("result1", mean, is_output=True)
        node.save("result2", deviation, is_output=True)
    return result


class FusedRmsNormBackward0(NativeLayerNormBackward0):
    name = "FusedRmsNormBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        raise NotImplementedError


def rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None) -> Tensor:
    """RMS norm over the last extents, in CUDA's one kernel."""
    raise NotImplementedError
