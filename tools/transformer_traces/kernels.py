"""Triton kernels that no example has: attention over a prompt, and AdamW."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def attend(q, k, v, o, scale, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal attention of BM tokens of one head over a prompt of n tokens: running maximum, sum and result."""
    head = tl.program_id(1) * n * D
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    own = head + row[:, None] * D + column[None, :]
    query = tl.load(q + own)
    highest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        at = start + tl.arange(0, BN)
        key = tl.load(k + head + at[None, :] * D + column[:, None])
        score = tl.dot(query, key) * scale
        score = tl.where(at[None, :] <= row[:, None], score, float("-inf"))
        now = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp(score - now[:, None])
        before = tl.exp(highest - now)
        total = total * before + tl.sum(weight, 1)
        value = tl.load(v + head + at[:, None] * D + column[None, :])
        result = result * before[:, None] + tl.dot(weight.to(tl.bfloat16), value)
        highest = now
    tl.store(o + own, (result / total[:, None]).to(tl.bfloat16))


@triton.jit
def adamw(weight, gradient, mean, square, copy, rate, corrected_mean, corrected_square, BLOCK: tl.constexpr):
    """Update weights in single precision, their two means, and the copy in bfloat16 that the model reads."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slope = tl.load(gradient + at)
    first = tl.load(mean + at) * 0.9 + slope * 0.1
    second = tl.load(square + at) * 0.999 + slope * slope * 0.001
    value = tl.load(weight + at) * (1 - rate * 0.01)
    value -= rate * (first / corrected_mean) / (tl.sqrt(second / corrected_square) + 1e-8)
    tl.store(mean + at, first)
    tl.store(square + at, second)
    tl.store(weight + at, value)
    tl.store(copy + at, value.to(tl.bfloat16))
