"""Facts about networks that papers report, compared with the graphs; none depends on workspace or time."""

from __future__ import annotations

import pytest

from buddysim.training import Layer, Network
from buddysim.training.named_network import load_network

MIB, GIB = 2**20, 2**30


def conv_inputs(network: Network) -> list[Layer]:
    """Return the layers whose outputs CONV layers read, without the input."""
    read = {producer for layer in network.layers if layer.kind == "conv" for producer in layer.inputs}
    return [network.layers[index] for index in sorted(read) if index]


def test_cswap_swaps_eight_relu_and_four_pool_outputs_of_vgg16() -> None:
    """Tensors have 1568 MB to 49 MB at batch 128 (MB are MiB in the paper)."""
    network = load_network("vgg16")
    swapped = conv_inputs(network)
    assert [layer.kind for layer in swapped].count("relu") == 8
    assert [layer.kind for layer in swapped].count("maxpool") == 4
    sizes = [network.output_bytes(layer.index, 128) / MIB for layer in swapped]
    assert (max(sizes), min(sizes)) == (1568, 49)


def test_gist_fractions_of_stashed_feature_maps_of_vgg16() -> None:
    """Of the stashed bytes, 40 % are ReLU outputs that pooling reads, and 49 % are ReLU outputs that CONV reads."""
    network = load_network("vgg16")
    stashed, to_pool, to_conv = 0, 0, 0
    for owner in network.buffers[1:]:
        readers = [network.layers[reader].kind for reader in network.buffer_readers(owner)]
        size = network.layers[owner].output_elements
        last = [layer for layer in network.layers if network.buffer_of(layer.index) == owner][-1]
        stashed += size
        to_pool += size * (last.kind == "relu" and readers == ["maxpool"])
        to_conv += size * (last.kind == "relu" and readers == ["conv"])
    assert to_pool / stashed == pytest.approx(0.40, abs=0.01)
    assert to_conv / stashed == pytest.approx(0.49, abs=0.01)


def test_vdnn_offloads_up_to_16_gb_of_vgg16() -> None:
    """The sizes of all X of VGG-16's feature layers at batch 256 agree (GB are GiB in the paper)."""
    network = load_network("vgg19")
    feature_maps = {
        network.buffer_of(producer) for layer in network.layers if layer.part == "features" for producer in layer.inputs
    }
    assert sum(network.output_bytes(owner, 256) for owner in feature_maps) / GIB == pytest.approx(16, rel=0.02)


def test_cdmas_alexnet_starts_with_96_maps_of_55x55() -> None:
    layers = load_network("alexnet-caffe").layers
    assert layers[1].output_shape == (96, 55, 55)
    assert [layer.output_shape for layer in layers if layer.kind == "conv"] == [
        *((96, 55, 55), (256, 27, 27), (384, 13, 13), (384, 13, 13), (256, 13, 13))
    ]
