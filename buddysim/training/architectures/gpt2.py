"""GPT-2, and GPT-3's shapes: `modeling_gpt2.py` of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Dropout, Embedding, LayerNorm, Linear
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.model_config import (
    ActivationName,
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
from buddysim.training.autograd.autocast import autocast_disabled
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class GPT2Config(ModelConfig):
    """Keys of `GPT2Config`."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }

    vocab_size: Vocabulary
    n_embd: Size
    n_layer: Depth
    n_head: Size
    n_positions: Positions = 1024
    n_inner: Size | None = None
    head_dim: Size | None = None
    activation_function: ActivationName = "gelu_new"
    resid_pdrop: Probability = 0.1
    embd_pdrop: Probability = 0.1
    attn_pdrop: Probability = 0.1
    layer_norm_epsilon: Positive = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    reorder_and_upcast_attn: bool = False
    tie_word_embeddings: bool = True

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence."""
        return self.n_positions

    def check(self) -> None:
        """Refuse heads that don't divide the features."""
        check_multiple("n_embd", self.n_embd, "n_head", self.n_head)
        if self.head_dim is not None and self.head_dim * self.n_head != self.n_embd:
            raise problem("head_dim", f"n_embd / n_head = {self.n_embd // self.n_head}", self.head_dim)


class Conv1D(Module):
    """A product with the weight stored as inputs by outputs."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.weight = Parameter((inputs, outputs))
        self.bias = Parameter((outputs,))

    def forward(self, x: Tensor) -> Tensor:
        """Return the product."""
        size_out = (*x.shape[:-1], self.outputs)
        x = F.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)
        x = x.view(*size_out)
        return x


def eager_attention(call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
    """Attention as GPT-2 writes it out: softmax in the dtype of the scores, the result not made contiguous."""
    attn_weights = F.matmul(query, key.transpose(-1, -2)) * call.scaling
    if mask is not None:
        attn_weights = attn_weights + mask
    attn_weights = F.softmax(attn_weights, -1)
    attn_weights = attn_weights.to(value.dtype)
    attn_weights = F.dropout(attn_weights, call.dropout)
    attn_output = F.matmul(attn_weights, value)
    attn_output = attn_output.transpose(1, 2)
    return attn_output, attn_weights


def upcast_attention(call: AttentionCall, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Weighted:
    """Attention with scores in fp32 even under autocast (``reorder_and_upcast_attn``)."""
    batch, heads, query_length, features = query.shape
    key_length = key.shape[2]
    attn_weights = F.empty((batch * heads, query_length, key_length), float32)
    with autocast_disabled():
        q = query.reshape(-1, query_length, features)
        k = key.transpose(-1, -2).reshape(-1, features, key_length)
        attn_weights = F.baddbmm(attn_weights, q.float(), k.float(), beta=0, alpha=call.scaling)
        attn_weights = attn_weights.reshape(batch, heads, query_length, key_length)
    if mask is not None:
        attn_weights = attn_weights + mask
    attn_weights = F.softmax(attn_weights, -1)
    attn_weights = attn_weights.to(value.dtype)
    attn_weights = F.dropout(attn_weights, call.dropout)
    attn_output = F.matmul(attn_weights, value)
    attn_output = attn_output.transpose(1, 2)
    return attn_output, attn_weights


class GPT2Attention(Module):
    """One product for queries, keys and values."""

    def __init__(self, config: GPT2Config, options: ConfigOptions, index: int) -> None:
        super().__init__()
        self.options = options
        self.features = config.n_embd
        self.head_dim = config.n_embd // config.n_head
        scaling = self.head_dim**-0.5 if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            scaling /= index + 1
        self.call = AttentionCall(scaling=scaling, dropout=config.attn_pdrop)
        self.eager = upcast_attention if config.reorder_and_upcast_attn else eager_attention
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        self.resid_dropout = Dropout(config.resid_pdrop)

    def forward(self, hidden_states: Tensor, mask: Tensor | None) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        query_states, key_states, value_states = self.c_attn(hidden_states).split(self.features, 2)
        shape = (*key_states.shape[:-1], -1, self.head_dim)
        key_states = key_states.view(*shape).transpose(1, 2)
        value_states = value_states.view(*shape).transpose(1, 2)
        query_states = query_states.view(*shape).transpose(1, 2)
        attn_output, attn_weights = attend(
            self.options, self.call, query_states, key_states, value_states, mask, self.eager
        )
        attn_output = attn_output.reshape(*attn_output.shape[:-2], -1).contiguous()
        attn_output = self.c_proj(attn_output)
        attn_output = self.resid_dropout(attn_output)
        return attn_output, attn_weights


class GPT2MLP(Module):
    """Two products with an activation between."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = Conv1D(inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, inner)
        self.act = Activation(config.activation_function)
        self.dropout = Dropout(config.resid_pdrop)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        hidden_states = self.c_fc(hidden_states)
        hidden_states = self.act(hidden_states)
        hidden_states = self.c_proj(hidden_states)
        hidden_states = self.dropout(hidden_states)
        return hidden_states


class GPT2Block(Module):
    """Attention and two products, each after a norm and added to its input."""

    def __init__(self, config: GPT2Config, options: ConfigOptions, index: int) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd)
        self.attn = GPT2Attention(config, options, index)
        self.ln_2 = LayerNorm(config.n_embd)
        self.mlp = GPT2MLP(config)

    def forward(self, hidden_states: Tensor, mask: Tensor | None) -> Tensor:
        """Return the layer's output."""
        residual = hidden_states
        hidden_states = self.ln_1(hidden_states)
        attn_output, _ = self.attn(hidden_states, mask)
        hidden_states = attn_output + residual
        residual = hidden_states
        hidden_states = self.ln_2(hidden_states)
        feed_forward_hidden_states = self.mlp(hidden_states)
        hidden_states = residual + feed_forward_hidden_states
        return hidden_states


class GPT2Model(Module):
    """Embeddings of words and positions, layers, a last norm."""

    def __init__(self, config: GPT2Config, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.wte = Embedding(config.vocab_size, config.n_embd)
        self.wpe = Embedding(config.n_positions, config.n_embd)
        self.drop = Dropout(config.embd_pdrop)
        self.h = [GPT2Block(config, options, index) for index in range(config.n_layer)]
        self.ln_f = LayerNorm(config.n_embd)

    def forward(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """Return the features of all tokens."""
        input_ids = input_ids.view(-1, input_ids.shape[-1])
        inputs_embeds = self.wte(input_ids)
        if position_ids is None:
            position_ids = F.arange(inputs_embeds.shape[1]) + 0
            position_ids = position_ids.unsqueeze(0)
        position_embeds = self.wpe(position_ids)
        hidden_states = inputs_embeds + position_embeds
        mask = causal_mask(self.options, inputs_embeds, position_ids)
        hidden_states = self.drop(hidden_states)
        for block in self.h:
            hidden_states = block(hidden_states, mask)
        hidden_states = self.ln_f(hidden_states)
        hidden_states = hidden_states.view(*hidden_states.shape)
        return hidden_states


class GPT2LMHeadModel(CausalModel):
    """The model with the embedding as output matrix."""

    PACKED: ClassVar[bool] = True

    def __init__(self, config: GPT2Config, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.transformer = GPT2Model(config, self.options)
        tied = self.transformer.wte.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False, weight=tied)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.transformer(input_ids, position_ids)


ARCHITECTURES = (Architecture("GPT2LMHeadModel", "gpt2", GPT2Config, GPT2LMHeadModel),)
