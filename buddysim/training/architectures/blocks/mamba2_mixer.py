"""Mamba 2's layer: a short convolution, a scan, a norm behind the gate."""

from __future__ import annotations

from buddysim.training.architectures.blocks.causal_conv import CausalConv
from buddysim.training.architectures.blocks.layers import Linear
from buddysim.training.architectures.blocks.state_space import chunk_scan
from buddysim.training.architectures.mamba2_config import Mamba2Config
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.tensor import Tensor


class GroupedGatedNorm(Module):
    """A norm of each group of features behind the gate."""

    def __init__(self, features: int, group_size: int) -> None:
        super().__init__()
        self.weight = Parameter((features,))
        self.group_size = group_size

    def forward(self, hidden_states: Tensor, gate: Tensor) -> Tensor:
        """Return the gated features, in the dtype of the input."""
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(float32)
        hidden_states = hidden_states * F.silu(gate.to(float32))
        shape = hidden_states.shape
        hidden_states_group = hidden_states.view(*shape[:-1], -1, self.group_size)
        variance = hidden_states_group.pow(2).mean(-1, keepdim=True)
        hidden_states_group = hidden_states_group * (variance + 1e-5).rsqrt()
        hidden_states = hidden_states_group.view(*shape)
        return self.weight * hidden_states.to(input_dtype)


class Mamba2Mixer(Module):
    """Features, gates, and what reads and writes the state, from one product."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.config = config
        wide = config.n_groups * config.state_size
        self.parts = [config.inner, wide, wide]
        self.dt_bias = Parameter((config.num_heads,))
        self.A_log = Parameter((config.num_heads,))
        self.D = Parameter((config.num_heads,))
        channels = sum(self.parts)
        self.conv1d = CausalConv(channels, config.conv_kernel, config.hidden_act, bias=config.use_conv_bias)
        self.in_proj = Linear(config.hidden_size, config.inner + channels + config.num_heads, bias=config.use_bias)
        self.norm = GroupedGatedNorm(config.inner, config.inner // config.n_groups)
        self.out_proj = Linear(config.inner, config.hidden_size, bias=config.use_bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Return the layer's output, of the shape of its input."""
        config, (batch, tokens, _), dtype = self.config, hidden_states.shape, hidden_states.dtype
        projected_states = self.in_proj(hidden_states)
        A = -self.A_log.float().exp()
        gate, mixed, dt = projected_states.split([config.inner, sum(self.parts), config.num_heads], -1)
        mixed = mixed.transpose(1, 2)
        mixed = self.conv1d(mixed)
        mixed = mixed.transpose(1, 2)
        hidden_states, B, C = mixed.split(self.parts, -1)
        scan_result = chunk_scan(
            hidden_states.view(batch, tokens, config.num_heads, config.head_dim),
            dt,
            A,
            B.view(batch, tokens, config.n_groups, config.state_size),
            C.view(batch, tokens, config.n_groups, config.state_size),
            config.chunk_size,
            self.D,
            self.dt_bias,
        )
        scan_output = scan_result.reshape(batch, tokens, -1)
        scan_output = self.norm(scan_output, gate)
        return self.out_proj(scan_output.to(dtype))
