"""``benchmark_cross_entropy.py``: logits in fp32; Liger's gradient overwrites the logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32, int64
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, leaf, scalar

KERNEL = "cross_entropy"


class LigerCrossEntropy(Function):
    """The gradient is written where the logits were (`ops/cross_entropy.py`)."""

    __slots__ = ()

    def compute(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the mean over rows."""
        tape = x.storage.tape
        losses = F.zeros((x.shape[0],), x.dtype)
        tape.launch("liger_cross_entropy", (x, target), (x, losses))
        self.save_for_backward(x.detach())
        return losses.sum()

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the logits' memory."""
        return self.saved[0].detach(), None


def _script(config: Mapping[str, Any], liger: bool) -> LayerScript:
    rows = config["B"] * config["T"]
    x = leaf((rows, config["V"]), float32)
    target = active_tape().input((rows,), int64)
    if liger:
        return LayerScript(lambda: [LigerCrossEntropy.apply(x, target)], scalar)
    return LayerScript(lambda: [F.cross_entropy(x, target)], scalar)


SETUPS = {
    "liger": lambda config: _script(config, True),
    "huggingface": lambda config: _script(config, False),
}
