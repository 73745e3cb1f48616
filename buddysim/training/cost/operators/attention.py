"""Time of fused attention (FlashAttention): blocks of queries over the multiprocessors, each with the keys it sees.

A block of 128 queries of a head computes the products with all keys that causality and a window leave to it. Blocks are
distributed over the multiprocessors. The kernel takes at least as long as its longest block, and longer by a part of a
wave at the end. Sizes of head have fractions of the peak of their own: small heads have fewer products for each
exponential function.

The backward kernel does five products for the forward kernel's two (Dao, FlashAttention-2, 2023, section 3.1.2). Its
rate relative to the forward kernel's is a constant; versions differ in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from buddysim.training.cost.operators.figures import ELEMENT_BYTES, GpuFigures
from buddysim.training.networks.recorded.work import BACKWARD_PRODUCTS, AttentionWork

QUERIES = 128
"""Queries of a block."""


@dataclass(frozen=True)
class AttentionConstants:
    """Constants of the attention kernel of one version on one GPU.

    Attributes
    ----------
    floor_us : of a kernel without work, in microseconds
    peak_fraction : of the peak rate, by size of head; sizes between are interpolated
    block_us : of a block of queries in addition to its products, in microseconds
    wave : part of a wave that the multiprocessors are idle at the end
    bandwidth : fraction of the peak bandwidth of device memory
    sharpness : exponent of the norm of computing and moving
    """

    floor_us: float
    peak_fraction: Mapping[int, float]
    block_us: float
    wave: float
    bandwidth: float
    sharpness: float


def pairs_seen(work: AttentionWork) -> float:
    """Return the pairs of query and key of one head, with whole blocks on the diagonal."""
    if not work.causal:
        return float(work.tokens * work.keys)
    full = work.tokens * (work.tokens + QUERIES) / 2
    if not 0 < work.window < work.tokens:
        return full
    part = work.window * work.tokens - work.window**2 / 2 + work.tokens * QUERIES / 2
    return min(part, full)


def longest_block(work: AttentionWork) -> float:
    """Return the keys of the block that sees most."""
    if work.causal and 0 < work.window < work.tokens:
        return min(work.window + QUERIES, work.keys)
    return work.keys


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
    blocks = ceil(work.tokens / QUERIES)
    each = constants.block_us / 1e6
    waves = work.batch * work.heads / gpu.sms
    total = waves * (products * pairs_seen(work) / rate + blocks * each)
    longest = products * min(QUERIES, work.tokens) * longest_block(work) / rate + each
    compute = max(total * (1 + constants.wave / (waves * blocks)), longest)
    moving = moved / (gpu.dram_bytes_per_s * constants.bandwidth)
    power = constants.sharpness
    return constants.floor_us / 1e6 + float((compute**power + moving**power) ** (1 / power))
