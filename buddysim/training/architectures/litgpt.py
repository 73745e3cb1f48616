"""Llama as LitGPT writes it (`litgpt/model.py`, 2024), trained by Lightning Fabric in ``bf16-true``.

Queries, keys and values are one product, whose parts are copied; keys and values are repeated to full width before the
rotation, so that all of the rotation is of full width. Fabric returns a module's floating-point outputs in the default
dtype (`plugins/precision/half.py`): logits in fp32, even where weights are bf16.
"""

from __future__ import annotations

from typing import ClassVar

from buddysim.base.errors import BuddysimError
from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.layers import Embedding, Linear
from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.llama import LlamaConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.operators.attention import Kernel
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class LitGPTConfig(LlamaConfig):
    """Keys of Llama; LitGPT's own configuration has the same sizes under other names."""


class LitGPTNorm(Module):
    """`RMSNorm`: the mean of squares by a product, computed in fp32."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        dtype = x.dtype
        x = x.float()
        norm_x = (x * x).mean(-1, keepdim=True)
        x_normed = x * (norm_x + 1e-5).rsqrt()
        x_normed = x_normed.to(dtype)
        return x_normed * self.weight


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate by halves of a head (`apply_rope`)."""
    half = x.shape[-1] // 2
    x1 = x[..., :half]
    x2 = x[..., half:]
    rotated = F.cat((-x2, x1), -1)
    roped = (x * cos) + (rotated * sin)
    return roped.to(x.dtype)


class LitGPTAttention(Module):
    """`CausalSelfAttention`."""

    def __init__(self, config: LitGPTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.head_features = config.head_features
        self.heads, self.groups = config.num_attention_heads, config.key_value_heads
        rows = (self.heads + 2 * self.groups) * self.head_features
        self.attn = Linear(config.hidden_size, rows, bias=False)
        self.proj = Linear(self.heads * self.head_features, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return the layer's output."""
        batch, tokens, _ = x.shape
        qkv = self.attn(x)
        shared = self.heads // self.groups
        qkv = qkv.view(batch, tokens, self.groups, shared + 2, self.head_features)
        qkv = qkv.permute(0, 2, 3, 1, 4)
        q, k, v = qkv.split((shared, 1, 1), 2)
        if self.groups != self.heads:
            k = k.expand(batch, self.groups, shared, tokens, self.head_features)
            v = v.expand(batch, self.groups, shared, tokens, self.head_features)
        q = q.reshape(batch, -1, tokens, self.head_features)
        k = k.reshape(batch, -1, tokens, self.head_features)
        v = v.reshape(batch, -1, tokens, self.head_features)
        q_roped = _rotated(q[..., : self.head_features], cos, sin)
        k_roped = _rotated(k[..., : self.head_features], cos, sin)
        q = F.cat((q_roped, q[..., self.head_features :]), -1)
        k = F.cat((k_roped, k[..., self.head_features :]), -1)
        kernel: Kernel = "efficient" if self.options.attention == "efficient" else "flash"
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, kernel=kernel).transpose(1, 2)
        y = y.reshape(batch, tokens, -1)
        return self.proj(y)


class LitGPTMLP(Module):
    """`LLaMAMLP`."""

    def __init__(self, features: int, inner: int) -> None:
        super().__init__()
        self.fc_1 = Linear(features, inner, bias=False)
        self.fc_2 = Linear(features, inner, bias=False)
        self.proj = Linear(inner, features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        x_fc_1 = self.fc_1(x)
        x_fc_2 = self.fc_2(x)
        x = F.silu(x_fc_1) * x_fc_2
        return self.proj(x)


class LitGPTBlock(Module):
    """`Block` without a parallel residual."""

    def __init__(self, config: LitGPTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.norm_1 = LitGPTNorm(config.hidden_size)
        self.attn = LitGPTAttention(config, options)
        self.norm_2 = LitGPTNorm(config.hidden_size)
        self.mlp = LitGPTMLP(config.hidden_size, config.intermediate_size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return the block's output."""
        x_normed = self.norm_1(x)
        attention_output = self.attn(x_normed, cos, sin)
        x = attention_output + x
        x = self.mlp(self.norm_2(x)) + x
        return x


class LitGPT(TracedModel):
    """`GPT` within Fabric's module, and its loss."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("efficient", "flash")

    def __init__(self, config: LitGPTConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        if options.loss != "whole":
            raise BuddysimError(f"loss {options.loss}: expected whole: LitGPT's pretraining has no other")
        positions = config.max_positions or self.sequence
        tape = active_tape()
        self.cos = tape.buffer((positions, config.head_features), tape.default_dtype, "cos")
        self.sin = tape.buffer((positions, config.head_features), tape.default_dtype, "sin")
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)
        self.wte = Embedding(
            config.vocab_size, config.hidden_size, weight=self.lm_head.weight if config.tie_word_embeddings else None
        )
        self.h = [LitGPTBlock(config, self.options) for _ in range(config.num_hidden_layers)]
        self.ln_f = LitGPTNorm(config.hidden_size)

    def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        logits = self._outputs(input_ids)
        with active_tape().in_scope("loss"):
            logits = logits.reshape(-1, logits.shape[-1])
            return F.cross_entropy(logits, labels.reshape(-1))

    def _outputs(self, tokens: Tensor) -> Tensor:
        """The logits, as Fabric's module returns them."""
        cos = self.cos[: tokens.shape[1]]
        sin = self.sin[: tokens.shape[1]]
        x = self.wte(tokens)
        for block in self.h:
            x = block(x, cos, sin)
        x = self.ln_f(x)
        output = self.lm_head(x)
        del x
        return output.to(float32)


ARCHITECTURES = (Architecture("GPT", "litgpt", LitGPTConfig, LitGPT),)
