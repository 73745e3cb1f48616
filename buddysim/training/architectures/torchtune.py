"""Llama as torchtune writes it (`torchtune.modules`, 2024): `TransformerDecoder` of `TransformerSelfAttentionLayer`.

It saves other tensors than transformers' classes: rotary embeddings compute in fp32 from a cache of all positions, keys
and values are always repeated to full width, the loss's cross-entropy of parts is compiled only where the layers are.
With ``compile`` each layer is compiled by itself; the embedding, the last norm, the output product and a whole loss run
eagerly (``training/_compile.py``). Packed documents go through flex attention, which has no mask in memory.
"""

from __future__ import annotations

import re
from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.layers import Embedding, Linear
from buddysim.training.architectures.blocks.loss import CompiledCrossEntropy
from buddysim.training.architectures.language_model import TracedModel
from buddysim.training.architectures.llama import LlamaConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32, int64
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.operators.attention import Kernel
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions

_LAYER = re.compile(r"layers\.[0-9]+")


class TorchtuneConfig(LlamaConfig):
    """Keys of Llama; torchtune's own builders have the same sizes as arguments."""


class TorchtuneRMSNorm(Module):
    """`modules/rms_norm.py`: computed in fp32, cast back, then multiplied by the scale."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = Parameter((features,))

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized features, in the dtype of the input."""
        x_fp32 = x.float()
        x_normed = (x_fp32 * (x_fp32.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()).type_as(x)
        return x_normed * self.scale


class TorchtuneRotary(Module):
    """`modules/position_embeddings.py`: pairs of neighbouring features, rotated in fp32.

    Parameters
    ----------
    positions : of the cache, which has cosines and sines of all of them
    """

    def __init__(self, features: int, positions: int) -> None:
        super().__init__()
        tape = active_tape()
        self.theta = tape.buffer((features // 2,), float32, "theta")
        self.cache = tape.buffer((positions, features // 2, 2), float32, "cache")

    def forward(self, x: Tensor, input_pos: Tensor | None) -> Tensor:
        """Return queries or keys, of shape (batch, tokens, heads, features), rotated."""
        rope_cache = self.cache[: x.shape[1]] if input_pos is None else F.index(self.cache, input_pos)
        xshaped = x.float().reshape(*x.shape[:-1], -1, 2)
        rope_cache = rope_cache.view(-1, xshaped.shape[1], 1, xshaped.shape[3], 2)
        x_out = F.stack(
            [
                xshaped[..., 0] * rope_cache[..., 0] - xshaped[..., 1] * rope_cache[..., 1],
                xshaped[..., 1] * rope_cache[..., 0] + xshaped[..., 0] * rope_cache[..., 1],
            ],
            -1,
        )
        x_out = x_out.flatten(3)
        return x_out.type_as(x)


class TorchtuneAttention(Module):
    """`modules/attention.py`: `MultiHeadAttention`."""

    def __init__(self, config: TorchtuneConfig, options: ConfigOptions, rotary: TorchtuneRotary) -> None:
        super().__init__()
        self.options = options
        self.head_features = config.head_features
        self.heads, self.kv_heads = config.num_attention_heads, config.key_value_heads
        queries, keys = self.heads * self.head_features, self.kv_heads * self.head_features
        self.q_proj = Linear(config.hidden_size, queries, bias=False)
        self.k_proj = Linear(config.hidden_size, keys, bias=False)
        self.v_proj = Linear(config.hidden_size, keys, bias=False)
        self.output_proj = Linear(queries, config.hidden_size, bias=False)
        self.pos_embeddings = rotary

    def forward(self, x: Tensor, y: Tensor, input_pos: Tensor | None) -> Tensor:
        """Return the layer's output; keys and values are those of `y`."""
        batch, tokens, _ = x.shape
        q = self.q_proj(x)
        q = q.view(batch, tokens, self.heads, self.head_features)
        q = self.pos_embeddings(q, input_pos)
        q = q.transpose(1, 2)
        k = self.k_proj(y)
        v = self.v_proj(y)
        k = k.view(batch, tokens, -1, self.head_features)
        v = v.view(batch, tokens, -1, self.head_features)
        k = self.pos_embeddings(k, input_pos)
        k = k.transpose(1, 2)
        v = v.transpose(1, 2)
        if self.heads != self.kv_heads:
            groups = self.heads // self.kv_heads
            k = k.unsqueeze(2).expand(batch, self.kv_heads, groups, -1, self.head_features).flatten(1, 2)
            v = v.unsqueeze(2).expand(batch, self.kv_heads, groups, -1, self.head_features).flatten(1, 2)
        kernel: Kernel = "efficient" if self.options.attention == "efficient" else "flash"
        output = F.scaled_dot_product_attention(q, k, v, is_causal=True, kernel=kernel)
        output = output.transpose(1, 2).contiguous().view(batch, tokens, -1)
        return self.output_proj(output)


class TorchtuneFeedForward(Module):
    """`modules/feed_forward.py`."""

    def __init__(self, features: int, inner: int, activation: str) -> None:
        super().__init__()
        self.w1 = Linear(features, inner, bias=False)
        self.w2 = Linear(inner, features, bias=False)
        self.w3 = Linear(features, inner, bias=False)
        self.activation = Activation(activation)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        h = self.activation(self.w1(x))
        h = h * self.w3(x)
        h = self.w2(h)
        return h


class TorchtuneLayer(Module):
    """`modules/transformer.py`: `TransformerSelfAttentionLayer`."""

    def __init__(self, config: TorchtuneConfig, options: ConfigOptions, rotary: TorchtuneRotary) -> None:
        super().__init__()
        self.attn = TorchtuneAttention(config, options, rotary)
        self.mlp = TorchtuneFeedForward(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.sa_norm = TorchtuneRMSNorm(config.hidden_size)
        self.mlp_norm = TorchtuneRMSNorm(config.hidden_size)

    def forward(self, x: Tensor, input_pos: Tensor | None) -> Tensor:
        """Return the layer's output."""
        h = self.sa_norm(x)
        attn_out = self.attn(h, h, input_pos)
        h = attn_out + x
        mlp_out = self.mlp(self.mlp_norm(h))
        out = h + mlp_out
        return out


class TorchtuneDecoder(TracedModel):
    """`modules/transformer.py`: `TransformerDecoder`, and the loss as the recipes compute it."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("efficient", "flash")
    PACKED: ClassVar[bool] = True

    def __init__(self, config: TorchtuneConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        rotary = TorchtuneRotary(config.head_features, config.max_positions or self.sequence)
        self.tok_embeddings = Embedding(config.vocab_size, config.hidden_size)
        self.layers = [TorchtuneLayer(config, self.options, rotary) for _ in range(config.num_hidden_layers)]
        self.norm = TorchtuneRMSNorm(config.hidden_size)
        tied = self.tok_embeddings.weight if config.tie_word_embeddings else None
        self.output = Linear(config.hidden_size, config.vocab_size, bias=False, weight=tied)

    def compiled_region(self, scope: str) -> str | None:
        """Each layer is compiled by itself; nothing else is."""
        layer = _LAYER.match(scope)
        return layer[0] if layer else None

    def forward(self, input_ids: Tensor, labels: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        position_ids : of packed documents, each from 0; of one document if not given
        """
        logits = self._logits(input_ids, position_ids)
        ignored = F.full((labels.shape[0], 1), int64)
        labels = F.cat((labels[..., 1:], ignored), 1)
        with active_tape().in_scope("loss"):
            if isinstance(logits, Tensor):
                logits = logits.reshape(-1, logits.shape[-1])
                return F.cross_entropy(logits, labels.reshape(-1))
            return self._loss_of_parts(logits, labels)

    def _logits(self, tokens: Tensor, input_pos: Tensor | None) -> Tensor | list[Tensor]:
        """The scores of all words: in fp32, or those of parts of the tokens in the dtype of the features."""
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, input_pos)
        h = self.norm(h)
        if self.options.loss_chunks is None:
            return self.output(h).float()
        return [self.output(chunk) for chunk in h.chunk(self.options.loss_chunks, 1)]

    def _loss_of_parts(self, logits: list[Tensor], labels: Tensor) -> Tensor:
        """`modules/loss/ce_chunked_output_loss.py`."""
        total_elements = F.ne(labels, -100).sum()
        targets = [chunk.reshape(-1) for chunk in labels.chunk(len(logits), 1)]
        logits = [chunk.reshape(-1, chunk.shape[-1]) for chunk in logits]
        total_loss: Tensor | None = None
        for logits_chunk, target in zip(logits, targets, strict=True):
            if total_loss is None:
                total_loss = 0.0 + self._cross_entropy(logits_chunk, target)
            else:
                total_loss = total_loss.add_(self._cross_entropy(logits_chunk, target))
        assert total_loss is not None
        return total_loss / total_elements

    def _cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.options.compile:
            return CompiledCrossEntropy.apply(logits, labels)
        return F.cross_entropy(logits.float(), labels, "sum")


ARCHITECTURES = (Architecture("TransformerDecoder", "torchtune", TorchtuneConfig, TorchtuneDecoder),)
