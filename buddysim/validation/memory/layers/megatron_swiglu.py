"""``benchmark_megatron_swiglu.py``: gate and up in one tensor; Megatron's own fusion isn't simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, leaf, scalar

KERNEL = "megatron_swiglu"


class LigerGateUpProduct(Function):
    """The activation of one half times the other (`ops/swiglu.py` at 2120862b)."""

    __slots__ = ("in_place",)

    def compute(self, y: Tensor, in_place: bool) -> Tensor:
        """Return the product."""
        self.in_place = in_place
        half = (*y.shape[:-1], y.shape[-1] // 2)
        result = y.storage.tape.empty(half, y.dtype, "liger_gate_up")
        y.storage.tape.launch("liger_gate_up", (y,), (result,))
        self.save_for_backward(y)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the gradient: on the input's memory, or on its own."""
        y = self.saved[0]
        gradient = gradient.contiguous()
        result = y.detach() if self.in_place else self.tape.empty(y.shape, y.dtype, "liger_gate_up_backward")
        self.tape.launch("liger_gate_up_backward", (gradient, y), (result,))
        return (result,)


def _eager(y: Tensor) -> Tensor:
    y_1, y_2 = y.chunk(2, -1)
    return F.silu(y_1) * y_2


def _script(config: Mapping[str, Any], in_place: bool | None) -> LayerScript:
    x = leaf((config["S"], config["B"], 2 * config["ffn_local"]), bfloat16)

    def run() -> list[Tensor]:
        y = _eager(x) if in_place is None else LigerGateUpProduct.apply(x, in_place)
        return [y.sum(), y]

    return LayerScript(run, scalar, dropped=[x])


SETUPS = {
    "liger": lambda config: _script(config, False),
    "liger_in_place": lambda config: _script(config, True),
    "torch": lambda config: _script(config, None),
}
