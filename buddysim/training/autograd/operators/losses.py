"""Losses."""

from __future__ import annotations

from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.node import Gradients, Node
from buddysim.training.autograd.operators.softmaxes import log_softmax
from buddysim.training.autograd.tensor import Tensor


class NllLossBackward0(Node):
    __slots__ = ()
    name = "NllLossBackward0"

    def backward(self, gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        x = self.saved[0]
        result = self.tape.empty(x.shape, x.dtype, "nll_loss_backward", contiguous_strides(x.shape))
        self.tape.launch("nll_loss_backward", (gradient, *self.saved), (result,))
        return (result,)


def nll_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The negative log-likelihood of classes, of logarithms of probabilities (samples x classes)."""
    tape = x.storage.tape
    x = tape.single(x)
    name = "nll_loss_forward"
    result = tape.empty(target.shape if reduction == "none" else (), x.dtype, name)
    weight = tape.empty((), x.dtype, name)
    tape.launch(name, (x, target), (result, weight))
    if x.records:
        node = NllLossBackward0(tape, (x,))
        node.save("self", x)
        node.save("target", target)
        node.returns(result)
        node.save("total_weight", weight, is_output=True)
    return result


def cross_entropy(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of class numbers with logits (samples x classes)."""
    return nll_loss(log_softmax(x, 1), target, reduction)
