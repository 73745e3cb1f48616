"""Sectors of each access of a transformer's kernels, computed by hand from their shapes and layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch isn't installed: pip install torch==2.13.0")
pytest.importorskip("triton", reason="Triton isn't installed: pip install triton==3.9.0")

import torch

from buddysim.capture.triton_kernels import capture
from tests.capture.triton import transformer_kernels as kernels
from tests.capture.triton.expected_kernels import product
from tests.capture.triton.program_accesses import Accesses, accesses_of

N, D, HEADS = 256, 64, 2


def _heads() -> Any:
    return torch.linspace(-1, 1, HEADS * N * D).reshape(HEADS, N, D).half()


def _full(accesses: int) -> tuple[int, dict[int, int]]:
    """Return accesses of 32 lanes of 16 B each: 16 sectors."""
    return 16, {16: accesses}


def attention(*, causal: bool, stages: int) -> tuple[Any, ...]:
    """A program has 128 rows of 128 B (q, o: 512 sectors) and reads all 256 of k and v (1,024 sectors each)."""
    arguments = {
        **{name: _heads() for name in "qkvo"},
        "lse": torch.zeros(HEADS, N),
        "scale": 0.125,
        "n": N,
        "BM": 128,
        "BN": 64,
        "D": D,
        "CAUSAL": causal,
        "num_stages": stages,
    }
    expected: Accesses = {
        ("q", "load"): _full(32),
        ("k", "load"): _full(64),
        ("v", "load"): _full(64),
        ("o", "store"): _full(32),
        ("lse", "store"): (4, {4: 4}),  # 128 floats, 32 of each warp
    }
    return kernels.attend, (2, HEADS), arguments, 1 + 2, expected


def first_rows() -> tuple[Any, ...]:
    """The first 128 rows of a causal attention read half of k and v."""
    kernel, grid, arguments, _, expected = attention(causal=True, stages=3)
    return kernel, grid, arguments, 0, expected | {("k", "load"): _full(32), ("v", "load"): _full(32)}


def attention_backward() -> tuple[Any, ...]:
    """A program has 64 rows of k and v (256 sectors each), reads all rows of q and do, and adds to all of dq.

    dq has 4 B elements: 256 rows of 256 B are 2,048 sectors, 16 B a lane on sm_90.
    """
    arguments = {
        **{name: _heads() for name in ("q", "k", "v", "do", "dk", "dv")},
        "dq": torch.zeros(HEADS, N, D),
        "lse": torch.full((HEADS, N), 50.0),
        "delta": torch.zeros(HEADS, N),
        "scale": 0.125,
        "n": N,
        "BM": 64,
        "BN": 64,
        "D": D,
    }
    expected: Accesses = {
        ("k", "load"): _full(16),
        ("v", "load"): _full(16),
        ("q", "load"): _full(64),
        ("do", "load"): _full(64),
        # 64 floats in four steps, by two of four warps: the others hold copies, which asynchronous copies leave out.
        ("lse", "load"): (4, {4: 8}),
        ("delta", "load"): (4, {4: 8}),
        ("dq", "atomic"): _full(128),
        ("dk", "store"): _full(16),
        ("dv", "store"): _full(16),
    }
    return kernels.attend_backward, (4, HEADS), arguments, 1, expected


def cross_entropy() -> tuple[Any, ...]:
    """A row of 5,000 halves whose length forbids vectors: 8 elements a lane, one at a time, lanes 16 B apart.

    Four whole blocks of 1,024 for four warps, and 904 elements: 3 warps and 17 lanes (272 B: 9 sectors). The row is
    read twice and written once. The target and its logit are scalars that all four warps load.
    """
    arguments = {
        "x": torch.linspace(-1, 1, 4 * 5008).reshape(4, 5008).half(),
        "target": torch.tensor([3, 5, 7, 9]),
        "loss": torch.zeros(4),
        "s": 5008,
        "V": 5000,
        "BLOCK": 1024,
    }
    whole = (4 * 4 + 3) * 8
    expected: Accesses = {
        ("target", "load"): (8, {1: 4}),
        ("x", "load"): (2, {16: 2 * whole, 9: 2 * 8, 1: 4}),
        ("loss", "store"): (4, {1: 1}),
        ("x", "store"): (2, {16: whole, 9: 8}),
    }
    return kernels.cross_entropy, (4,), arguments, 1, expected


def routing() -> tuple[Any, ...]:
    """Top 4 of 64 experts: 128 B of logits by all warps (two hold copies), and scalars stored by one lane."""
    arguments = {
        "x": torch.linspace(-1, 1, 4 * 64).reshape(4, 64).half(),
        "weights": torch.zeros(4, 4),
        "experts": torch.zeros(4, 4, dtype=torch.int32),
        "counts": torch.zeros(64, dtype=torch.int32),
        "s": 64,
        "E": 64,
        "K": 4,
    }
    expected: Accesses = {
        ("x", "load"): (2, {2: 4}),
        ("weights", "store"): (4, {1: 5}),
        ("experts", "store"): (4, {1: 4}),
        ("counts", "atomic"): (4, {1: 4}),
        ("weights", "load"): (4, {1: 4}),
    }
    return kernels.route, (4,), arguments, 1, expected


def tile() -> tuple[Any, ...]:
    """A 32 x 32 tile of single precision: 4 KiB of each matrix, 128 sectors, as in the shipped product's SASS."""
    arguments = {
        **{name: torch.linspace(-1, 1, 1024).reshape(32, 32) for name in "ab"},
        "c": torch.zeros(32, 32),
        "M": 32,
        "N": 32,
        "K": 32,
        "sam": 32,
        "sak": 1,
        "sbk": 32,
        "sbn": 1,
        "BM": 32,
        "BN": 32,
        "BK": 32,
    }
    expected: Accesses = {("a", "load"): _full(8), ("b", "load"): _full(8), ("c", "store"): _full(8)}
    return product, (1, 1), arguments, 0, expected


CASES = {
    "attention, one stage": lambda: attention(causal=False, stages=1),
    "attention, three stages": lambda: attention(causal=False, stages=3),
    "causal attention": lambda: attention(causal=True, stages=3),
    "causal attention, first rows": first_rows,
    "attention backward": attention_backward,
    "cross-entropy": cross_entropy,
    "routing": routing,
    "tile": tile,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_sectors_are_those_computed_by_hand(name: str, tmp_path: Path) -> None:
    kernel, grid, arguments, block, expected = CASES[name]()
    with capture(tmp_path / "out.bin", snapshots=0):
        kernel[grid](**arguments)
    assert accesses_of(tmp_path / "out.bin", 0, block) == expected
