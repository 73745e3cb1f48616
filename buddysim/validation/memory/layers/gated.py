"""What the scripts of SwiGLU and GeGLU share: Llama's gated layer, and Liger's, which overwrites its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.training.architectures.blocks.gated_mlp import GatedMLP
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.validation.memory.layer_script import LayerScript, dtype_of, leaf, ones


class LigerGatedProduct(Function):
    """The activation of one operand times the other (`ops/swiglu.py`, `ops/geglu.py`)."""

    __slots__ = ()

    def compute(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the product."""
        result = a.storage.tape.empty(a.shape, a.dtype, "liger_gated_product")
        a.storage.tape.launch("liger_gated_product", (a, b), (result,))
        self.save_for_backward(a, b)
        return result

    def backward(self, gradient: Tensor) -> Gradients:
        """Return the operands' memory."""
        a, b = self.saved
        self.tape.launch("liger_gated_product_backward", (gradient, a, b), (a, b))
        return a.detach(), b.detach()


class LigerGatedMLP(Module):
    """Llama's layer with Liger's product."""

    def __init__(self, features: int, inner: int) -> None:
        super().__init__()
        self.layer = GatedMLP(features, inner, "silu")

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        layer = self.layer
        down_proj: Tensor = layer.down_proj(LigerGatedProduct.apply(layer.gate_proj(x), layer.up_proj(x)))
        return down_proj


def gated_script(config: Mapping[str, Any], batch: int, liger: bool) -> LayerScript:
    """Set up a gated layer on `batch` sequences."""
    features, inner, dtype = config["hidden_size"], config["intermediate_size"], dtype_of(config)
    active_tape().default_dtype = dtype
    x = leaf((batch, config["T"], features), dtype)
    layer: Module = LigerGatedMLP(features, inner) if liger else GatedMLP(features, inner, config["hidden_act"])
    return LayerScript(lambda: [layer(x)], ones, retains=True)
