"""``benchmark_rms_norm.py``: inputs in bf16, weights in fp32; one gradient for all calls, the graph retained.

Liger's kernel writes the input's gradient where the output's was, and the weights' gradient of every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.architectures.blocks.rms_norm import RMSNorm
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf

KERNEL = "rms_norm"


class LigerRMSNorm(Function):
    """`ops/rms_norm.py` at b5672a15."""

    __slots__ = ()

    def compute(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        tape, name = x.storage.tape, "liger_rms_norm"
        result, rstd = tape.empty(x.shape, x.dtype, name), tape.empty(x.shape[:1], float32, name)
        tape.launch(name, (x, weight), (result, rstd))
        self.save_for_backward(x, weight, rstd)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradients."""
        tape, name = self.tape, "liger_rms_norm_backward"
        x, weight, _ = self.saved
        rows = tape.empty(x.shape, weight.dtype, name)
        tape.launch(name, (gradient, *self.saved), (gradient, rows))
        return gradient.detach(), rows.sum(0)


def _script(config: Mapping[str, Any], liger: bool) -> LayerScript:
    rows, columns, dtype = config["M"], config["H"], dtype_of(config)
    x = leaf((rows, columns), dtype)
    gradient = F.ones((rows, columns), dtype)
    layer = RMSNorm(columns)

    def run() -> list[Tensor]:
        return [LigerRMSNorm.apply(x, layer.weight) if liger else layer(x)]

    return LayerScript(run, lambda _: [gradient], retains=True)


SETUPS = {
    "liger": lambda config: _script(config, True),
    "huggingface": lambda config: _script(config, False),
}
