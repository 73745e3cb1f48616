"""``benchmark_layer_norm.py``: one gradient for all calls, the graph retained.

Liger's kernel of 2024 adds up the weights' gradients per multiprocessor; that of 2025 in one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.architectures.blocks.layers import LayerNorm
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf

KERNEL = "layer_norm"
#: Multiprocessors of an A100.
_MULTIPROCESSORS = 108


class LigerLayerNorm(Function):
    """`ops/layer_norm.py`."""

    __slots__ = ("rows",)

    def compute(self, x: Tensor, weight: Tensor, bias: Tensor, rows: int) -> Tensor:
        """Return the normalized features; gradients of weight and bias are added up over `rows` parts."""
        tape, name = x.storage.tape, "liger_layer_norm"
        self.rows = rows
        result = tape.empty(x.shape, x.dtype, name)
        mean, rstd = tape.empty(x.shape[:1], x.dtype, name), tape.empty(x.shape[:1], x.dtype, name)
        tape.launch(name, (x, weight, bias), (result, mean, rstd))
        self.save_for_backward(x, weight, bias, mean, rstd)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradients."""
        tape, name = self.tape, "liger_layer_norm_backward"
        x, weight, *_ = self.saved
        result = tape.empty(x.shape, x.dtype, name)
        parts = [tape.empty((self.rows, *weight.shape), weight.dtype, name) for _ in range(2)]
        tape.launch(name, (gradient, *self.saved), (result, *parts))
        return result, parts[0].sum(0), parts[1].sum(0)


def _script(config: Mapping[str, Any], liger: bool) -> LayerScript:
    rows, columns, dtype = config["M"], config["N"], dtype_of(config)
    x = leaf((rows, columns), dtype)
    gradient = F.ones((rows, columns), dtype)
    layer = LayerNorm(columns)
    parts = 1 if config["version"] >= "0.6" else _MULTIPROCESSORS

    def run() -> list[Tensor]:
        weight, bias = layer.weight, layer.bias
        assert isinstance(weight, Parameter)
        return [LigerLayerNorm.apply(x, weight, bias, parts) if liger else layer(x)]

    return LayerScript(run, lambda _: [gradient], retains=True, held=[active_tape()])


SETUPS = {
    "liger": lambda config: _script(config, True),
    "huggingface": lambda config: _script(config, False),
}
