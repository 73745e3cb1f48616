"""What the scripts of softmax and ReLU squared share: one row of numbers, whose gradient is made in each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf, ones


class LigerRowKernel(Function):
    """One kernel forward, which saves its input or its result, and one backward."""

    __slots__ = ()

    def compute(self, x: Tensor, saves_result: bool) -> Tensor:
        """Return the result."""
        result = x.storage.tape.empty(x.shape, x.dtype, "liger_row_kernel")
        x.storage.tape.launch("liger_row_kernel", (x,), (result,))
        self.save_for_backward(result if saves_result else x)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradient."""
        result = self.tape.empty(gradient.shape, gradient.dtype, "liger_row_kernel_backward")
        self.tape.launch("liger_row_kernel_backward", (gradient, *self.saved), (result,))
        return (result,)


def row_script(config: Mapping[str, Any], layer: Callable[[Tensor], Tensor]) -> LayerScript:
    """Set up a row: the script passes a size, not a shape, to ``torch.randn``."""
    x = leaf((config["N"],), dtype_of(config))
    return LayerScript(lambda: [layer(x)], ones, retains=True)
