"""Kernels whose accesses were counted by hand from layout and width (E1 to E11), with the arguments of each launch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(o + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(o, x, so, sx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * sx + column, mask=mask, other=-float("inf"))
    value = value - tl.max(value, 0)
    exponential = tl.exp(value)
    tl.store(o + row * so + column, exponential / tl.sum(exponential, 0), mask=mask)


@triton.jit
def layer_norm(x, w, b, o, mean, rstd, s, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * s + column, mask=mask, other=0.0).to(tl.float32)
    mu = tl.sum(value, 0) / n
    centred = tl.where(mask, value - mu, 0.0)
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, inverse)
    scaled = centred * inverse * tl.load(w + column, mask=mask) + tl.load(b + column, mask=mask)
    tl.store(o + row * s + column, scaled, mask=mask)


@triton.jit
def rms_norm(x, w, o, s, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        column = k + tl.arange(0, BLOCK)
        value = tl.load(x + row * s + column, mask=column < n, other=0.0).to(tl.float32)
        squares += value * value
    inverse = tl.rsqrt(tl.sum(squares, 0) / n + eps)
    for k in range(0, n, BLOCK):
        column = k + tl.arange(0, BLOCK)
        value = tl.load(x + row * s + column, mask=column < n, other=0.0).to(tl.float32)
        tl.store(o + row * s + column, value * inverse * tl.load(w + column, mask=column < n), mask=column < n)


@triton.jit
def product(a, b, c, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    rm = i * BM + tl.arange(0, BM)
    rn = j * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    pa = a + rm[:, None] * sam + rk[None, :] * sak
    pb = b + rk[:, None] * sbk + rn[None, :] * sbn
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(pa), tl.load(pb), total)
        pa += BK * sak
        pb += BK * sbk
    tl.store(c + rm[:, None] * N + rn[None, :], total.to(tl.float16))


@triton.jit
def rotary(q, cos, sin, s, HALF: tl.constexpr, H: tl.constexpr):
    t = tl.program_id(0)
    h = tl.arange(0, H)[:, None]
    d = tl.arange(0, HALF)[None, :]
    c = tl.load(cos + t * HALF + d)
    sn = tl.load(sin + t * HALF + d)
    p = q + t * s + h * (2 * HALF) + d
    x = tl.load(p)
    y = tl.load(p + HALF)
    tl.store(p, x * c - y * sn)
    tl.store(p + HALF, y * c + x * sn)


@triton.jit
def paged(q, kc, vc, table, o, n, sbt, PAGE: tl.constexpr, D: tl.constexpr):
    b = tl.program_id(0)
    d = tl.arange(0, D)
    qv = tl.load(q + b * D + d).to(tl.float32)
    most = -float("inf")
    length = 0.0
    acc = tl.zeros((D,), tl.float32)
    for k in range(0, n, PAGE):
        page = tl.load(table + b * sbt + k // PAGE)
        r = tl.arange(0, PAGE)
        p = page * PAGE * D + r[:, None] * D + d[None, :]
        kk = tl.load(kc + p).to(tl.float32)
        s = tl.sum(kk * qv[None, :], 1)
        s = tl.where(k + r < n, s, -float("inf"))
        new = tl.maximum(most, tl.max(s, 0))
        e = tl.exp(s - new)
        old = tl.exp(most - new)
        vv = tl.load(vc + p).to(tl.float32)
        acc = acc * old + tl.sum(vv * e[:, None], 0)
        length = length * old + tl.sum(e, 0)
        most = new
    tl.store(o + b * D + d, (acc / length).to(tl.float16))


@triton.jit
def top1(x, count, index, s, E: tl.constexpr):
    t = tl.program_id(0)
    e = tl.arange(0, E)
    value = tl.load(x + t * s + e)
    i = tl.argmax(value, 0)
    tl.store(index + t, i)
    tl.atomic_add(count + i, 1)


class Launch(NamedTuple):
    """A launch, the program to look at, and its accesses counted by hand.

    Attributes
    ----------
    kernel, grid, arguments, options : of the launch
    block : number of the program, x fastest
    accesses : by argument and kind: bytes per lane, and how many warp accesses have how many sectors
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    options: dict[str, int]
    block: int
    accesses: dict[tuple[str, str], tuple[int, dict[int, int]]]


def _halves(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape).half()


def _floats(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)


