"""``benchmark_fused_linear_cross_entropy.py`` of Liger 0.4.2: a head's product and its loss; both heads exist.

That version casts the logits of a part to fp32, back, and scales a copy; all of them live until the next part's are
made (`ops/fused_linear_cross_entropy.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32, int64
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf, scalar

KERNEL = "fused_linear_cross_entropy"


class LigerFusedLinearCrossEntropy(Function):
    """The product and the loss, part by part."""

    __slots__ = ()

    def compute(self, x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        """Return the mean over rows."""
        (rows, features), words = x.shape, weight.shape[0]
        part = 1 << (-(-rows // -(-words // features)) - 1).bit_length()
        grad_weight, grad_input = F.zeros_like(weight), F.zeros_like(x)
        losses = F.zeros((rows,), float32)
        for start in range(0, rows, part):
            inputs, targets = x[start : start + part], target[start : start + part]
            logits = F.mm(inputs, weight.t())
            logits = logits.float()
            active_tape().launch("liger_cross_entropy", (logits, targets), (logits, losses))
            logits = logits.to(x.dtype)
            scaled = logits * 1.0
            F.copy_(grad_input[start : start + part], F.mm(scaled, weight))
            product = Product(words, features, inputs.shape[0], 1)
            active_tape().launch("addmm", (grad_weight, logits, inputs), (grad_weight,), (product,))
        self.save_for_backward(grad_input, grad_weight)
        return losses.sum()

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradients that the forward pass made."""
        return self.saved[0].detach(), self.saved[1].detach(), None


def _script(config: Mapping[str, Any], liger: bool) -> LayerScript:
    tape, dtype = active_tape(), dtype_of(config)
    tape.default_dtype = dtype
    head, other = (Linear(config["H"], config["V"], bias=False) for _ in range(2))
    x = leaf((config["BT"], config["H"]), dtype)
    target = tape.input((config["BT"],), int64)

    def run() -> list[Tensor]:
        return [
            LigerFusedLinearCrossEntropy.apply(x, head.weight, target) if liger else F.cross_entropy(head(x), target)
        ]

    return LayerScript(run, scalar, held=[other])


SETUPS = {
    "liger": lambda config: _script(config, True),
    "huggingface": lambda config: _script(config, False),
}
