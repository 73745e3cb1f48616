"""LLM Foundry's layer norm: under autocast in the low precision, where PyTorch's would compute and save in fp32."""

from __future__ import annotations

from buddysim.training.architectures.blocks.layers import LayerNorm
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.autocast import autocast_disabled, autocast_dtype
from buddysim.training.autograd.tensor import Tensor


class LowPrecisionLayerNorm(LayerNorm):
    """A layer norm whose input and weights are cast to autocast's dtype first."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized features."""
        dtype = autocast_dtype()
        x = x if dtype is None else x.to(dtype)
        weight = self.weight if dtype is None or self.weight is None else self.weight.to(dtype)
        bias = self.bias if dtype is None or self.bias is None else self.bias.to(dtype)
        with autocast_disabled():
            return F.layer_norm(x, (x.shape[-1],), weight, bias)
