"""MPT: as transformers writes it (`MptForCausalLM`), and as LLM Foundry does, which trains it (`MPTForCausalLM`).

transformers has ALiBi, no biases and no fused attention. LLM Foundry has learned positions or ALiBi, biases unless
``no_bias``, and FlashAttention. Both classes read one format of configuration, with other defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend, repeat_kv
from buddysim.training.architectures.blocks.layers import Dropout, Embedding, LayerNorm, Linear
from buddysim.training.architectures.blocks.loss import Head
from buddysim.training.architectures.blocks.low_precision_norm import LowPrecisionLayerNorm
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.model_config import (
    Depth,
    ModelConfig,
    Positions,
    Positive,
    Probability,
    Size,
    Vocabulary,
    check_multiple,
    problem,
)
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bool8, float32, int32
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import Attention, ConfigOptions


class MptAttentionConfig(BaseModel):
    """Keys of ``attn_config``; None where the two classes have different defaults."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    attn_type: Literal["multihead_attention", "multiquery_attention", "grouped_query_attention"] = "multihead_attention"
    attn_pdrop: Probability = 0.0
    clip_qkv: Positive | None = None
    softmax_scale: Positive | None = None
    kv_n_heads: Size | None = None
    alibi: bool | None = None
    qk_ln: Literal[False] = False
    prefix_lm: Literal[False] = False
    rope: Literal[False] = False


class MptConfig(ModelConfig):
    """Keys of transformers' `MptConfig`."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_attention_heads": "n_heads",
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
    }

    vocab_size: Vocabulary
    d_model: Size
    n_heads: Size
    n_layers: Depth
    expansion_ratio: Annotated[int, Field(ge=1, le=1024)] = 4
    max_seq_len: Positions = 2048
    resid_pdrop: Probability = 0.0
    emb_pdrop: Probability = 0.0
    layer_norm_epsilon: Positive = 1e-5
    learned_pos_emb: bool = True
    attn_config: MptAttentionConfig = MptAttentionConfig()
    no_bias: bool = True
    tie_word_embeddings: bool = True

    @model_validator(mode="before")
    @classmethod
    def _no_null(cls, content: dict[str, Any]) -> dict[str, Any]:
        """``attn_config`` may be null, which means its defaults."""
        return {name: value for name, value in content.items() if name != "attn_config" or value is not None}

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence."""
        return self.max_seq_len

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        kind = self.attn_config.attn_type
        if kind == "multiquery_attention":
            return 1
        return (self.attn_config.kv_n_heads or self.n_heads) if kind == "grouped_query_attention" else self.n_heads

    def check(self) -> None:
        """Refuse heads that don't divide the features."""
        check_multiple("d_model", self.d_model, "n_heads", self.n_heads)
        check_multiple("n_heads", self.n_heads, "attn_config.kv_n_heads", self.key_value_heads)


class TransformersMptConfig(MptConfig):
    """What transformers' class can do of it: biases, positions and grouped heads are silently left out there."""

    def check(self) -> None:
        """Refuse keys that transformers would read and not heed."""
        super().check()
        if self.key_value_heads != self.n_heads:
            raise problem("attn_config.attn_type", "multihead_attention", self.attn_config.attn_type)
        if self.attn_config.alibi is False:
            raise problem("attn_config.alibi", "true (MptForCausalLM always has ALiBi)", False)


class FoundryMptConfig(MptConfig):
    """Keys of LLM Foundry's `MPTConfig`."""

    REFUSED: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "norm_type": (None, "low_precision_layernorm", "layernorm"),
        "residual_modification": (None,),
    }

    no_bias: bool = False
    norm_type: str = "low_precision_layernorm"

    @property
    def alibi(self) -> bool:
        """Whether attention has a bias for each head and distance; there are no learned positions then."""
        return bool(self.attn_config.alibi)

    @property
    def has_positions(self) -> bool:
        """Whether positions are learned."""
        return self.learned_pos_emb and not self.alibi


