"""OPT: `modeling_opt.py` of transformers."""

from __future__ import annotations

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Embedding, LayerNorm, Linear
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.model_config import (
    ActivationName,
    Depth,
    ModelConfig,
    Positions,
    Probability,
    Size,
    Vocabulary,
    check_multiple,
    check_padding,
    problem,
)
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import int64
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions

#: Rows before the first position's.
_OFFSET = 2


class OPTConfig(ModelConfig):
    """Keys of `OPTConfig`."""

    vocab_size: Vocabulary
    hidden_size: Size
    num_hidden_layers: Depth
    num_attention_heads: Size
    ffn_dim: Size
    max_position_embeddings: Positions = 2048
    do_layer_norm_before: bool = True
    word_embed_proj_dim: Size | None = None
    dropout: Probability = 0.1
    attention_dropout: Probability = 0.0
    activation_function: ActivationName = "relu"
    layerdrop: float = 0.0
    enable_bias: bool = True
    layer_norm_elementwise_affine: bool = True
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 1

    @property
    def embedding_features(self) -> int:
        """Features of a word's embedding."""
        return self.word_embed_proj_dim or self.hidden_size

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest sequence."""
        return self.max_position_embeddings

    def check(self) -> None:
        """Refuse heads that don't divide the features, and layers that are left out by chance."""
        check_multiple("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_padding(self.pad_token_id, self.vocab_size)
        if self.layerdrop != 0:
            raise problem("layerdrop", "0 (layers left out by chance aren't simulated)", self.layerdrop)


class OPTLearnedPositionalEmbedding(Embedding):
    """Positions, after two rows that are never read."""

    def forward(self, position_ids: Tensor) -> Tensor:
        """Return the features of positions."""
        return super().forward(position_ids + _OFFSET)


class OPTAttention(Module):
    """Attention whose queries are scaled before the product."""

    def __init__(self, config: OPTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.num_heads = config.num_attention_heads
        self.head_dim = config.hidden_size // self.num_heads
        self.call = AttentionCall(scaling=1.0, dropout=config.attention_dropout)
        features, bias = config.hidden_size, config.enable_bias
        self.k_proj = Linear(features, features, bias=bias)
        self.v_proj = Linear(features, features, bias=bias)
        self.q_proj = Linear(features, features, bias=bias)
        self.out_proj = Linear(features, features, bias=bias)

    def forward(self, hidden_states: Tensor, mask: Tensor | None) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        batch, length, _ = hidden_states.shape
        query_states = self.q_proj(hidden_states) * self.head_dim**-0.5
        query_states = query_states.view(batch, -1, self.num_heads, self.head_dim).transpose(1, 2)
        key_states = self.k_proj(hidden_states)
        value_states = self.v_proj(hidden_states)
        key_states = key_states.view(batch, -1, self.num_heads, self.head_dim).transpose(1, 2)
        value_states = value_states.view(batch, -1, self.num_heads, self.head_dim).transpose(1, 2)
        attn_output, attn_weights = attend(self.options, self.call, query_states, key_states, value_states, mask)
        attn_output = attn_output.reshape(batch, length, -1).contiguous()
        attn_output = self.out_proj(attn_output)
        return attn_output, attn_weights


class OPTDecoderLayer(Module):
    """Attention and two products, with a norm before or after each."""

    def __init__(self, config: OPTConfig, options: ConfigOptions) -> None:
        super().__init__()
        features, affine = config.hidden_size, config.layer_norm_elementwise_affine
        self.norm_before, self.dropout = config.do_layer_norm_before, config.dropout
        self.self_attn = OPTAttention(config, options)
        self.activation_fn = Activation(config.activation_function)
        self.self_attn_layer_norm = LayerNorm(features, elementwise_affine=affine)
        self.fc1 = Linear(features, config.ffn_dim, bias=config.enable_bias)
        self.fc2 = Linear(config.ffn_dim, features, bias=config.enable_bias)
        self.final_layer_norm = LayerNorm(features, elementwise_affine=affine)

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_ids: Tensor) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        if self.norm_before:
            hidden_states = self.self_attn_layer_norm(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, mask)
        hidden_states = F.dropout(hidden_states, self.dropout)
        hidden_states = residual + hidden_states
        if not self.norm_before:
            hidden_states = self.self_attn_layer_norm(hidden_states)
        shape = hidden_states.shape
        hidden_states = hidden_states.reshape(-1, shape[-1])
        residual = hidden_states
        if self.norm_before:
            hidden_states = self.final_layer_norm(hidden_states)
        hidden_states = self.fc1(hidden_states)
        hidden_states = self.activation_fn(hidden_states)
        hidden_states = self.fc2(hidden_states)
        hidden_states = F.dropout(hidden_states, self.dropout)
        hidden_states = (residual + hidden_states).view(*shape)
        if not self.norm_before:
            hidden_states = self.final_layer_norm(hidden_states)
        return hidden_states


class OPTDecoder(Module):
    """Embeddings, two products where words have other features than layers, layers, a last norm."""

    def __init__(self, config: OPTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        features, words = config.hidden_size, config.embedding_features
        self.embed_tokens = Embedding(config.vocab_size, words, padding_idx=config.pad_token_id)
        self.embed_positions = OPTLearnedPositionalEmbedding(config.max_position_embeddings + _OFFSET, features)
        self.project_out = Linear(features, words, bias=False) if words != features else None
        self.project_in = Linear(words, features, bias=False) if words != features else None
        self.final_layer_norm = (
            LayerNorm(features, elementwise_affine=config.layer_norm_elementwise_affine)
            if config.do_layer_norm_before
            else None
        )
        self.layers = [OPTDecoderLayer(config, options) for _ in range(config.num_hidden_layers)]

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the features of all tokens."""
        input_ids = input_ids.view(-1, input_ids.shape[-1])
        inputs_embeds = self.embed_tokens(input_ids)
        position_attention_mask = F.ones(inputs_embeds.shape[:2])
        position_ids = F.cumsum(position_attention_mask, 1)
        position_ids = (position_ids * position_attention_mask - 1).to(int64)
        position_ids = position_ids[:, 0:]
        mask = causal_mask(self.options, inputs_embeds)
        pos_embeds = self.embed_positions(position_ids)
        if self.project_in is not None:
            inputs_embeds = self.project_in(inputs_embeds)
        hidden_states = inputs_embeds + pos_embeds
        for layer in self.layers:
            hidden_states = layer(hidden_states, mask, position_ids)
        if self.final_layer_norm is not None:
            hidden_states = self.final_layer_norm(hidden_states)
        if self.project_out is not None:
            hidden_states = self.project_out(hidden_states)
        return hidden_states


class OPTModel(Module):
    """The decoder, which is all there is."""

    def __init__(self, config: OPTConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.decoder = OPTDecoder(config, options)


class OPTForCausalLM(CausalModel):
    """The model with the embedding as output matrix."""

    def __init__(self, config: OPTConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.model = OPTModel(config, self.options)
        tied = self.model.decoder.embed_tokens.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.embedding_features, config.vocab_size, bias=False, weight=tied)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.model.decoder(input_ids)

    def logits(self, hidden_states: Tensor) -> Tensor:
        """Return the scores of all words."""
        return super().logits(hidden_states).contiguous()


ARCHITECTURES = (Architecture("OPTForCausalLM", "opt", OPTConfig, OPTForCausalLM),)
