"""Values of the CSWAP paper on tensors (number, sizes, sparsities) and on its machines."""

from __future__ import annotations

from collections import Counter

import numpy as np

from buddysim.compress import compress
from buddysim.gpu_codecs.synthetic_tensor import synthetic_words
from buddysim.machine.training import TrainingMachine
from buddysim.papers.cswap.iterations import decisions, epochs, training_text
from buddysim.papers.cswap.paper_networks import CASES, LINK, TENSORS
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults
from buddysim.training.named_network import load_network

VGG16 = CASES[2], "VGG16"
_MIB = 2**20


@simulates("cswap-largest", "cswap-smallest")
def sizes(training: SavedResults, id: str) -> SimulatedValue:
    sizes_mib = [one.byte_count / _MIB for one in decisions(*VGG16)]
    return SimulatedValue(max(sizes_mib) if id.endswith("largest") else min(sizes_mib))


@simulates("cswap-tensors")
def tensors(training: SavedResults) -> SimulatedValue:
    kinds = Counter(one.layer.kind for one in decisions(*VGG16))
    return SimulatedValue(f"{kinds['relu']} ReLU, {kinds['maxpool']} MAX")


@simulates("cswap-activations-weights")
def maps_over_weights(training: SavedResults) -> SimulatedValue:
    network = load_network("vgg16")
    weights = sum(network.layer_parameter_bytes(layer.index) for layer in network.layers)
    feature_map_bytes = sum(network.output_bytes(owner, 256) for owner in network.buffers)
    every = sum(network.output_bytes(layer.index, 256) for layer in network.layers)
    return SimulatedValue(
        feature_map_bytes / weights,
        note=f"ReLU in place; {every / weights:.0f} if each layer's output counts",
        cause=f"{feature_map_bytes / 2**30:.1f} GiB of feature maps over {weights / 2**30:.2f} GiB of weights",
    )


def sparsities(label: str) -> list[float]:
    """Sparsity of a tensor of VGG16 in per cent, by epoch of the training."""
    percents = []
    for epoch in epochs("VGG16"):
        percents += [100 * d.sparsity for d in decisions(*VGG16, epoch=epoch) if TENSORS[d.layer.name] == label]
    return percents


@simulates("cswap-sparsity-range")
def sparsity_range(training: SavedResults) -> SimulatedValue:
    every = [value for label in TENSORS.values() for value in sparsities(label)]
    return SimulatedValue((min(every), max(every)), note=training_text("VGG16"))


@simulates("cswap-relu4", "cswap-relu7", "8-max4")
def sparsity_of(training: SavedResults, id: str) -> SimulatedValue:
    percents = sparsities({"cswap-relu4": "ReLU4", "cswap-relu7": "ReLU7", "8-max4": "MAX4"}[id])
    if id == "8-max4":
        return SimulatedValue(max(percents), note=training_text("VGG16"))
    if id == "cswap-relu4":
        return SimulatedValue((percents[0], percents[-1]), note=training_text("VGG16"))
    top = int(np.argmax(percents))
    return SimulatedValue(
        f"{percents[0]:.0f} %, at most {percents[top]:.0f} % at epoch {epochs('VGG16')[top]:g}, {percents[-1]:.0f} % "
        "at last"
    )


@simulates("cswap-top5", "profile-sparsity", "prediction", "offline", "fit-time", "bo-time")
def not_modelled(training: SavedResults, id: str) -> SimulatedValue:
    return SimulatedValue(None, note="a property of the authors' run, not of what is simulated")


@simulates("v100-h2d", "v100-d2h", "2080ti-h2d", "2080ti-d2h")
def links(training: SavedResults, id: str) -> SimulatedValue:
    machine, _, direction = id.partition("-")
    rate = TrainingMachine.load({"v100": "v100", "2080ti": "rtx-2080-ti"}[machine]).links[LINK]
    return SimulatedValue((rate.prefetch_bytes_per_s if direction == "h2d" else rate.offload_bytes_per_s) / 1e9)


@simulates("index-zvc", "index-csr")
def csr_index_overhead(training: SavedResults, id: str) -> SimulatedValue:
    words = synthetic_words(_MIB, 0.5)
    nonzero_bytes = 4 * int(np.count_nonzero(words))
    if id == "index-csr":
        return SimulatedValue(
            100 * nonzero_bytes / words.nbytes, note="a column index of 4 B for each nonzero word, as the paper counts"
        )
    return SimulatedValue(100 * (len(compress(words, "zvc", window=4096)) - nonzero_bytes) / words.nbytes)