def _scaling(config: MptConfig) -> float:
    return config.attn_config.softmax_scale or 1 / math.sqrt(config.d_model / config.n_heads)


def alibi_tensor(heads: int, length: int) -> Tensor:
    """Biases of shape (heads, 1, tokens) in fp32, for all positions that the model has, made on the GPU."""
    alibi = F.arange(1 - length, 1, dtype=int32).view(1, 1, 1, length)
    power = 2 ** math.ceil(math.log2(heads))
    base = F.arange(1, power + 1).float()
    base = base * (8 / power)
    slopes = 1.0 / F.power(2, base)
    slopes = slopes.view(1, power, 1, 1)
    if power != heads:
        slopes = F.cat([slopes[:, 1::2], slopes[:, ::2]], 1)[:, :heads]
    alibi = alibi * slopes
    return alibi.squeeze(0)


class MptAttention(Module):
    """transformers' attention, written out."""

    def __init__(self, config: MptConfig) -> None:
        super().__init__()
        self.heads, self.head_dim = config.n_heads, config.d_model // config.n_heads
        self.scaling, self.dropout = _scaling(config), config.attn_config.attn_pdrop
        self.clip_qkv = config.attn_config.clip_qkv
        self.Wqkv = Linear(config.d_model, 3 * config.d_model, bias=False)
        self.out_proj = Linear(config.d_model, config.d_model, bias=False)

    def forward(self, hidden_states: Tensor, position_bias: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        batch, length = hidden_states.shape[:2]
        mixed_qkv = self.Wqkv(hidden_states)
        if self.clip_qkv:
            mixed_qkv = F.clamp(mixed_qkv, -self.clip_qkv, self.clip_qkv)
        query_states, key_states, value_states = mixed_qkv.chunk(3, 2)
        query_states = query_states.reshape(batch, length, self.heads, self.head_dim).transpose(1, 2)
        key_states = key_states.reshape(batch, length, self.heads, self.head_dim).transpose(1, 2)
        value_states = value_states.reshape(batch, length, self.heads, self.head_dim).transpose(1, 2)
        attention_scores = F.matmul(query_states, key_states.transpose(-1, -2)) * self.scaling
        start = max(0, position_bias.shape[2] - length)
        position_bias = position_bias[:, 0:, start:]
        attention_scores = attention_scores + position_bias
        attention_scores = attention_scores.masked_fill(mask, -1e30)
        attn_weights = F.softmax(attention_scores.float(), -1).to(value_states.dtype)
        attn_weights = F.dropout(attn_weights, self.dropout)
        context_states = F.matmul(attn_weights, value_states)
        context_states = context_states.permute(0, 2, 1, 3).contiguous().view(batch, length, -1)
        attn_output = self.out_proj(context_states)
        return attn_output, attn_weights


class GELU(Module):
    """PyTorch's module of that name."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the function's values."""
        return F.gelu(x)


class MptMLP(Module):
    """Two products with GELU between, added to the layer's input."""

    def __init__(self, config: MptConfig) -> None:
        super().__init__()
        self.up_proj = Linear(config.d_model, 4 * config.d_model, bias=False)
        self.act = GELU()
        self.down_proj = Linear(4 * config.d_model, config.d_model, bias=False)
        self.hidden_dropout = config.attn_config.attn_pdrop

    def forward(self, hidden_states: Tensor, residual: Tensor) -> Tensor:
        """Return the sum."""
        hidden_states = self.act(self.up_proj(hidden_states))
        intermediate_output = self.down_proj(hidden_states)
        output = F.dropout(intermediate_output, self.hidden_dropout)
        output = output + residual
        return output


class MptBlock(Module):
    """Attention and two products, each after a norm without bias."""

    def __init__(self, config: MptConfig) -> None:
        super().__init__()
        self.norm_1 = LayerNorm(config.d_model, bias=False)
        self.attn = MptAttention(config)
        self.norm_2 = LayerNorm(config.d_model, bias=False)
        self.ffn = MptMLP(config)
        self.resid_attn_dropout = Dropout(config.attn_config.attn_pdrop)

    def forward(self, hidden_states: Tensor, position_bias: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's output, and the weights of the tokens."""
        layernorm_output = self.norm_1(hidden_states)
        residual = hidden_states
        attn_outputs, attn_weights = self.attn(layernorm_output, position_bias, mask)
        hidden_states = self.resid_attn_dropout(attn_outputs) + residual
        layernorm_output = self.norm_2(hidden_states)
        residual = hidden_states
        output = self.ffn(layernorm_output, residual)
        return output, attn_weights


class MptModel(Module):
    """Embedding, layers, a last norm."""

    def __init__(self, config: MptConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options, self.heads, self.positions = options, config.n_heads, config.max_seq_len
        self.wte = Embedding(config.vocab_size, config.d_model)
        self.blocks = [MptBlock(config) for _ in range(config.n_layers)]
        self.norm_f = LayerNorm(config.d_model, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of all tokens."""
        inputs_embeds = self.wte(input_ids)
        hidden_states = inputs_embeds
        alibi = alibi_tensor(self.heads, self.positions)
        additive = causal_mask(self.options, inputs_embeds)
        assert additive is not None
        mask = additive.to(bool8)
        del additive
        for block in self.blocks:
            outputs = block(hidden_states, alibi, mask)
            hidden_states = outputs[0]
        hidden_states = self.norm_f(hidden_states)
        return hidden_states


class MptForCausalLM(CausalModel):
    """transformers' model, with the embedding as output matrix."""

    ATTENTIONS: ClassVar[tuple[Attention, ...]] = ("eager",)

    def __init__(self, config: TransformersMptConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.transformer = MptModel(config, self.options)
        tied = self.transformer.wte.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.d_model, config.vocab_size, bias=False, weight=tied)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.transformer(input_ids)


class FoundryAttention(Module):
    """LLM Foundry's attention: one product, then PyTorch's scores or FlashAttention."""

    def __init__(self, config: FoundryMptConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.heads, self.kv_heads = config.n_heads, config.key_value_heads
        self.head_dim = config.d_model // config.n_heads
        self.call = AttentionCall(
            scaling=_scaling(config), groups=self.heads // self.kv_heads, dropout=config.attn_config.attn_pdrop
        )
        self.clip_qkv = config.attn_config.clip_qkv
        self.kv_features = self.kv_heads * self.head_dim
        self.Wqkv = Linear(config.d_model, config.d_model + 2 * self.kv_features, bias=not config.no_bias)
        self.out_proj = Linear(config.d_model, config.d_model, bias=not config.no_bias)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return the layer's output, of the shape of its input."""
        batch, length, features = x.shape
        qkv = self.Wqkv(x)
        if self.clip_qkv:
            qkv = F.clamp(qkv, -self.clip_qkv, self.clip_qkv)
        query, key, value = qkv.split([features, self.kv_features, self.kv_features], 2)
        query = query.view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        key = key.view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        value = value.view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        context, _ = attend(self.options, self.call, query, key, value, bias, _foundry_eager)
        context = context.reshape(batch, length, -1)
        return self.out_proj(context)


def _foundry_eager(call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Weighted:
    key = repeat_kv(key, call.groups)
    value = repeat_kv(value, call.groups)
    attn_weight = F.matmul(query, key.transpose(2, 3)) * call.scaling
    if bias is not None:
        attn_weight = attn_weight + bias[:, :, :, 0 : key.shape[2]]
    length = query.shape[2]
    mask = F.ones((length, length), float32)
    mask = F.tril(mask)
    mask = mask.to(bool8)
    mask = F.logical_not(mask)
    attn_weight = attn_weight.masked_fill(mask.view(1, 1, length, length), -1e30)
    attn_weight = F.softmax(attn_weight, -1)
    attn_weight = F.dropout(attn_weight, call.dropout)
    out = F.matmul(attn_weight.to(value.dtype), value)
    return out.transpose(1, 2), None


class FoundryMLP(Module):
    """Two products with GELU between."""

    def __init__(self, config: FoundryMptConfig) -> None:
        super().__init__()
        inner = config.expansion_ratio * config.d_model
        self.up_proj = Linear(config.d_model, inner, bias=not config.no_bias)
        self.act = GELU()
        self.down_proj = Linear(inner, config.d_model, bias=not config.no_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        return self.down_proj(self.act(self.up_proj(x)))


def _norm(config: FoundryMptConfig) -> Module:
    norm = LayerNorm if config.norm_type == "layernorm" else LowPrecisionLayerNorm
    return norm(config.d_model, bias=not config.no_bias)


class FoundryBlock(Module):
    """Attention and two products, each after a norm and added to its input."""

    def __init__(self, config: FoundryMptConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.norm_1 = _norm(config)
        self.attn = FoundryAttention(config, options)
        self.norm_2 = _norm(config)
        self.ffn = FoundryMLP(config)
        self.resid_attn_dropout = Dropout(config.resid_pdrop)
        self.resid_ffn_dropout = Dropout(config.resid_pdrop)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return the layer's output."""
        a = self.norm_1(x)
        b = self.attn(a, bias)
        x = x + self.resid_attn_dropout(b)
        m = self.norm_2(x)
        n = self.ffn(m)
        x = x + self.resid_ffn_dropout(n)
        return x


class FoundryModel(Module):
    """Embeddings, layers, a last norm."""

    def __init__(self, config: FoundryMptConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options, self.alibi = options, config.alibi
        self.heads, self.positions = config.n_heads, config.max_seq_len
        self.wte = Embedding(config.vocab_size, config.d_model)
        self.wpe = Embedding(config.max_seq_len, config.d_model) if config.has_positions else None
        self.emb_drop = Dropout(config.emb_pdrop)
        self.blocks = [FoundryBlock(config, options) for _ in range(config.n_layers)]
        self.norm_f = _norm(config)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of all tokens."""
        x = self.wte(input_ids)
        if self.wpe is not None:
            positions = F.arange(input_ids.shape[1]).unsqueeze(0)
            x = x + self.wpe(positions)
        x = self.emb_drop(x)
        bias = self._bias()
        for block in self.blocks:
            x = block(x, bias)
        x = self.norm_f(x)
        return x

    def _bias(self) -> Tensor | None:
        """ALiBi in fp32 for written-out attention; FlashAttention takes one slope for each head."""
        if not self.alibi or self.options.attention == "flash":
            return None
        return alibi_tensor(self.heads, self.positions).unsqueeze(0)


class MPTForCausalLM(CausalModel):
    """LLM Foundry's model; a tied output matrix is the embedding, not a layer of its own."""

    def __init__(self, config: FoundryMptConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.transformer = FoundryModel(config, self.options)
        self.lm_head = None if config.tie_word_embeddings else Linear(config.d_model, config.vocab_size, bias=False)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.transformer(input_ids)

    def logits(self, hidden_states: Tensor) -> Tensor:
        """Return the scores of all words."""
        return (
            F.linear(hidden_states, self.transformer.wte.weight)
            if self.lm_head is None
            else self.lm_head(hidden_states)
        )

    def head(self) -> Head:
        """Return the output matrix, for losses that are computed in parts."""
        return Head(self.logits, self.transformer.wte.weight if self.lm_head is None else self.lm_head.weight)


ARCHITECTURES = (
    Architecture("MptForCausalLM", "mpt", TransformersMptConfig, MptForCausalLM),
    Architecture("MPTForCausalLM", "mpt", FoundryMptConfig, MPTForCausalLM),
)
