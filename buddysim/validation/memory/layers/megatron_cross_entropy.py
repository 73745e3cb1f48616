"""``benchmark_megatron_cross_entropy.py``: the losses of tokens, summed; Megatron's own losses aren't simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.autograd.dtypes import bfloat16, float32, int64
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, leaf, scalar

KERNEL = "megatron_cross_entropy"


class LigerVocabParallelCrossEntropy(Function):
    """Exponentials in fp32, which the gradient overwrites (`ops/vocab_parallel_cross_entropy.py` at 80f19ad7)."""

    __slots__ = ("dtype",)

    def compute(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each token."""
        tape, name = x.storage.tape, "liger_cross_entropy"
        self.dtype = x.dtype
        exponentials = tape.empty(x.shape, float32, name)
        losses, sums = (tape.empty(x.shape[:-1], float32, name) for _ in range(2))
        tape.launch(name, (x, target), (exponentials, sums, losses))
        self.save_for_backward(exponentials, sums, target)
        return losses

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradient of the logits, in their dtype."""
        exponentials = self.saved[0]
        gradient = gradient.contiguous()
        self.tape.launch("liger_cross_entropy_backward", (gradient, *self.saved), (exponentials,))
        return exponentials.to(self.dtype), None


def _script(config: Mapping[str, Any]) -> LayerScript:
    shape = config["S"], config["B"]
    logits = leaf((*shape, config["V"]), bfloat16)
    target = active_tape().input(shape, int64)

    def run() -> list[Tensor]:
        y = LigerVocabParallelCrossEntropy.apply(logits, target)
        return [y.sum(), y]

    return LayerScript(run, scalar, dropped=[logits])


SETUPS = {"liger": _script}
