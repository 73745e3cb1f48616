"""The encodings themselves, and the worked example of the allocator."""

from __future__ import annotations

import numpy as np

from buddysim.gist import binarize, dpr, ssdc
from buddysim.gist.csr_rows import COLUMNS
from buddysim.gist.formats import FORMATS
from buddysim.gist.windows import Windows
from buddysim.machine.training import TrainingMachine
from buddysim.papers.gist.paper_networks import BATCH, LIBRARY, MACHINE, NETWORKS, network
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.iteration.allocators import StaticGroups
from buddysim.training.iteration.program import Program, ProgramTensor, Step

_SIDE = 64


@simulates("binarize-relu", "binarize-pool", "binarize-both")
def binarize_ratios(training: SavedResults, id: str) -> SimulatedValue:
    windows = Windows(_SIDE, _SIDE, _SIDE // 2, _SIDE // 2, (2, 2), (2, 2))
    values = np.random.default_rng(1).standard_normal((8, _SIDE, _SIDE), np.float32)
    bits, positions = binarize.encode(values).nbytes, binarize.max_positions(values, windows).nbytes
    pooled = values.nbytes // 4
    amount = {
        "binarize-relu": values.nbytes / bits,
        "binarize-pool": pooled / positions,
        "binarize-both": values.nbytes / (bits + positions),
    }[id]
    return SimulatedValue(
        amount, note="windows of 2 x 2; the ReLU output over both payloads" if id.endswith("both") else ""
    )


@simulates("pool-windows")
def pool_windows(training: SavedResults) -> SimulatedValue:
    ratios = []
    for label in ("VGG16", "AlexNet"):
        layers = network(label).layers
        pools = [layer for layer in layers if layer.kind == "maxpool"]
        before = sum(layers[pool.inputs[0]].output_elements for pool in pools)
        ratios.append(before / sum(pool.output_elements for pool in pools))
    return SimulatedValue(
        (ratios[0], ratios[1]),
        note="the paper takes the window's 9 elements; AlexNet's windows of 3 x 3 are 2 apart",
        cause="windows of 3 x 3 with a stride of 2 leave one element in 4 to 4.7, not in 9: 9 would need a stride of 3",
    )


@simulates("largest-window")
def largest_window(training: SavedResults) -> SimulatedValue:
    pools = [layer.pool for label in NETWORKS for layer in network(label).layers if layer.kind == "maxpool"]
    return SimulatedValue(float(max(pool.kernel_h * pool.kernel_w for pool in pools if pool is not None)))


@simulates("csr-4-byte", "csr-1-byte")
def csr_threshold(training: SavedResults, id: str) -> SimulatedValue:
    """Encode feature maps with more and more zeros."""
    index_bytes, count = int(id[4]), 256 * 100
    for zeros in range(0, count, count // 1000):
        values = np.ones(count, np.float32)
        values[:zeros] = 0
        if ssdc.encode(values, COLUMNS, index_bytes).nbytes < values.nbytes:
            return SimulatedValue(100 * zeros / count, note="with a pointer of 4 B a row")
    return SimulatedValue(None)


@simulates("csr-columns")
def csr_columns(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(float(COLUMNS))


@simulates("sparse-compute")
def sparse_compute(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(None)


@simulates("dpr-per-word")
def per_word(training: SavedResults) -> SimulatedValue:
    values = np.ones(12, np.float32)
    return SimulatedValue(tuple(4 * values.size / len(dpr.encode(values, name)) for name in FORMATS))


@simulates("example-before", "example-after", "example-stashed", "example-immediate")
def example(training: SavedResults, id: str) -> SimulatedValue:
    variants, others = worked_example()
    totals, stashed = [], []
    for x in variants:
        program = program_of(*x, *others)
        groups = StaticGroups().allocate(program, None)
        totals.append(groups.high_water)
        stashed.append(max(size for size, first, last in x if last - first > 5))
    passing = [total - size for total, size in zip(totals, stashed, strict=True)]
    amounts = {"example-before": totals[0], "example-after": totals[1]}
    if id in amounts:
        return SimulatedValue(float(amounts[id]))
    return SimulatedValue(tuple(map(float, stashed if id == "example-stashed" else passing)))


Lifetime = tuple[int, int, int]


def worked_example() -> tuple[tuple[list[Lifetime], list[Lifetime]], list[Lifetime]]:
    """Fig. 7 in MB: X as it is, X around its uses and its payload in between; A to D. Sizes, first and last steps."""
    return ([(10, 0, 11)], [(10, 0, 1), (2, 1, 10), (10, 10, 11)]), [(8, 2, 3), (6, 4, 5), (7, 6, 7), (5, 8, 9)]


def program_of(*lifetimes: Lifetime) -> Program:
    """A program of tensors with these sizes, first and last steps."""
    tensors = tuple(ProgramTensor(n, 1, "feature_maps", size, "features") for n, (size, _, _) in enumerate(lifetimes))
    steps = []
    for index in range(max(last for _, _, last in lifetimes) + 1):
        allocate = tuple(n for n, (_, first, _) in enumerate(lifetimes) if first == index)
        release = tuple(n for n, (_, _, last) in enumerate(lifetimes) if last == index)
        steps.append(Step(index, 1, "forward", 0, "features", allocate=allocate, release=release))
    return Program(tuple(steps), tensors, (), ())


@simulates("gist-memory", "gist-minibatch")
def input_values(training: SavedResults, id: str) -> SimulatedValue:
    if id == "gist-minibatch":
        return SimulatedValue(float(BATCH))
    return SimulatedValue(TrainingMachine.load(MACHINE).memory_bytes / 2**30)


@simulates("gist-library")
def library(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(
        LIBRARY,
        note="`cudnn5` instead of version 6: implicit GEMM, which all of the paper's times use, is in both",
        cause="timings of cuDNN 6 on a Titan X are not among those published; implicit GEMM is what both versions have",
    )