def _product(stages: int, *, transposed: bool = False) -> Launch:
    strides = {"sbk": 1, "sbn": 256} if transposed else {"sbk": 256, "sbn": 1}
    return Launch(
        product,
        (4, 4),
        {
            "a": _halves(256, 256),
            "b": _halves(256, 256),
            "c": torch.zeros(256, 256, dtype=torch.float16),
            "M": 256,
            "N": 256,
            "K": 256,
            "sam": 256,
            "sak": 1,
            **strides,
            "BM": 64,
            "BN": 64,
            "BK": 32,
        },
        {"num_stages": stages},
        1 + 4 * 2,
        {("a", "load"): (16, {16: 64}), ("b", "load"): (16, {16: 64}), ("c", "store"): (16, {16: 16})},
    )


def launches() -> dict[str, Launch]:
    """Return the launches by their names in the specification."""
    zeros = torch.zeros
    return {
        "E1": Launch(
            add,
            (4,),
            {"x": _floats(4096), "y": _floats(4096), "o": zeros(4096), "n": 4096, "BLOCK": 1024},
            {},
            1,
            {("x", "load"): (16, {16: 8}), ("y", "load"): (16, {16: 8}), ("o", "store"): (16, {16: 8})},
        ),
        "E2": Launch(
            add,
            (1,),
            {"x": _floats(1000), "y": _floats(1000), "o": zeros(1000), "n": 1000, "BLOCK": 1024},
            {},
            0,
            {
                ("x", "load"): (4, {16: 28, 13: 4}),
                ("y", "load"): (4, {16: 28, 13: 4}),
                ("o", "store"): (4, {16: 28, 13: 4}),
            },
        ),
        "E3": Launch(
            softmax,
            (4,),
            {"o": zeros(4, 781), "x": _floats(4, 781), "so": 781, "sx": 781, "n": 781, "BLOCK": 1024},
            {},
            1,
            {("x", "load"): (4, {5: 24, 3: 1}), ("o", "store"): (4, {5: 24, 3: 1})},
        ),
        "E4": Launch(
            layer_norm,
            (4,),
            {
                "x": _halves(4, 1024),
                "w": _halves(1024),
                "b": _halves(1024),
                "o": _halves(4, 1024),
                "mean": zeros(4),
                "rstd": zeros(4),
                "s": 1024,
                "n": 1024,
                "eps": 1e-5,
                "BLOCK": 1024,
            },
            {},
            1,
            {
                ("x", "load"): (16, {16: 4}),
                ("w", "load"): (16, {16: 4}),
                ("b", "load"): (16, {16: 4}),
                ("o", "store"): (16, {16: 4}),
                ("mean", "store"): (4, {1: 1}),
                ("rstd", "store"): (4, {1: 1}),
            },
        ),
        "E5": Launch(
            rms_norm,
            (4,),
            {
                "x": _floats(4, 3008).bfloat16(),
                "w": _floats(3008).bfloat16(),
                "o": zeros(4, 3008, dtype=torch.bfloat16),
                "s": 3008,
                "n": 3000,
                "eps": 1e-5,
                "BLOCK": 1024,
            },
            {"num_warps": 8},
            1,
            {
                ("x", "load"): (2, {8: 184, 4: 8}),
                ("w", "load"): (2, {8: 92, 4: 4}),
                ("o", "store"): (2, {8: 92, 4: 4}),
            },
        ),
        "E6": _product(1),
        "E7": _product(3),
        "E8": _product(3, transposed=True),
        "E9": Launch(
            rotary,
            (4,),
            {"q": _floats(4, 8, 64), "cos": _floats(4, 32), "sin": _floats(4, 32), "s": 512, "HALF": 32, "H": 8},
            {},
            1,
            {
                ("cos", "load"): (8, {4: 4}),
                ("sin", "load"): (8, {4: 4}),
                ("q", "load"): (8, {8: 8}),
                ("q", "store"): (8, {8: 8}),
            },
        ),
        "E10": Launch(
            paged,
            (1,),
            {
                "q": _halves(1, 64),
                "kc": _halves(8, 16, 64),
                "vc": _halves(8, 16, 64),
                "table": torch.tensor([[5, 2, 7, 1]], dtype=torch.int32),
                "o": _halves(1, 64),
                "n": 60,
                "sbt": 4,
                "PAGE": 16,
                "D": 64,
            },
            {},
            0,
            {
                ("q", "load"): (16, {4: 4}),
                ("table", "load"): (4, {1: 16}),
                ("kc", "load"): (16, {16: 16}),
                ("vc", "load"): (16, {16: 16}),
                ("o", "store"): (2, {2: 2}),
            },
        ),
        "E11": Launch(
            top1,
            (4,),
            {
                "x": _floats(4, 64),
                "count": zeros(64, dtype=torch.int32),
                "index": zeros(4, dtype=torch.int32),
                "s": 64,
                "E": 64,
            },
            {},
            1,
            {("x", "load"): (4, {4: 4}), ("index", "store"): (4, {1: 1}), ("count", "atomic"): (4, {1: 1})},
        ),
    }
