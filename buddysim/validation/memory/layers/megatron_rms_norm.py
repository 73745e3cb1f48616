"""``benchmark_megatron_rms_norm.py``: the sum of the outputs is the loss; Megatron's norm is PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bfloat16, float32
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, leaf, scalar

KERNEL = "megatron_rms_norm"
#: Multiprocessors of an H100.
_MULTIPROCESSORS = 132


class LigerMegatronRMSNorm(Function):
    """`ops/rms_norm.py` at 27fe47e2, not in place."""

    __slots__ = ()

    def compute(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return the normalized features."""
        tape, name = x.storage.tape, "liger_rms_norm"
        result, rstd = tape.empty(x.shape, x.dtype, name), tape.empty(x.shape[:-1], float32, name)
        tape.launch(name, (x, weight), (result, rstd))
        self.save_for_backward(x, weight, rstd)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradients; that of the weight from one row per multiprocessor."""
        tape, name = self.tape, "liger_rms_norm_backward"
        _, weight, _ = self.saved
        gradient = gradient.contiguous()
        parts = tape.empty((_MULTIPROCESSORS, *weight.shape), float32, name)
        result = tape.empty(gradient.shape, gradient.dtype, name)
        tape.launch(name, (gradient, *self.saved), (result, parts))
        return result, parts.sum(0).to(weight.dtype)


def _script(config: Mapping[str, Any], liger: bool) -> LayerScript:
    width = config["H"]
    x, weight = leaf((config["S"], config["B"], width), bfloat16), leaf((width,), bfloat16)

    def run() -> list[Tensor]:
        y = LigerMegatronRMSNorm.apply(x, weight) if liger else F.rms_norm(x, (width,), weight)
        return [y.sum(), y]

    return LayerScript(run, scalar)


SETUPS = {
    "liger": lambda config: _script(config, True),
    "torch": lambda config: _script(config, False),
    "megatron": lambda config: _script(config, False),
}
