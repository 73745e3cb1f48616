"""Phi-3 and Phi-4: `modeling_phi3.py` of transformers."""

from __future__ import annotations

from typing import Any

from buddysim.training.architectures.architecture import Architecture
from buddysim.training.architectures.blocks.activations import Activation
from buddysim.training.architectures.blocks.attention import AttentionCall, Weighted, attend
from buddysim.training.architectures.blocks.layers import Dropout, Linear
from buddysim.training.architectures.blocks.rms_norm import RMSNorm
from buddysim.training.architectures.blocks.rotary import rotate_half
from buddysim.training.architectures.decoder import DecoderModel, Rotations
from buddysim.training.architectures.model_config import (
    ActivationName,
    Positions,
    Probability,
    check_padding,
    problem,
)
from buddysim.training.architectures.rotary_config import GroupedConfig
from buddysim.training.architectures.windows import Window
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


class Phi3Config(GroupedConfig):
    """Keys of `Phi3Config`."""

    max_position_embeddings: Positions = 4096
    rms_norm_eps: float = 1e-5
    hidden_act: ActivationName = "silu"
    resid_pdrop: Probability = 0.0
    sliding_window: Window | None = None
    pad_token_id: int | None = 32000

    @classmethod
    def _adjusted(cls, parameters: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
        """Earlier versions called its scaling ``su`` or ``yarn``."""
        if parameters.get("rope_type") in ("su", "yarn"):
            return {**parameters, "rope_type": "longrope"}
        return parameters

    def check(self) -> None:
        """Refuse what transformers refuses."""
        super().check()
        check_padding(self.pad_token_id, self.vocab_size)
        if self.rope_parameters.rope_type not in ("default", "longrope"):
            raise problem("rope_parameters.rope_type", "default or longrope", self.rope_parameters.rope_type)


class Phi3Attention(Module):
    """One product for queries, keys and values, which are slices of its result."""

    def __init__(self, config: Phi3Config, options: ConfigOptions) -> None:
        super().__init__()
        self.options = options
        self.head_dim = config.head_features
        self.call = AttentionCall(
            scaling=self.head_dim**-0.5,
            groups=config.num_attention_heads // config.key_value_heads,
            dropout=config.attention_dropout,
        )
        self.query_pos = config.num_attention_heads * self.head_dim
        self.key_pos = self.query_pos + config.key_value_heads * self.head_dim
        self.o_proj = Linear(self.query_pos, config.hidden_size, bias=False)
        self.qkv_proj = Linear(config.hidden_size, 2 * self.key_pos - self.query_pos, bias=False)

    def forward(self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations) -> Weighted:
        """Return the layer's output, of the shape of its input, and the weights of the tokens."""
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        qkv = self.qkv_proj(hidden_states)
        query_states = qkv[..., : self.query_pos]
        key_states = qkv[..., self.query_pos : self.key_pos]
        value_states = qkv[..., self.key_pos :]
        query_states = query_states.view(*hidden_shape).transpose(1, 2)
        key_states = key_states.view(*hidden_shape).transpose(1, 2)
        value_states = value_states.view(*hidden_shape).transpose(1, 2)
        cos, sin = position_embeddings
        query_states, key_states = _rotated(query_states, key_states, cos, sin)
        attn_output, attn_weights = attend(self.options, self.call, query_states, key_states, value_states, mask)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output, attn_weights


def _rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate the first features of each head; the rest is joined on."""
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    rotary_dim = cos.shape[-1]
    q_rot, q_pass = query[..., :rotary_dim], query[..., rotary_dim:]
    k_rot, k_pass = key[..., :rotary_dim], key[..., rotary_dim:]
    q_embed = F.cat([(q_rot * cos) + (rotate_half(q_rot) * sin), q_pass], -1)
    k_embed = F.cat([(k_rot * cos) + (rotate_half(k_rot) * sin), k_pass], -1)
    return q_embed, k_embed


class Phi3MLP(Module):
    """A gated layer whose first two products are one."""

    def __init__(self, config: Phi3Config) -> None:
        super().__init__()
        self.gate_up_proj = Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.activation_fn = Activation(config.hidden_act)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output."""
        up_states = self.gate_up_proj(hidden_states)
        gate, up_states = up_states.chunk(2, -1)
        up_states = up_states * self.activation_fn(gate)
        return self.down_proj(up_states)


class Phi3DecoderLayer(Module):
    """Llama's layer with dropout of both results."""

    def __init__(self, config: Phi3Config, options: ConfigOptions) -> None:
        super().__init__()
        self.self_attn = Phi3Attention(config, options)
        self.mlp = Phi3MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size)
        self.post_attention_layernorm = RMSNorm(config.hidden_size)
        self.resid_attn_dropout = Dropout(config.resid_pdrop)
        self.resid_mlp_dropout = Dropout(config.resid_pdrop)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None, position_embeddings: Rotations, position_ids: Tensor
    ) -> Tensor:
        """Return the layer's output; the positions are held by a layer that is recomputed, and not read."""
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, mask, position_embeddings)
        hidden_states = residual + self.resid_attn_dropout(hidden_states)
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + self.resid_mlp_dropout(hidden_states)
        return hidden_states


class Phi3ForCausalLM(DecoderModel[Phi3Config]):
    """Fused products, partly rotated heads."""

    def __init__(self, config: Phi3Config, options: ConfigOptions) -> None:
        super().__init__(config, options, masks=[config.sliding_window], pad_token_id=config.pad_token_id)

    def make_layer(self, config: Phi3Config, index: int) -> Phi3DecoderLayer:
        """Make a layer."""
        return Phi3DecoderLayer(config, self.options)


ARCHITECTURES = (Architecture("Phi3ForCausalLM", "phi3", Phi3Config, Phi3ForCausalLM),)
