"""Time of fused attention (FlashAttention): blocks of queries over the multiprocessors, each with the keys it sees.

A block of queries of a head computes the products with all blocks of keys that causality and a window leave to it,
whole ones, whatever part of them counts. `BLOCKS` has their sizes. Version 3 packs the queries of heads with the same
keys into one block. Blocks are distributed over the multiprocessors. The kernel takes at least as long as its longest
block, and longer by a part of a wave at the end. Sizes of head have fractions of the peak of their own: small heads
have fewer products for each exponential function.

The backward kernel does five products for the forward kernel's two (Dao, FlashAttention-2, 2023, section 3.1.2). Its
rate relative to the forward kernel's is a constant; versions differ in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Annotated

from pydantic import AfterValidator, Field

from buddysim.training.cost.operators.constant_values import STRICT, Amount, Rate, Sharpness
from buddysim.training.cost.operators.figures import ELEMENT_BYTES, GpuFigures
from buddysim.training.networks.recorded.work import BACKWARD_PRODUCTS, AttentionWork

BLOCKS: Mapping[str, Mapping[int, tuple[int, int]]] = {
    "flash2": {64: (64, 256), 128: (64, 128), 256: (64, 64)},
    "flash3": {64: (192, 128), 128: (128, 128), 256: (128, 80)},
    "flash": {64: (128, 128), 128: (128, 64), 256: (64, 64)},
    "efficient": {64: (64, 64), 128: (64, 128), 256: (32, 128)},
    "trtllm": {128: (128, 128), 256: (128, 64)},
}
"""Queries and keys of a block by kernel and largest size of head. flash2: the kernel for paged keys, which the timings
are of (Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_launch_template.h, `run_mha_fwd_splitkv_dispatch`);
flash: the one that PyTorch has (there, `run_mha_fwd_hdim64` to `256`); flash3: hopper/tile_size.h, causal; efficient:
PyTorch's mem_eff_attention/kernel_forward.h; trtllm: assumed."""

PACKED = ("flash3",)
"""Kernels whose blocks have the queries of several heads: those with the same keys."""


BANDWIDTH = 0.8
"""Fraction of the peak bandwidth of device memory, of element-wise kernels on the GPUs with timings (0.72 to 0.89)."""


def _known(kernel: str) -> str:
    if kernel not in BLOCKS:
        raise ValueError(f"one of {', '.join(BLOCKS)}")
    return kernel


@dataclass(frozen=True)
class AttentionConstants:
    """Constants of the attention kernel of one version on one GPU.

    Attributes
    ----------
    kernel : a key of `BLOCKS`
    floor_us : of a kernel without work, in microseconds
    peak_fraction : of the peak rate, by size of head; sizes between are interpolated
    block_us : of a block of queries in addition to its products, in microseconds
    wave : part of a wave that the multiprocessors are idle at the end
    sm_bytes : of queries, keys, values and results that a multiprocessor moves per clock, at most
    sharpness : exponent of the norm of computing and moving
    """

    __pydantic_config__ = STRICT

    kernel: Annotated[str, AfterValidator(_known)]
    floor_us: Amount
    peak_fraction: Annotated[Mapping[int, Rate], Field(min_length=1)]
    block_us: Amount
    wave: Amount
    sm_bytes: Rate
    sharpness: Sharpness


def blocks_of(kernel: str, head_size: int) -> tuple[int, int]:
    """Return the queries and keys of a kernel's blocks for a size of head."""
    sizes = BLOCKS[kernel]
    return sizes[next((size for size in sorted(sizes) if head_size <= size), max(sizes))]


def keys_seen(work: AttentionWork, queries: float, keys: int) -> float:
    """Return the keys that a block computes with on average.

    Parameters
    ----------
    queries : of different tokens in a block
    keys : of a block of keys; on each side of what is seen, half of one counts on average
    """
    if not work.causal:
        return float(keys * ceil(work.keys / keys))
    full = (work.tokens + queries + keys) / 2
    if not 0 < work.window < work.tokens:
        return full
    return min(full, work.window - work.window**2 / (2 * work.tokens) + queries / 2 + keys)


def longest_block(work: AttentionWork, queries: float, keys: int) -> float:
    """Return the keys that the block computes with that sees most."""
    seen = min(work.window + queries, work.keys) if work.causal and 0 < work.window < work.tokens else work.keys
    return keys * ceil(seen / keys)


def moved_bytes(work: AttentionWork, width: int) -> float:
    """Return the bytes of queries, keys, values and results of `width` bytes an element."""
    per_token = work.head_size * work.batch * width
    return 2.0 * per_token * (work.tokens * work.heads + work.keys * work.kv_heads)


def fraction_of(constants: AttentionConstants, head_size: int) -> float:
    """Return the fraction of the peak for a size of head, interpolated between the measured ones.

    Below these, it falls with the square root of the size: 0.46 at 64 and 0.66 at 128 on an H100, 0.47 and 0.54 on an
    L40S.
    """
    sizes = sorted(constants.peak_fraction)
    if head_size <= sizes[0]:
        return constants.peak_fraction[sizes[0]] * float((head_size / sizes[0]) ** 0.5)
    for low, high in pairwise(sizes):
        if head_size <= high:
            first, second = constants.peak_fraction[low], constants.peak_fraction[high]
            return first + (second - first) * (head_size - low) / (high - low)
    return constants.peak_fraction[sizes[-1]]


def attention_seconds(
    constants: AttentionConstants, gpu: GpuFigures, work: AttentionWork, number_format: str, backward: float = 0.0
) -> float:
    """Return the seconds of an attention kernel.

    Parameters
    ----------
    backward : the backward kernel's rate relative to the forward kernel's; 0: the forward kernel
    """
    rate = gpu.flops[number_format] / gpu.sms * fraction_of(constants, work.head_size)
    products, moved = 4.0 * work.head_size, moved_bytes(work, ELEMENT_BYTES[number_format])
    if backward:
        products, moved = products * BACKWARD_PRODUCTS / backward, 2 * moved
    rows, keys = blocks_of(constants.kernel, work.head_size)
    packed = work.heads / work.kv_heads if constants.kernel in PACKED else 1.0
    queries = rows / packed
    each = constants.block_us / 1e6
    waves = work.batch * work.heads / packed * ceil(work.tokens * packed / rows) / gpu.sms
    mean = products * rows * keys_seen(work, queries, keys) / rate + each
    longest = products * rows * longest_block(work, queries, keys) / rate + each
    compute = max(mean * (waves + constants.wave), longest)
    moving = moved / min(gpu.dram_bytes_per_s * BANDWIDTH, constants.sm_bytes * gpu.sms * gpu.clock_hz)
    power = constants.sharpness
    return constants.floor_us / 1e6 + float((compute**power + moving**power) ** (1 / power))
