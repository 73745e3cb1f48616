"""Qwen3-Next's linear attention: a short convolution, the gated delta rule, a norm with a gate."""

from __future__ import annotations

from buddysim.training.architectures.blocks.causal_conv import CausalConv
from buddysim.training.architectures.blocks.delta_rule import gated_delta_rule
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.qwen3_next_config import Qwen3NextConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor


class GatedRMSNorm(Module):
    """A norm before the gate, whose activation is in fp32."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))

    def forward(self, hidden_states: Tensor, gate: Tensor) -> Tensor:
        """Return the gated features, in the dtype of the input."""
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * (variance + 1e-6).rsqrt()
        hidden_states = self.weight * hidden_states.to(input_dtype)
        hidden_states = hidden_states * F.silu(gate.to(float32))
        return hidden_states.to(input_dtype)


class GatedDeltaNet(Module):
    """Heads of keys lie next to the values and gates of their group in one product."""

    def __init__(self, config: Qwen3NextConfig) -> None:
        super().__init__()
        self.key_heads, self.heads = config.linear_num_key_heads, config.linear_num_value_heads
        self.key_features, self.features = config.linear_key_head_dim, config.linear_value_head_dim
        keys, values = self.key_heads * self.key_features, self.heads * self.features
        self.parts = [keys, keys, values]
        self.dt_bias = Parameter((self.heads,))
        self.A_log = Parameter((self.heads,))
        self.conv1d = CausalConv(sum(self.parts), config.linear_conv_kernel_dim, config.hidden_act, bias=False)
        self.in_proj_qkvz = Linear(config.hidden_size, 2 * keys + 2 * values, bias=False)
        self.in_proj_ba = Linear(config.hidden_size, 2 * self.heads, bias=False)
        self.norm = GatedRMSNorm(self.features)
        self.out_proj = Linear(values, config.hidden_size, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output, of the shape of its input."""
        projected_states_qkvz = self.in_proj_qkvz(hidden_states)
        projected_states_ba = self.in_proj_ba(hidden_states)
        query, key, value, z, b, a = self.in_order(projected_states_qkvz, projected_states_ba)
        query, key, value = (x.reshape(x.shape[0], x.shape[1], -1) for x in (query, key, value))
        mixed_qkv = F.cat((query, key, value), -1)
        mixed_qkv = mixed_qkv.transpose(1, 2)
        mixed_qkv = self.conv1d(mixed_qkv)
        mixed_qkv = mixed_qkv.transpose(1, 2)
        query, key, value = mixed_qkv.split(self.parts, -1)
        query = query.reshape(query.shape[0], query.shape[1], -1, self.key_features)
        key = key.reshape(key.shape[0], key.shape[1], -1, self.key_features)
        value = value.reshape(value.shape[0], value.shape[1], -1, self.features)
        beta = F.sigmoid(b)
        g = -self.A_log.float().exp() * F.softplus(a.float() + self.dt_bias)
        core_attn_out = gated_delta_rule(query, key, value, g, beta)
        shape = z.shape
        core_attn_out = core_attn_out.reshape(-1, core_attn_out.shape[-1])
        z = z.reshape(-1, z.shape[-1])
        core_attn_out = self.norm(core_attn_out, z)
        core_attn_out = core_attn_out.reshape(*shape)
        core_attn_out = core_attn_out.reshape(core_attn_out.shape[0], core_attn_out.shape[1], -1)
        return self.out_proj(core_attn_out)

    def in_order(self, mixed_qkvz: Tensor, mixed_ba: Tensor) -> tuple[Tensor, ...]:
        """Return queries, keys, values, gates, and both numbers of each value head."""
        batch, tokens = mixed_qkvz.shape[:2]
        group = self.heads // self.key_heads
        wide = group * self.features
        mixed_qkvz = mixed_qkvz.view(batch, tokens, self.key_heads, 2 * self.key_features + 2 * wide)
        mixed_ba = mixed_ba.view(batch, tokens, self.key_heads, 2 * group)
        query, key, value, z = mixed_qkvz.split([self.key_features, self.key_features, wide, wide], 3)
        b, a = mixed_ba.split([group, group], 3)
        value = value.reshape(batch, tokens, -1, self.features)
        z = z.reshape(batch, tokens, -1, self.features)
        b = b.reshape(batch, tokens, self.heads)
        a = a.reshape(batch, tokens, self.heads)
        return query, key, value, z, b, a
