"""cDMA on the paper's networks: offloaded feature maps, mean ratios, and performance."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from buddysim.papers.cdma.offloaded_maps import offloaded_maps, ratios, ratios_by_network
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.training import simulate
from buddysim.training.contents import Codec
from buddysim.training.contents.density_table import TableContents
from buddysim.training.contents.generated import GeneratedContents
from buddysim.training.contents.observed_activations import ObservedActivations, observed_activations, shipped
from buddysim.training.named_network import load_network


@pytest.fixture
def table(tmp_path: Path) -> TableContents:
    path = tmp_path / "densities.csv"
    path.write_text("kind,ratio\nrelu,2\npool,1.25\n")
    return TableContents.read(path)


def test_maps_that_alexnet_offloads() -> None:
    network = load_network("alexnet-caffe")
    maps = {network.layers[index].name: size for index, size in offloaded_maps(network, 2).items()}
    assert maps == {
        "input": 2 * 3 * 227 * 227 * 4,
        "relu1": 2 * 96 * 55 * 55 * 4,
        "norm1": 2 * 96 * 55 * 55 * 4,
        "pool1": 2 * 96 * 27 * 27 * 4,
        "relu2": 2 * 256 * 27 * 27 * 4,
        "norm2": 2 * 256 * 27 * 27 * 4,
        "pool2": 2 * 256 * 13 * 13 * 4,
        "relu3": 2 * 384 * 13 * 13 * 4,
        "relu4": 2 * 384 * 13 * 13 * 4,
        "relu5": 2 * 256 * 13 * 13 * 4,
    }


def test_ratios_are_averaged_by_size(table: TableContents) -> None:
    (network_results,) = ratios(load_network("alexnet-caffe"), 2, table, [Codec()])
    dense, halved = 3 * 227 * 227, 2 * (96 * 55 * 55 + 256 * 27 * 27) + (2 * 384 + 256) * 13 * 13
    pooled = 96 * 27 * 27 + 256 * 13 * 13
    raw = dense + halved + pooled
    assert network_results.raw_bytes == 2 * 4 * raw
    assert network_results.average == pytest.approx(raw / (dense * 33 / 32 + halved / 2 + pooled * 0.8))
    assert network_results.traffic == pytest.approx(1 / network_results.average)
    assert (network_results.largest, network_results.largest_map) == (2.0, "relu1")
    assert network_results.density is None


@pytest.mark.slow
def test_every_network_algorithm_and_layout() -> None:
    small = {"AlexNet": ("alexnet-cifar10", 64)}
    contents = GeneratedContents(0.4, 3)
    with_mask, without = (ratios_by_network(contents, small, masks=masks)["AlexNet"] for masks in (True, False))
    assert [(r.codec.algorithm, r.codec.layout) for r in with_mask] == [
        (algorithm, layout) for algorithm in ("zvc", "rle", "zlib") for layout in ("NCHW", "NHWC", "CHWN")
    ]
    assert len({r.average for r in with_mask[:3]}) <= 3
    assert with_mask[0].average == pytest.approx(1 / (with_mask[0].density + 1 / 32))
    assert without[0].average == pytest.approx(1 / without[0].density)
    assert with_mask[3].average == without[3].average


def performance(scheme: str, **options: object) -> float:
    """Return AlexNet's performance relative to the oracle: Titan Xp, feature layers, PCIe gen3's peak rate."""
    result = simulate(*NETWORKS["AlexNet"], "titan-xp", scheme, link="pcie3-peak", **options)  # type: ignore[arg-type]
    return float(result.counters["feature_layers.oracle_ms"] / result.counters["feature_layers.time_ms"])


def test_performance_lies_between_vdnn_and_the_oracle() -> None:
    vdnn, bandwidth_aware, zvc, oracle = (
        performance(scheme, synthetic_density=0.4) for scheme in ("vdnn-all-p", "cdma-bw", "cdma-zv", "oracle")
    )
    assert vdnn < bandwidth_aware <= zvc <= oracle == 1.0
    assert vdnn < performance("cdma-zl", repeated_values=False) < performance("cdma-zl")


def test_the_networks_are_in_the_zoo() -> None:
    for name, batch in NETWORKS.values():
        assert load_network(name).layers
        assert batch in (128, 256, 512)


@pytest.mark.slow
def test_the_shipped_measurement_on_the_papers_networks() -> None:
    zvc, paper, zlib = Codec(), Codec(masks=False), Codec("zlib", "NHWC")
    sparsity, exact, counted, with_repeats, without_repeats = [], [], [], [], []
    flat = ObservedActivations(shipped(), repeated_values=False)
    for name, batch in NETWORKS.values():
        network = load_network(name)
        network_results = ratios(network, batch, observed_activations(None), [zvc, paper, zlib])
        sparsity.append(1 - network_results[0].density)
        exact.append(network_results[0].average)
        counted.append(network_results[1].average)
        with_repeats.append(network_results[2].average)
        without_repeats.append(ratios(network, batch, flat, [zlib])[0].average)
    assert mean(sparsity) == pytest.approx(0.602, abs=0.001)  # the paper: 62 %
    assert mean(counted) == pytest.approx(2.546, abs=0.005)  # 2.6
    assert mean(exact) == pytest.approx(2.356, abs=0.005)
    assert mean(with_repeats) == pytest.approx(2.693, abs=0.005)
    # Behind ZVC, as in the paper; another version of zlib may give other sizes.
    assert mean(without_repeats) == pytest.approx(2.26, abs=0.05)
