"""Kernels of a transformer as people write them in Triton: attention forward and backward, cross-entropy, routing."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def attend(
    q, k, v, o, lse, scale, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1)
    rows = i * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    start = head * n * D
    query = tl.load(q + start + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    most = tl.full((BM,), -float("inf"), tl.float32)
    length = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    last = (i + 1) * BM if CAUSAL else n
    for j in range(0, last, BN):
        its = j + columns
        key = tl.load(k + start + its[None, :] * D + d[:, None], mask=its[None, :] < n, other=0.0)
        s = tl.dot(query, key) * scale
        valid = its[None, :] < n
        if CAUSAL:
            valid = valid & (rows[:, None] >= its[None, :])
        s = tl.where(valid, s, -float("inf"))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(most - new)
        value = tl.load(v + start + its[:, None] * D + d[None, :], mask=its[:, None] < n, other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(value.dtype), value)
        length = length * old + tl.sum(p, 1)
        most = new
    tl.store(o + start + rows[:, None] * D + d[None, :], (acc / length[:, None]).to(tl.float16), mask=rows[:, None] < n)
    tl.store(lse + head * n + rows, most + tl.log(length), mask=rows < n)


@triton.jit
def attend_backward(
    q, k, v, do, dq, dk, dv, lse, delta, scale, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    j = tl.program_id(0)
    head = tl.program_id(1)
    columns = j * BN + tl.arange(0, BN)
    rows = tl.arange(0, BM)
    d = tl.arange(0, D)
    start = head * n * D
    key = tl.load(k + start + columns[:, None] * D + d[None, :])
    value = tl.load(v + start + columns[:, None] * D + d[None, :])
    gk = tl.zeros((BN, D), tl.float32)
    gv = tl.zeros((BN, D), tl.float32)
    for i in range(0, n, BM):
        its = i + rows
        query = tl.load(q + start + its[:, None] * D + d[None, :])
        go = tl.load(do + start + its[:, None] * D + d[None, :])
        total = tl.load(lse + head * n + its)
        dt = tl.load(delta + head * n + its)
        p = tl.exp(tl.dot(query, tl.trans(key)) * scale - total[:, None])
        gv += tl.dot(tl.trans(p).to(tl.float16), go)
        gp = tl.dot(go, tl.trans(value))
        gs = (p * (gp - dt[:, None]) * scale).to(tl.float16)
        gk += tl.dot(tl.trans(gs), query)
        gq = tl.dot(gs, key)
        tl.atomic_add(dq + start + its[:, None] * D + d[None, :], gq)
    tl.store(dk + start + columns[:, None] * D + d[None, :], gk.to(tl.float16))
    tl.store(dv + start + columns[:, None] * D + d[None, :], gv.to(tl.float16))


@triton.jit
def cross_entropy(x, target, loss, s, V, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    t = tl.load(target + row)
    most = -float("inf")
    total = 0.0
    for i in range(0, V, BLOCK):
        c = i + tl.arange(0, BLOCK)
        value = tl.load(x + row * s + c, mask=c < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(most, tl.max(value, 0))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(value - new), 0)
        most = new
    its = tl.load(x + row * s + t).to(tl.float32)
    log_total = most + tl.log(total)
    tl.store(loss + row, log_total - its)
    tl.debug_barrier()
    for i in range(0, V, BLOCK):
        c = i + tl.arange(0, BLOCK)
        value = tl.load(x + row * s + c, mask=c < V, other=-float("inf")).to(tl.float32)
        gradient = tl.exp(value - log_total) - tl.where(c == t, 1.0, 0.0)
        tl.store(x + row * s + c, gradient.to(tl.float16), mask=c < V)


@triton.jit
def route(x, weights, experts, counts, s, E: tl.constexpr, K: tl.constexpr):
    t = tl.program_id(0)
    e = tl.arange(0, E)
    value = tl.load(x + t * s + e).to(tl.float32)
    total = 0.0
    for k in tl.static_range(K):
        best = tl.max(value, 0)
        i = tl.argmax(value, 0)
        weight = tl.exp(best)
        total += weight
        tl.store(weights + t * K + k, weight)
        tl.store(experts + t * K + k, i)
        tl.atomic_add(counts + i, 1)
        value = tl.where(e == i, -float("inf"), value)
    tl.debug_barrier()
    own = tl.arange(0, K)
    tl.store(weights + t * K + own, tl.load(weights + t * K + own) / total)
