"""The engine and the compression of the cDMA paper (Rhu et al., HPCA 2018)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from buddysim.compress.tensors import tensor_ratios
from buddysim.machine.training import TrainingMachine
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.named_network import load_network
from buddysim.training.schemes import cdma_engine

PEAK = "pcie3-peak"  # what the engine is made for (Sec. V)


@simulates("cdma-batches")
def batches(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(
        tuple(float(batch) for _, batch in NETWORKS.values()), note=", ".join(f"`{n}`" for n, _ in NETWORKS.values())
    )


@simulates("cdma-alexnet")
def first_conv_of_alexnet(training: SavedResults) -> SimulatedValue:
    network = load_network(NETWORKS["AlexNet"][0])
    first = next(layer for layer in network.layers if layer.kind == "conv")
    return SimulatedValue(tuple(float(extent) for extent in first.output_shape))


@simulates("zvc-overhead", "zvc-most", "zvc-60", "zvc-60-mask", "zvc-62", "zvc-62-mask")
def zvc(training: SavedResults, id: str) -> SimulatedValue:
    zeros = {"zvc-overhead": 0.0, "zvc-most": 1.0, "zvc-60": 0.6, "zvc-60-mask": 0.6}.get(id, 0.62)
    ratio = zvc_ratio(zeros)
    if id == "zvc-overhead":
        return SimulatedValue(100 * (1 / ratio.ratio - 1))
    return SimulatedValue(ratio.ratio if id.endswith("mask") or id == "zvc-most" else ratio.ratio_without_mask)


@cache
def zvc_ratio(zeros: float) -> Any:
    """Return the ratio of ZVC for a million words, exactly this fraction of which is zero."""
    words = np.ones((1, 1, 1000, 1000), dtype=np.float32)
    zero_words = np.random.default_rng(0).permutation(words.size)[: round(zeros * words.size)]
    words.reshape(-1)[zero_words] = 0
    return tensor_ratios(words, ("NCHW",), (4096,), ("zvc",))[0]


@simulates("zvc-13.8", "zvc-13.8-mask")
def zeros_for_the_largest(training: SavedResults, id: str) -> SimulatedValue:
    mask = 1 / 32 if id.endswith("mask") else 0.0
    return SimulatedValue(100 * (1 - (1 / 13.8 - mask)))


@simulates(
    "engine-rate", "engine-compress", "engine-decompress", "engine-demand", "left-over", "cap", "cap-bw", "buffer",
    "area-units", "area-buffer", "area", "area-gen5",
)  # fmt: skip
def engine(training: SavedResults, id: str) -> SimulatedValue:
    titan_x = TrainingMachine.load("titan-x")
    gen3, gen5 = (cdma_engine.engine(titan_x.links[name].offload_bytes_per_s) for name in (PEAK, "pcie5-peak"))
    left = cdma_engine.left_over_bytes_per_s(titan_x.dram_bytes_per_s, titan_x.training.fp32)
    values = {
        "engine-rate": cdma_engine.BYTES_PER_CYCLE,
        "engine-compress": cdma_engine.COMPRESS_CYCLES,
        "engine-decompress": cdma_engine.DECOMPRESS_CYCLES,
        "engine-demand": titan_x.links[PEAK].offload_bytes_per_s * 13.8 / 1e9,
        "left-over": left / 1e9,
        "cap": cdma_engine.PUBLISHED_CAP / 1e9,
        "cap-bw": cdma_engine.BANDWIDTH_AWARE_CAP / 1e9,
        "buffer": gen3.buffer_bytes / 1e3,
        "area-units": gen3.units_mm2,
        "area-buffer": gen3.buffer_mm2,
        "area": gen3.area_mm2,
        "area-gen5": gen5.area_mm2,
    }
    note = cause = ""
    if id == "area-gen5":
        note = (
            f"buffer scaled with the link, six compressors; {gen5.scaled_area_mm2:.2f} with as many as the link needs"
        )
        twice = gen5.area_mm2 + gen3.units_mm2
        cause = (
            f"how the compressors scale isn't published: {gen5.area_mm2:.2f} mm2 if only the buffer grows fourfold, as "
            f"the text says; {gen5.scaled_area_mm2:.2f} if the compressors grow as well; {twice:.2f} with twice "
            "as many compressors"
        )
    return SimulatedValue(float(values[id]), note=note, cause=cause)
