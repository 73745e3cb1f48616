"""Mamba 2's scan by chunks of a sequence, as transformers writes it in PyTorch, without the package mamba-ssm."""

from __future__ import annotations

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bool8
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.tensor import Tensor


def chunk_scan(
    hidden_states: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    chunk_size: int,
    D: Parameter,
    dt_bias: Parameter,
) -> Tensor:
    """Return the result for each token, of the shape of the features (batch, tokens, heads, features).

    Parameters
    ----------
    dt : step of each head
    A : decay of each head
    B, C : what a token writes into the state and reads from it, of each group of heads
    D : how much of its features a token keeps
    """
    batch, tokens, heads, _ = hidden_states.shape
    groups = B.shape[2]
    dt = dt + dt_bias.to(dt.dtype)
    dt = F.softplus(dt)
    dt = F.clamp(dt, min=0.0, max=1e30)
    hidden_states = hidden_states.float()
    B = B.float().repeat_interleave(heads // groups, 2)
    C = C.float().repeat_interleave(heads // groups, 2)
    pad_size = -tokens % chunk_size
    D_residual = D[..., None] * _padded(hidden_states, pad_size)
    hidden_states = hidden_states * dt[..., None].float()
    A = A.to(hidden_states.dtype) * dt.float()
    hidden_states, A, B, C = [_chunks(one, pad_size, chunk_size) for one in (hidden_states, A, B, C)]
    A = A.permute(0, 3, 1, 2)
    A_cumsum = F.cumsum(A, -1)
    L = _segment_sum(A).exp()
    G = F.einsum("bclhn,bcshn->bclsh", C, B)
    M = G * L.permute(0, 2, 3, 4, 1)
    Y_diag = F.einsum("bclsh,bcshp->bclhp", M, hidden_states)
    decay_states = (A_cumsum[:, :, :, -1:] - A_cumsum).exp()
    B_decay = B * decay_states.permute(0, -2, -1, 1)[..., None]
    states = F.einsum("bclhn,bclhp->bchpn", B_decay, hidden_states)
    previous_states = F.zeros_like(states[:, :1])
    states = F.cat([previous_states, states], 1)
    decay_chunk = _segment_sum(F.pad(A_cumsum[:, :, :, -1], (1, 0))).exp().transpose(1, 3)
    new_states = F.einsum("bzch,bzhpn->bchpn", decay_chunk, states)
    states, final_state = new_states[:, :-1], new_states[:, -1]
    state_decay_out = A_cumsum.exp()
    C_times_states = F.einsum("bclhn,bchpn->bclhp", C, states)
    Y_off = C_times_states * state_decay_out.permute(0, 2, 3, 1)[..., None]
    output = (Y_diag + Y_off).contiguous()
    output = output.reshape(batch, -1, *hidden_states.shape[-2:])
    output = output + D_residual
    del final_state
    return output[:, :tokens] if pad_size else output


def _padded(x: Tensor, pad_size: int) -> Tensor:
    return F.pad(x, (0, 0, 0, 0, 0, pad_size, 0, 0) if len(x.shape) == 4 else (0, 0, 0, pad_size, 0, 0))


def _chunks(x: Tensor, pad_size: int, chunk_size: int) -> Tensor:
    x = _padded(x, pad_size)
    return x.reshape(x.shape[0], -1, chunk_size, *x.shape[2:])


def _segment_sum(x: Tensor) -> Tensor:
    """Sums of all segments that end at a token: masked, as differences of sums would lose digits."""
    length = x.shape[-1]
    x = x[..., None].expand(*x.shape, length)
    mask = F.tril(F.ones((length, length), dtype=bool8), diagonal=-1)
    x = x.masked_fill(F.logical_not(mask), 0)
    tensor_segsum = F.cumsum(x, -2)
    mask = F.tril(F.ones((length, length), dtype=bool8), diagonal=0)
    tensor_segsum = tensor_segsum.masked_fill(F.logical_not(mask), -1e30)
    return tensor_segsum
