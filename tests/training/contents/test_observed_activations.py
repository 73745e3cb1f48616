"""Contents from an activations file: means over training, single points, sizes that the file has or lacks."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import tensor_ratios
from buddysim.formats.activations import (
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    PayloadSize,
    TrainingPoint,
    load_activations,
)
from buddysim.training.contents import Codec
from buddysim.training.contents.generated import relu_map
from buddysim.training.contents.observed_activations import ObservedActivations, observed_activations
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Network
from buddysim.training.zoo import names

MAPS = (
    FeatureMapInfo("image", "input", (3, 8, 8)),
    FeatureMapInfo("first", "relu", (4, 8, 8), "conv", 1, 0.0),
    FeatureMapInfo("pooled", "maxpool", (4, 4, 4), "relu", 1, 0.0),
    FeatureMapInfo("last", "relu", (4, 4, 4), "conv", 2, 1.0),
    FeatureMapInfo("flat", "relu", (16,), "fc", 3, 0.0, "classifier"),
)


def statistics(number: int, nonzero: int, *sizes: PayloadSize) -> FeatureMapStatistics:
    return FeatureMapStatistics(number, 1024, nonzero, sizes, 1024 if sizes else 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "by-hand.maps"
    rle = [PayloadSize("rle", "NCHW", 4096, bits) for bits in (16384, 8192)]
    with ActivationsWriter(path, {"network": "small", "data": "nothing"}, MAPS) as writer:
        writer.add_point(TrainingPoint(0, 0.0, 4, (statistics(1, 512, rle[0]), statistics(3, 512), statistics(4, 256))))
        last = (statistics(1, 512, rle[1]), statistics(2, 768), statistics(3, 256), statistics(4, 128))
        writer.add_point(TrainingPoint(10, 1.0, 4, last))
        writer.add_point(TrainingPoint(30, 3.0, 4, last))
        writer.add_values(2, 1, relu_map((4, 4, 8, 8), 0.5, seed=1))
    return path


def by_name(network: Network, contents: dict) -> dict:
    return {layer.name: contents[layer.index] for layer in network.layers}


def test_means_over_training_weighted_by_iterations(file: Path) -> None:
    network = load_network("alexnet")
    source = observed_activations(str(file))
    contents = by_name(network, source.contents(network, 4, Codec()))
    assert contents["relu1"].density == 0.5
    # 0.5 at iteration 0, 0.25 at 10 and at 30: (10 x 0.375 + 20 x 0.25) / 30.
    assert contents["relu5"].density == pytest.approx(0.291666667)
    assert contents["relu3"].density == pytest.approx((0.5 + 0.291666667) / 2)
    assert contents["relu6"].density == pytest.approx((10 * 0.1875 + 20 * 0.125) / 30)
    assert contents["pool1"].density == 0.75
    assert source.description == "observed: by-hand.maps (small on nothing), mean of 3 points, iterations 0 to 30"


def test_interrupted_file_is_described_and_trailing_data_is_an_error(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:-5])
    assert observed_activations(str(file)).description.endswith("iterations 0 to 30; interrupted: the file has no end")
    file.write_bytes(data + b"x")
    with pytest.raises(BuddysimError, match="data after the end"):
        observed_activations(str(file))


def test_epoch_selects_the_nearest_point(file: Path) -> None:
    network = load_network("alexnet")
    source = observed_activations(str(file), epoch=0.9)
    assert by_name(network, source.contents(network, 4, Codec()))["relu5"].density == 0.25
    assert source.description.endswith("iteration 10, epoch 1")
    for epoch in (-1, math.nan, math.inf):
        with pytest.raises(BuddysimError, match=f"epoch {epoch}: expected a number from 0"):
            observed_activations(str(file), epoch=epoch)


def test_sizes_of_the_file_and_of_its_maps(file: Path) -> None:
    network = load_network("alexnet")
    rle = by_name(network, observed_activations(str(file), epoch=0).contents(network, 4, Codec("rle")))
    assert rle["relu1"].compressed_fraction == pytest.approx(16384 / 32768)
    # Over the training, 16384 bits at iteration 0 and 8192 at 10 and at 30, of a density that stays.
    mean = by_name(network, observed_activations(str(file)).contents(network, 4, Codec("rle")))
    assert mean["relu1"].compressed_fraction == pytest.approx((10 * 12288 + 20 * 8192) / 30 / 32768)
    # No sizes of this layout: the file has the feature map's values at the last point.
    nhwc = by_name(network, observed_activations(str(file), epoch=3).contents(network, 4, Codec("rle", "NHWC")))
    (expected,) = tensor_ratios(relu_map((4, 4, 8, 8), 0.5, seed=1), ["NHWC"], [4096], ["rle"])
    assert nhwc["relu1"].compressed_fraction == pytest.approx(expected.bits / 8 / expected.raw_bytes)
    # At another epoch too, there is nothing nearer.
    assert (
        by_name(network, observed_activations(str(file), epoch=0).contents(network, 4, Codec("rle", "NHWC")))["relu1"]
        == (nhwc["relu1"])
    )


def test_repeated_values_false_replaces_values_by_noise(tmp_path: Path) -> None:
    path = tmp_path / "flat.maps"
    flat = (relu_map((4, 4, 8, 8), 0.5, seed=1) != 0).astype(np.float32)  # zeros and ones
    with ActivationsWriter(path, {}, MAPS) as writer:
        writer.add_point(TrainingPoint(0, 0.0, 4, (statistics(1, 512),)))
        writer.add_values(0, 1, flat)
    network = load_network("alexnet")
    fractions = [
        by_name(
            network,
            ObservedActivations(load_activations(path), repeated_values=repeated_values).contents(network, 4, codec),
        )["relu1"].compressed_fraction
        for codec in (Codec("zlib"), Codec("rle"))
        for repeated_values in (True, False)
    ]
    assert fractions[0] < 0.1 < 0.45 < fractions[1]
    assert fractions[2] == fractions[3]  # the zeros stay


def test_file_without_sizes_or_values_has_zvc_contents_alone(tmp_path: Path) -> None:
    network = load_network("alexnet")
    path = tmp_path / "densities.maps"
    with ActivationsWriter(path, {}, MAPS) as writer:
        writer.add_point(TrainingPoint(0, 0.0, 4, (statistics(1, 512),)))
    source = observed_activations(str(path))
    assert by_name(network, source.contents(network, 4, Codec()))["relu1"].density == 0.5
    with pytest.raises(BuddysimError, match=r"densities.maps, .*: no sizes for zlib, NCHW, windows of 4096 B"):
        source.contents(network, 4, Codec("zlib"))


def test_the_same_network_gets_its_own_densities_back(file: Path) -> None:
    source = ObservedActivations(load_activations(file), epoch=3)
    assert [(o.kind, o.depth, o.density) for o in source.observed(Codec())] == [
        ("relu", 0.0, 0.5),
        ("pool", 0.0, 0.75),
        ("relu", 1.0, 0.25),
        ("fc-relu", 0.0, 0.125),
    ]


def test_file_without_points_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.maps"
    with ActivationsWriter(path, {}, MAPS):
        pass
    with pytest.raises(BuddysimError, match="has no point of the training"):
        observed_activations(str(path))
    assert np.isnan(load_activations(path).densities).all()


@pytest.mark.parametrize("name", names(recorded=False))
def test_laws_of_contents_on_every_network(name: str) -> None:
    network = load_network(name)
    contents = observed_activations(None).contents(network, 1, Codec())
    assert len(contents) == len(network.layers)
    for layer in network.layers:
        map_contents = contents[layer.index]
        assert 0 <= map_contents.density <= 1
        assert map_contents.compressed_fraction == pytest.approx(map_contents.density + 1 / 32)
        if layer.kind in ("maxpool", "avgpool"):
            assert map_contents.density >= contents[layer.inputs[0]].density
        if layer.kind in ("input", "conv", "fc", "batchnorm", "add"):
            assert map_contents.density == 1
