"""Small kernels that differ in layout, control flow or kind of access, each with the arguments of a launch."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, o, sx, so, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (i < M) & (j < N)
    tl.store(o + i * so + j, tl.load(x + i * sx + j, mask=mask), mask=mask)


@triton.jit
def transpose(x, o, sx, so, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(o + j[:, None] * so + i[None, :], tl.trans(tl.load(x + i[:, None] * sx + j[None, :])))


@triton.jit
def small_product(a, b, c, most, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.dot(tl.load(a + m[:, None] * BK + k[None, :]), tl.load(b + k[:, None] * BN + n[None, :]))
    tl.store(most + m, tl.max(total, 1))
    tl.store(c + m[:, None] * BN + n[None, :], total)


@triton.jit
def if_else(x, o, flag, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.load(flag + tl.program_id(0)) > 0:
        tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
    else:
        tl.store(o + i, 0.0, mask=i < n)


@triton.jit
def while_loop(x, o, n, BLOCK: tl.constexpr):
    k = tl.program_id(0) * 0
    total = tl.zeros((BLOCK,), tl.float32)
    while k < n:
        total += tl.load(x + k + tl.arange(0, BLOCK))
        k += BLOCK
    tl.store(o + tl.arange(0, BLOCK), total)


@triton.jit
def nested_loops(x, lengths, o, S, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(3):
        n = tl.load(lengths + p * 3 + row)
        for k in range(0, n, BLOCK):
            c = k + tl.arange(0, BLOCK)
            total += tl.load(x + (p * 3 + row) * S + c, mask=c < n, other=0.0)
    tl.store(o + p * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def prefix_sums(x, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def gather(x, index, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + tl.load(index + i)))


@triton.jit
def histogram(x, counts, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + i), 1)


@triton.jit
def lock(word, o):
    tl.store(o + tl.program_id(0), tl.atomic_cas(word, 0, 1))


@triton.jit
def twice(pointer, mask):
    return tl.load(pointer, mask=mask) * 2


@triton.jit
def calls(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(o + i, twice(x + i, mask) + twice(y + i, mask), mask=mask)


@triton.jit
def copy_by_descriptor(x, o, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(o, [M, N], [N, 1], [BM, BN])
    target.store([i, j], source.load([i, j]))


@triton.jit
def product_by_descriptor(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    target = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([i * BM, k]), right.load([k, j * BN]), total)
    target.store([i * BM, j * BN], total.to(tl.float16))


def indented() -> Any:
    """Return a kernel whose source is indented, so that its columns differ from those of its text."""

    @triton.jit
    def shift(x, o, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(o + i, tl.load(x + i) + 1)

    return shift


def _square(dtype: torch.dtype, n: int = 64) -> dict[str, Any]:
    values = torch.arange(n * n, dtype=torch.float32).reshape(n, n)
    return {"x": (values % 2).to(dtype), "o": torch.zeros(n, n).to(dtype), "sx": n, "so": n, "M": n, "N": n}


def launches() -> dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]]:
    """Return kernel, grid and arguments of each launch."""
    torch.manual_seed(0)
    tile = {"BM": 64, "BN": 64}
    two = {"sx": 128, "so": 128, "M": 100, "N": 100} | tile
    floats = torch.randn
    long = torch.tensor([[512, 100, 0], [0, 0, 0], [128, 256, 384]], dtype=torch.int32)
    return {
        "two warps": (copy, (2, 2), {"x": floats(100, 128), "o": floats(100, 128)} | two | {"num_warps": 2}),
        "eight warps": (
            copy,
            (2, 2),
            {"x": floats(100, 128).half(), "o": floats(100, 128).half()} | two | {"num_warps": 8},
        ),
        "int8": (copy, (1, 1), _square(torch.int8) | tile),
        "fp8": (copy, (1, 1), _square(torch.float8_e5m2) | tile),
        "bool": (copy, (1, 1), _square(torch.bool) | tile | {"N": 60}),
        "fp64": (copy, (1, 1), _square(torch.float64) | tile),
        "offset of 4 B": (copy, (1, 1), _square(torch.float32) | tile | {"x": floats(4097)[1:]}),
        "64-bit integers": (copy, (1, 1), _square(torch.float32) | tile | {"M": 2**33}),
        "negative stride": (copy, (1, 1), _square(torch.float32) | tile | {"x": floats(64, 64)[63], "sx": -64}),
        "transpose": (transpose, (2, 2), {"x": floats(128, 128), "o": floats(128, 128), "sx": 128, "so": 128} | tile),
        "product": (
            small_product,
            (1,),
            {"a": floats(64, 32).half(), "b": floats(32, 64).half(), "c": floats(64, 64), "most": floats(64)}
            | tile
            | {"BK": 32},
        ),
        "if": (
            if_else,
            (4,),
            {"x": floats(1024), "o": floats(1024), "flag": torch.tensor([0, 1, 0, 1]), "n": 1000, "BLOCK": 256},
        ),
        "while": (while_loop, (2,), {"x": floats(1024), "o": floats(256), "n": 1024, "BLOCK": 256}),
        "nested": (
            nested_loops,
            (3,),
            {"x": floats(9, 512), "lengths": long, "o": floats(3, 128), "S": 512, "BLOCK": 128},
        ),
        "prefix sums": (prefix_sums, (2,), {"x": floats(2048), "o": floats(2048), "BLOCK": 1024}),
        "gather": (
            gather,
            (2,),
            {"x": floats(4096), "index": torch.randint(0, 4096, (1024,)), "o": floats(1024), "BLOCK": 512},
        ),
        "histogram": (
            histogram,
            (2,),
            {"x": torch.randint(0, 32, (1024,)), "counts": torch.zeros(32, dtype=torch.int32), "BLOCK": 512},
        ),
        "lock": (
            lock,
            (2,),
            {"word": torch.zeros(1, dtype=torch.int32), "o": torch.zeros(2, dtype=torch.int32)},
        ),
        "call": (calls, (2,), {"x": floats(1024), "y": floats(1024), "o": floats(1024), "n": 1000, "BLOCK": 512}),
        "indented": (indented(), (1,), {"x": floats(1024), "o": floats(1024), "BLOCK": 512}),
        "descriptor": (
            copy_by_descriptor,
            (2, 2),
            {"x": floats(128, 128).half(), "o": floats(128, 128).half(), "M": 128, "N": 128} | tile,
        ),
        "product by descriptor": (
            product_by_descriptor,
            (2, 2),
            {"a": floats(256, 256).half(), "b": floats(256, 256).half(), "c": floats(256, 256).half()}
            | {"M": 256, "N": 256, "K": 256, "BM": 128, "BN": 128, "BK": 64, "num_stages": 3, "num_warps": 8},
        ),
    }
