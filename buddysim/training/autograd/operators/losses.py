"""Losses."""

from __future__ import annotations

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators.softmaxes import log_softmax
from buddysim.training.autograd.tensor import Tensor


class NllLossBackward0(GraphNode):
    __slots__ = ()
    name = "NllLossBackward0"

    def __init__(self, x: Tensor, target: Tensor, result: Tensor, total_weight: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.save("self", x)
        self.save("target", target)
        self.returns(result)
        self.save_output("total_weight", total_weight)

    def backward(self, gradient: Tensor) -> Gradients:
        x = self.saved[0]
        result = self.tape.empty(x.shape, x.dtype, "nll_loss_backward")
        self.tape.launch("nll_loss_backward", (gradient, *self.saved), (result,))
        return (result,)


def nll_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The negative log-likelihood of classes, of logarithms of probabilities (samples x classes)."""
    tape = x.storage.tape
    x = tape.single(x)
    name = "nll_loss_forward"
    result = tape.empty(target.shape if reduction == "none" else (), x.dtype, name)
    total_weight = tape.empty((), x.dtype, name)
    tape.launch(name, (x, target), (result, total_weight))
    if x.records:
        NllLossBackward0(x, target, result, total_weight)
    return result


def cross_entropy(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of class numbers with logits (samples x classes), in the logits' type even under autocast."""
    return nll_loss(log_softmax(x, 1, x.dtype), target, reduction)
