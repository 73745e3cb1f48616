"""Contents of the same network, layer by layer, and the bundled reduced trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress import lz4
from buddysim.formats.activations import (
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    PayloadSize,
    TrainingPoint,
    load_activations,
)
from buddysim.papers.cswap.paper_networks import ZOO
from buddysim.training import simulate
from buddysim.training.contents import Codec
from buddysim.training.contents.activation_options import make_mapped_source
from buddysim.training.contents.density_table import TableContents
from buddysim.training.contents.maps import roles
from buddysim.training.contents.observed_activations import ObservedActivations
from buddysim.training.contents.one_to_one import OneToOneContents, mismatch
from buddysim.training.contents.reduced_trainings import TRAININGS, path_of, training_of
from buddysim.training.named_network import load_network
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network


def branches() -> Network:
    """Return a network with two ReLU of one depth, whose contents differ."""
    net = NetworkBuilder("branches", (4, 8, 8))
    first = net.add("conv", name="conv1", channels=4, kernel=1)
    net.add("conv", name="left", inputs=first, channels=4, kernel=1)
    left = net.add("relu", name="left/relu")
    net.add("conv", name="right", inputs=first, channels=4, kernel=1)
    right = net.add("relu", name="right/relu")
    net.add("concat", name="both", inputs=[left, right])
    net.add("maxpool", name="pool", kernel=2)
    net.add("fc", name="fc", features=10)
    return net.build()


MAPS = (
    FeatureMapInfo("a", "relu", (2, 4, 4), "conv", 2, 1.0),
    FeatureMapInfo("b", "relu", (2, 4, 4), "conv", 3, 1.0),
    FeatureMapInfo("c", "maxpool", (4, 2, 2), "concat", 3, 1.0),
    FeatureMapInfo("d", "relu", (16,), "fc", 4, 0.0, "classifier"),
)


def write(path: Path, maps: tuple[FeatureMapInfo, ...] = MAPS) -> Path:
    with ActivationsWriter(path, {"network": "branches", "data": "nothing"}, maps) as writer:
        statistics = []
        for number, nonzero in enumerate((128, 512, 640, 256)[: len(maps)]):
            size = PayloadSize("rle", "NCHW", 4096, 32 * nonzero + 1000)
            statistics.append(FeatureMapStatistics(number, 1024, nonzero, (size,), 1024))
        writer.add_point(TrainingPoint(0, 0.0, 4, tuple(statistics)))
    return path


def test_one_to_one_contents_are_those_of_the_same_layer(tmp_path: Path) -> None:
    network, source = (
        branches(),
        OneToOneContents(ObservedActivations(load_activations(write(tmp_path / "m.maps"))), branches()),
    )
    names = {layer.name: layer.index for layer in network.layers}
    for codec, compressed_fraction in (
        (Codec(), lambda n: n / 1024 + 1 / 32),
        (Codec("rle"), lambda n: (32 * n + 1000) / 32768),
    ):
        contents = source.contents(network, 1, codec)
        for name, nonzero in (("left/relu", 128), ("right/relu", 512), ("pool", 640)):
            assert contents[names[name]].density == nonzero / 1024
            assert contents[names[name]].compressed_fraction == pytest.approx(compressed_fraction(nonzero))
    assert source.description.endswith("; layer by layer")
    by_depth = ObservedActivations(load_activations(tmp_path / "m.maps")).contents(network, 1, Codec())
    assert by_depth[names["left/relu"]].density == by_depth[names["right/relu"]].density == 320 / 1024
    with pytest.raises(BuddysimError, match=r"feature map of left/relu: no sizes for zlib, NCHW, windows of 4096 B"):
        source.contents(network, 1, Codec("zlib"))


def test_first_different_feature_map_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "m.maps", (MAPS[0], MAPS[2]))
    expected = r"m.maps: not a measurement of branches: feature map 2 behind .* is pool 'c', expected relu 'right/relu'"
    with pytest.raises(BuddysimError, match=expected):
        make_mapped_source(branches(), {"activations": str(path)})
    carried = make_mapped_source(branches(), {"activations": str(path), "activation_mapping": "depth"})
    assert not carried.description.endswith("layer by layer")
    with pytest.raises(BuddysimError, match=r"feature map 3 .* is missing, expected pool 'pool'"):
        make_mapped_source(branches(), {"activations": str(write(path, MAPS[:2]))})
    # Hidden FC layers of the file don't matter: the network has none.
    assert mismatch(branches(), load_activations(write(path))) is None
    assert "relu 'a', expected relu 'left/relu'" in str(mismatch(branches(), load_activations(path), by_name=True))
    with pytest.raises(BuddysimError, match=r"activation_mapping 'name': expected one of layer, depth"):
        make_mapped_source(branches(), {"activation_mapping": "name"})
    with pytest.raises(BuddysimError, match="activation_mapping: goes with activations, not with synthetic_density"):
        make_mapped_source(branches(), {"activation_mapping": "depth", "synthetic_density": 0.5})


def test_density_table_overrides_the_reduced_training(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("kind,density\nrelu,0.25\n")
    assert isinstance(make_mapped_source(branches(), {"density_table": str(table)}), TableContents)
    assert not isinstance(make_mapped_source(branches(), {}), OneToOneContents)  # none of this network ships


@pytest.mark.parametrize("name", [name for networks in ZOO.values() for name in networks.values()])
def test_every_network_of_the_paper_was_trained(name: str) -> None:
    network = load_network(name)
    source = make_mapped_source(network, {})
    assert isinstance(source, OneToOneContents)
    measured = [Codec(), Codec("csr"), Codec("rle"), *([Codec("lz4", window=65536)] if lz4.available() else [])]
    for codec in measured:
        contents = source.contents(network, 1, codec)
        assert all(
            0 <= contents[layer.index].density <= 1 and contents[layer.index].compressed_fraction > 0
            for layer in network.layers
        )
    own = source.contents(network, 1, Codec())
    relus = [own[index].density for index, role in roles(network).items() if role.kind == "relu"]
    assert 0.1 < sum(relus) / len(relus) < 0.9
    assert len(set(relus)) == len(relus)  # nothing is carried over


@pytest.mark.parametrize("training", TRAININGS, ids=lambda one: one.reduction.network)
def test_shipped_trainings_describe_their_origin(training: Any) -> None:
    activations = load_activations(path_of(training))
    assert activations.state == "finished"
    assert (
        f"{training.reduction.width:g} of its channels, images of {training.reduction.size}"
        in activations.provenance["network"]
    )
    assert "Fashion-MNIST" in activations.provenance["data"]
    assert "seed 1" in activations.provenance["training"]
    assert "PyTorch" in activations.provenance["program"]
    assert [point.epoch for point in activations.points] == list(range(len(activations.points)))
    assert activations.points[-1].accuracy > 0.6 > activations.points[0].accuracy
    assert sum(path_of(one).stat().st_size for one in TRAININGS) < 2**20


def test_epoch_and_activations_file_are_used(tmp_path: Path) -> None:
    network = load_network("vgg16")
    assert training_of(network) is training_of(load_network("vgg16-cifar10"))
    first, last = (make_mapped_source(network, {"epoch": epoch}).contents(network, 1, Codec()) for epoch in (0, 100))
    assert any(first[index].density != last[index].density for index in first)
    own = simulate("vgg16", 8, machine="v100", scheme="cswap", activations=str(path_of(TRAININGS[1])))
    shipped = simulate("vgg16", 8, machine="v100", scheme="cswap")
    assert own.counters["time_ms"] == shipped.counters["time_ms"]
    assert "; layer by layer;" in shipped.provenance["assumptions"]["activations"]
