"""GPT-NeoX and Pythia: `modeling_gpt_neox.py` of transformers."""

from __future__ import annotations

from typing import ClassVar

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Dropout, Embedding, LayerNorm, Linear
from buddysim.training.architectures.blocks.masks import causal_mask
from buddysim.training.architectures.blocks.rotary import RotaryEmbedding, rotate_half
from buddysim.training.architectures.decoder import Rotations
from buddysim.training.architectures.language_model import CausalModel
from buddysim.training.architectures.model_config import ActivationName, Positive, Probability, check_multiple
from buddysim.training.architectures.rotary_config import RotaryConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class GPTNeoXConfig(RotaryConfig):
    """Keys of `GPTNeoXConfig`; a quarter of each head is rotated unless the file says otherwise."""

    PARTIAL: ClassVar[float] = 0.25

    hidden_act: ActivationName = "gelu"
    hidden_dropout: Probability = 0.0
    layer_norm_eps: Positive = 1e-5
    use_parallel_residual: bool = True
    attention_bias: bool = True

    def check(self) -> None:
        """Refuse heads that don't divide the features."""
        check_multiple("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        super().check()


class GPTNeoXAttention(Module):
    """One product for queries, keys and values, which lie head by head."""

    def __init__(self, config: GPTNeoXConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.head_size = config.head_features
        self.call = AttentionCall(scaling=self.head_size**-0.5, dropout=config.attention_dropout)
        self.query_key_value = Linear(config.hidden_size, 3 * config.hidden_size, bias=config.attention_bias)
        self.dense = Linear(config.hidden_size, config.hidden_size, bias=config.attention_bias)

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, 3 * self.head_size)
        qkv = self.query_key_value(hidden_states).view(*hidden_shape).transpose(1, 2)
        query_states, key_states, value_states = qkv.chunk(3, -1)
        cos, sin = position_embeddings
        query_states, key_states = _rotated(query_states, key_states, cos, sin)
        attn_output, attn_weights = attend(self.options, self.call, query_states, key_states, value_states, mask)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.dense(attn_output)
        return attn_output, attn_weights


def _rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate the first features of each head; the rest is joined on."""
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    rotary_dim = cos.shape[-1]
    q_rot, q_pass = query[..., :rotary_dim], query[..., rotary_dim:]
    k_rot, k_pass = key[..., :rotary_dim], key[..., rotary_dim:]
    q_embed = (q_rot * cos) + (rotate_half(q_rot) * sin)
    k_embed = (k_rot * cos) + (rotate_half(k_rot) * sin)
    q_embed = F.cat([q_embed, q_pass], -1)
    k_embed = F.cat([k_embed, k_pass], -1)
    return q_embed, k_embed


class GPTNeoXMLP(Module):
    """Two products with an activation between."""

    def __init__(self, config: GPTNeoXConfig) -> None:
        super().__init__()
        self.dense_h_to_4h = Linear(config.hidden_size, config.intermediate_size)
        self.dense_4h_to_h = Linear(config.intermediate_size, config.hidden_size)
        self.act = Activation(config.hidden_act)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        hidden_states = self.dense_h_to_4h(hidden_states)
        hidden_states = self.act(hidden_states)
        hidden_states = self.dense_4h_to_h(hidden_states)
        return hidden_states


class GPTNeoXLayer(Module):
    """Attention and the products side by side, both of the layer's input, or one after the other."""

    def __init__(self, config: GPTNeoXConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.use_parallel_residual = config.use_parallel_residual
        self.input_layernorm = LayerNorm(config.hidden_size)
        self.post_attention_layernorm = LayerNorm(config.hidden_size)
        self.post_attention_dropout = Dropout(config.hidden_dropout)
        self.post_mlp_dropout = Dropout(config.hidden_dropout)
        self.attention = GPTNeoXAttention(config, options)
        self.mlp = GPTNeoXMLP(config)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        attn_output, _ = self.attention(self.input_layernorm(hidden_states), mask, position_embeddings)
        attn_output = self.post_attention_dropout(attn_output)
        if self.use_parallel_residual:
            mlp_output = self.mlp(self.post_attention_layernorm(hidden_states))
            mlp_output = self.post_mlp_dropout(mlp_output)
            hidden_states = mlp_output + attn_output + hidden_states
        else:
            attn_output = attn_output + hidden_states
            mlp_output = self.mlp(self.post_attention_layernorm(attn_output))
            mlp_output = self.post_mlp_dropout(mlp_output)
            hidden_states = mlp_output + attn_output
        return hidden_states


class GPTNeoXModel(Module):
    """Embedding, layers, a last norm."""

    def __init__(self, config: GPTNeoXConfig, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.embed_in = Embedding(config.vocab_size, config.hidden_size)
        self.emb_dropout = Dropout(config.hidden_dropout)
        self.layers = [GPTNeoXLayer(config, options) for _ in range(config.num_hidden_layers)]
        self.final_layer_norm = LayerNorm(config.hidden_size)
        self.rotary_emb = RotaryEmbedding(config)

    def forward(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """Return the features of all tokens."""
        inputs_embeds = self.embed_in(input_ids)
        if position_ids is None:
            position_ids = F.arange(inputs_embeds.shape[1]) + 0
            position_ids = position_ids.unsqueeze(0)
        mask = causal_mask(self.options, inputs_embeds, position_ids)
        hidden_states = self.emb_dropout(inputs_embeds)
        position_embeddings = self.rotary_emb(hidden_states, position_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states, mask, position_embeddings, position_ids)
        hidden_states = self.final_layer_norm(hidden_states)
        return hidden_states


class GPTNeoXForCausalLM(CausalModel):
    """The model with an output matrix of its own."""

    PACKED: ClassVar[bool] = True

    def __init__(self, config: GPTNeoXConfig, options: ConfigOptions) -> None:
        super().__init__(config, options)
        self.gpt_neox = GPTNeoXModel(config, self.options)
        tied = self.gpt_neox.embed_in.weight if config.tie_word_embeddings else None
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False, weight=tied)

    def hidden_states(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Return the features of all tokens after the last norm."""
        return self.gpt_neox(input_ids, position_ids)


ARCHITECTURES = (Architecture("GPTNeoXForCausalLM", "gpt_neox", GPTNeoXConfig, GPTNeoXForCausalLM),)
