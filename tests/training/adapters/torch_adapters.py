"""LoRA written with plain PyTorch modules, in the two forms of its libraries, and torchao's quantised weight."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F


class Adapted(torch.nn.Module):
    """A frozen layer with an adapter.

    Parameters
    ----------
    inputs, outputs : features
    """

    def __init__(self, base: torch.nn.Module, inputs: int, outputs: int, rank: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_A = torch.nn.Linear(inputs, rank, bias=False, dtype=dtype)
        self.lora_B = torch.nn.Linear(rank, outputs, bias=False, dtype=dtype)

    @property
    def weight(self) -> Any:
        return self.base_layer.weight


class TorchtuneForm(Adapted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.base_layer(x)
        lora_out = self.lora_A(x)
        lora_out = 2.0 * self.lora_B(lora_out)
        return out + lora_out


class PeftForm(Adapted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.base_layer(x)
        dtype = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.lora_B(self.lora_A(x)) * 2.0
        return result.to(dtype)


def adapt(model: torch.nn.Module, names: tuple[str, ...], rank: int, library: str) -> None:
    """Freeze a model and put adapters next to the modules of some names."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for path, module in list(model.named_modules()):
        parent, _, name = path.rpartition(".")
        if name in names:
            first, second = module.weight.shape
            outputs, inputs = (first, second) if isinstance(module, torch.nn.Linear) else (second, first)
            form = TorchtuneForm if library == "torchtune" else PeftForm
            dtype = module.weight.dtype if library == "torchtune" else torch.float32
            setattr(model.get_submodule(parent), name, form(module, inputs, outputs, rank, dtype))


class Quantized(torch.nn.Module):
    """A product whose weight is in 4 bits, dequantised by the operators that torchao uses."""

    def __init__(self, outputs: int, inputs: int, dtype: torch.dtype) -> None:
        super().__init__()
        elements = outputs * inputs
        self.shape, self.dtype = (outputs, inputs), dtype
        self.register_buffer("data", torch.zeros(elements // 2, dtype=torch.uint8))
        self.register_buffer("scalers", torch.zeros(elements // 64, dtype=torch.int8))
        self.register_buffer("factor", torch.ones(elements // 16384, dtype=dtype))
        self.register_buffer("mean", torch.zeros((), dtype=dtype))
        self.register_buffer("table", torch.zeros(16, dtype=dtype))

    def dequantized(self) -> torch.Tensor:
        first = (self.data >> 4).to(torch.long)
        second = (self.data & 0b1111).to(torch.long)
        values, others = self.table[first], self.table[second]
        scalers = (self.scalers.view(-1, 256) / self.factor.unsqueeze(-1)).flatten().to(self.dtype) + self.mean
        repeated = scalers.unsqueeze(-1).expand(scalers.size(0), 32)
        scaled = values * repeated.flatten()
        rest = others * repeated.flatten()
        scaled, rest = scaled.unsqueeze(-1).transpose(0, 1), rest.unsqueeze(-1).transpose(0, 1)
        return torch.stack([scaled, rest], dim=-1).reshape(self.shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Product.apply(x, self)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, module: Quantized) -> torch.Tensor:
        ctx.module = module
        ctx.save_for_backward(module.data)
        return F.linear(x, module.dequantized().to(x.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient @ ctx.module.dequantized().to(gradient.dtype), None
