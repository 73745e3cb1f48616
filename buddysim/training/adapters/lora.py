"""LoRA: a frozen linear layer, and next to it a product by way of a few features that is trained.

Two libraries write it in two ways, which save different tensors:

- torchtune's ``LoRALinear`` (``modules/peft/lora.py``): the adapter has the number format of the weights.
- PEFT's (``tuners/lora/layer.py``, ``bnb.py``): the adapter is in fp32 (``autocast_adapter_dtype``), so in bf16 the
  input is cast and the copy is saved; next to a quantised weight the result is copied once more.

The factor by which the adapter's result is scaled is a number, so its value changes nothing here. Its dropout is 0, the
default of both.
"""

from __future__ import annotations

from typing import Literal

from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.gpt2 import Conv1D
from buddysim.training.autograd.autocast import autocast_dtype
from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.quantized.linear import QuantizedLinear

Library = Literal["torchtune", "peft"]
_SCALING = 2.0


class AdaptedLinear(Module):
    """A frozen layer with an adapter; modules are named as PEFT names them.

    Parameters
    ----------
    base : the layer
    rank : features between the adapter's two products
    dtype : of the adapter's weights
    """

    def __init__(self, base: Module, rank: int, dtype: DType) -> None:
        super().__init__()
        inputs, outputs = _sizes(base)
        self.base_layer = base
        self.lora_A = Linear(inputs, rank, bias=False, weight=Parameter((rank, inputs), dtype))
        self.lora_B = Linear(rank, outputs, bias=False, weight=Parameter((outputs, rank), dtype))

    @property
    def weight(self) -> Parameter:
        """The layer's own weight."""
        weight: Parameter = self.base_layer.weight  # type: ignore[attr-defined]
        return weight


class TorchtuneLinear(AdaptedLinear):
    """As torchtune writes it."""

    def __init__(self, base: Module, rank: int) -> None:
        super().__init__(base, rank, active_tape().default_dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both results."""
        out: Tensor = self.base_layer(x)
        lora_out: Tensor = self.lora_A(x)
        lora_out = self.lora_B(lora_out) * _SCALING
        return out + lora_out


class PeftLinear(AdaptedLinear):
    """As PEFT writes it, with bitsandbytes where the weight is quantised."""

    def __init__(self, base: Module, rank: int) -> None:
        super().__init__(base, rank, float32)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both results, in the number format of the layer's."""
        result: Tensor = self.base_layer(x)
        dtype = result.dtype
        if not isinstance(self.base_layer, QuantizedLinear):
            x = x.to(self.lora_A.weight.dtype)
            result = result + self.lora_B(self.lora_A(x)) * _SCALING
            return result.to(dtype)
        result = result.clone()
        if autocast_dtype() is not None:
            result = result + self.lora_B(self.lora_A(x)) * _SCALING
            return result
        x = x.to(self.lora_A.weight.dtype)
        output: Tensor = self.lora_B(self.lora_A(x)) * _SCALING
        output = output.to(dtype)
        return (result + output).to(dtype)


#: By name of the library.
FORMS: dict[str, type[TorchtuneLinear | PeftLinear]] = {"torchtune": TorchtuneLinear, "peft": PeftLinear}


def _sizes(base: Module) -> tuple[int, int]:
    """Features that go in, and that come out."""
    if isinstance(base, QuantizedLinear):
        return base.shape[1], base.shape[0]
    if isinstance(base, Linear):
        return base.weight.shape[1], base.weight.shape[0]
    assert isinstance(base, Conv1D)
    return base.weight.shape[0], base.weight.shape[1]
